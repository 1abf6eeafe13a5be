// SPDX-License-Identifier: Apache-2.0
// Probes: what they find agrees with the CPU, what is disabled is absent.
#include <filesystem>
#include <iterator>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "opencl/context.hpp"
#include "opencl/device/capabilities.hpp"
#include "opencl/device/cpu_features.hpp"
#include "opencl/probe/probe.hpp"
#include "opencl/program/sources.hpp"
#include "tests/support/environment.hpp"
#include "tests/support/matchers.hpp"
#include "tests/support/scratch_folder.hpp"

namespace bertcl::opencl {
namespace {

class Probes : public ::testing::Test {
 protected:
  tests::ScopedVariable disable_{"BERTCL_DISABLE"};
};

TEST_F(Probes, EveryAbsentCapabilityHasANote) {
  auto context = Context::create("cpu");
  const Capabilities& found = context->capabilities();
  EXPECT_EQ(found.list().size(), 29u);
  for (const auto& [name, present] : found.list())
    EXPECT_EQ(found.notes.count(name), present ? 0u : 1u) << name;
}

TEST_F(Probes, FindTheInstructionsOfTheCpuOnPoclAndNoOthersElsewhere) {
  auto context = Context::create("cpu");
  const Capabilities& found = context->capabilities();
  const Capabilities cpu = cpu_features();
  const bool pocl = context->info().platform == "Portable Computing Language";
  EXPECT_TRUE(found.in_process_cpu || !pocl);
  const std::tuple<const char*, bool, bool> instructions[] = {
      {"avx2", found.avx2, cpu.avx2},
      {"avx512", found.avx512, cpu.avx512},
      {"avx512_vnni", found.avx512_vnni, cpu.avx512_vnni},
      {"avx_vnni", found.avx_vnni, cpu.avx_vnni},
      {"avx512_bf16", found.avx512_bf16, cpu.avx512_bf16},
      {"arm_sdot", found.arm_sdot, cpu.arm_sdot}};
  for (const auto& [name, is_found, has] : instructions) {
    EXPECT_LE(is_found, has) << name;
    EXPECT_TRUE(is_found == has || !pocl) << name;
  }
}

TEST_F(Probes, DisabledCapabilitiesAreAbsent) {
  disable_.set("avx512_vnni,avx2,fp64");
  auto context = Context::create("cpu");
  const Capabilities& found = context->capabilities();
  EXPECT_FALSE(found.avx512_vnni);
  EXPECT_FALSE(found.avx2);
  EXPECT_FALSE(found.fp64);
  disable_.set(std::nullopt);
  auto open = Context::create("cpu");
  for (const auto& [name, present] : open->capabilities().list()) {
    if (present && (name == "avx512_vnni" || name == "avx2" || name == "fp64")) {
      EXPECT_EQ(found.notes.at(name), "disabled by BERTCL_DISABLE");
    }
  }
}

TEST_F(Probes, UnknownNameToHideIsAnError) {
  disable_.set("avx1024");
  EXPECT_ERROR(AllOf(HasSubstr("avx1024"), HasSubstr("avx512_vnni")), Context::create("cpu"));
}

// What is stored from one process and read by the next is what the probes found.
TEST_F(Probes, AreReadBackFromTheCache) {
  tests::ScopedVariable cache("BERTCL_CACHE", "off");
  const Capabilities probed = Context::create("cpu")->capabilities();
  const tests::ScratchFolder folder;
  cache.set((folder / "cache").string());
  for (const char* round : {"probed and stored", "read back"}) {
    const Capabilities found = Context::create("cpu")->capabilities();
    EXPECT_EQ(found.list(), probed.list()) << round;
    EXPECT_EQ(found.notes, probed.notes) << round;
  }
}

// Also in this process, which builds their programs.
TEST_F(Probes, StoreNothingElse) {
  const tests::ScopedVariable probe("BERTCL_PROBE", "off");
  const tests::ScratchFolder folder;
  const tests::ScopedVariable cache("BERTCL_CACHE", folder.path().string());
  Context::create("cpu")->capabilities();
  const std::filesystem::directory_iterator files(folder.path());
  EXPECT_EQ(std::distance(begin(files), end(files)), 1);
}

TEST_F(Probes, BuildTheProgramsThatAreListed) {
  std::vector<std::string_view> programs{"persistent"};
  for (const SourceFile& file : embedded_sources())
    if (file.name.starts_with("probe/"))
      programs.push_back(file.name.substr(6, file.name.size() - 9));
  EXPECT_THAT(probe_programs(), ElementsAreArray(programs));
}

}  // namespace
}  // namespace bertcl::opencl
