// SPDX-License-Identifier: Apache-2.0
// Third-party files: each loads or is refused by name, and those that load compute what ONNX
// Runtime computed.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <iostream>
#include <map>

#include "bertcl/error.hpp"
#include "ir/text.hpp"
#include "npz/npz.hpp"
#include "onnx/read_model.hpp"
#include "ops/interpret.hpp"
#include "tests/support/files.hpp"
#include "tests/support/interop.hpp"

namespace bertcl::onnx_io {
namespace {

/// The first difference beyond the tolerance as text, empty if there is none. Integers may differ
/// by one where a rounding tie falls the other way.
std::string difference(const ir::Tensor& got, ir::Tensor expected) {
  if (got.dtype() == ir::DType::f16 && expected.dtype() == ir::DType::u16)  // bit patterns
    expected = ir::Tensor::of<std::uint16_t>(
        expected.shape(),
        {expected.as<std::uint16_t>().begin(), expected.as<std::uint16_t>().end()}, ir::DType::f16);
  if (got.shape() != expected.shape())
    return fmt::format("shape or type differs: {} of {} elements against {} of {}",
                       ir::name_of(got.dtype()), got.size(), ir::name_of(expected.dtype()),
                       expected.size());
  const auto a = got.to_doubles(), b = expected.to_doubles();
  double largest = 0;
  std::size_t first = a.size();
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double d = std::abs(a[i] - b[i]);
    const double allowed = ir::is_float(got.dtype()) ? 1e-4 + 1e-4 * std::abs(b[i]) : 1.0;
    const bool same = a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]));
    if (!same && !(d <= allowed)) first = std::min(first, i);
    if (!same) largest = std::max(largest, d);
  }
  if (first == a.size()) return {};
  return fmt::format("element {} of {} is {}, {} was expected; largest difference {}", first,
                     a.size(), a[first], b[first], largest);
}

/// "pass", "refused: why", "fail: why" or "loads" for one file.
std::string check(const std::string& file, const std::string& golden) {
  ir::Graph graph;
  try {
    graph = read_model(tests::shared_file("interop/" + file));
    ir::verify(graph);
  } catch (const Error& e) {
    return fmt::format("refused: {}", e.what());
  }
  if (golden.empty()) return "loads";
  const auto arrays = npz::load(tests::shared_file("interop/" + golden));
  ops::Tensors inputs;
  for (const ir::Value* in : graph.inputs()) {
    const auto it = arrays.find("in__" + in->name);
    if (it == arrays.end()) return "loads";  // large inputs were not stored
    inputs[in->name] = it->second;
  }
  try {
    const auto outputs = ops::interpret(graph, inputs);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const std::string& name = graph.outputs()[i].name;
      const auto expected = arrays.find("out__" + name);
      if (expected == arrays.end()) return fmt::format("fail: no golden output '{}'", name);
      const std::string d = difference(outputs[i], expected->second);
      if (!d.empty()) return fmt::format("fail: output '{}': {}", name, d);
    }
  } catch (const Error& e) {
    return fmt::format("fail: {}", e.what());
  }
  return "pass";
}

TEST(Interop, EveryFileLoadsOrIsRefusedAndComputesTheGoldens) {
  BERTCL_NEEDS("interop/goldens_status.tsv");
  std::map<std::string, int> counts;
  const bool verbose = std::getenv("BERTCL_VERBOSE") != nullptr;
  for (const auto& [file, golden] : tests::interop_models()) {
    const std::string result = check(file, golden);
    ++counts[result.substr(0, result.find(':'))];
    EXPECT_EQ(result.starts_with("fail"), tests::saturated_goldens.contains(file))
        << file << ": " << result;
    if (verbose) std::cout << file << ": " << result.substr(0, 400) << "\n";
    if (file.starts_with("N_negative") && golden.empty()) {
      EXPECT_TRUE(result.starts_with("refused")) << file << ": " << result;
    }
  }
  for (const auto& [what, n] : counts) std::cout << what << ": " << n << "\n";
}

}  // namespace
}  // namespace bertcl::onnx_io
