// SPDX-License-Identifier: Apache-2.0
// Files of other projects, cut and with bytes changed, through import and compiler: each compiles
// or is refused; nothing crashes and nothing takes long.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>

#include "bertcl/error.hpp"
#include "onnx/read_model.hpp"
#include "passes/pass.hpp"
#include "tests/support/files.hpp"
#include "tests/support/scratch_folder.hpp"

namespace bertcl::passes {
namespace {

constexpr std::uintmax_t largest_file = 6000;
constexpr std::chrono::seconds longest(5);

std::vector<std::filesystem::path> small_files() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(tests::shared_file("interop")))
    if (entry.path().extension() == ".onnx" && entry.file_size() <= largest_file)
      files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

/// One to four bytes changed, and one time in four the end cut off.
std::string damaged(std::string bytes, std::mt19937& random) {
  if (random() % 4 == 0) bytes.resize(random() % bytes.size());
  for (auto changes = 1 + random() % 4; changes > 0 && !bytes.empty(); --changes)
    bytes[random() % bytes.size()] = static_cast<char>(random());
  return bytes;
}

/// BERTCL_DAMAGED_FILES=N: N damaged copies of each file.
TEST(DamagedFiles, CompileOrAreRefused) {
  BERTCL_NEEDS("interop/manifest.tsv");
  const char* asked = std::getenv("BERTCL_DAMAGED_FILES");
  const int copies = asked ? std::atoi(asked) : 5;
  const tests::ScratchFolder folder;
  const auto path = folder / "model.onnx";
  int compiled = 0, refused = 0;
  for (const auto& file : small_files()) {
    std::ifstream stream(file, std::ios::binary);
    const std::string good{std::istreambuf_iterator<char>(stream), {}};
    std::mt19937 random(1);
    for (int copy = 0; copy < copies; ++copy) {
      std::ofstream(path, std::ios::binary | std::ios::trunc) << damaged(good, random);
      const auto start = std::chrono::steady_clock::now();
      try {  // anything but a bertcl::Error ends the test
        ir::Graph graph = onnx_io::read_model(path);
        compile(graph, {});
        ++compiled;
      } catch (const Error&) {
        ++refused;
      }
      EXPECT_LT(std::chrono::steady_clock::now() - start, longest) << file << ", copy " << copy;
    }
  }
  EXPECT_GT(refused, 100);
  EXPECT_GT(compiled, 20);
}

}  // namespace
}  // namespace bertcl::passes
