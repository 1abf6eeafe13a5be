// SPDX-License-Identifier: Apache-2.0
// Integer operators on the device against the host interpreter of the same graph, in their generic
// form and as the compiler fuses them; then files of other projects against their outputs.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <random>
#include <set>
#include <sstream>

#include "bertcl/error.hpp"
#include "ir/text.hpp"
#include "npz/npz.hpp"
#include "onnx/read_model.hpp"
#include "ops/interpret.hpp"
#include "runtime/session.hpp"
#include "tests/support/shared.hpp"

namespace bertcl::runtime {
namespace {

/// The first difference beyond the tolerance; "" if there is none. Floats: a share of the largest
/// value; bytes: `steps`; other integers exactly.
std::string difference(const ir::Tensor& got, const ir::Tensor& expected, int steps) {
  if (got.shape() != expected.shape() || got.dtype() != expected.dtype())
    return fmt::format("{} of {} elements instead of {} of {}", ir::name_of(got.dtype()),
                       got.size(), ir::name_of(expected.dtype()), expected.size());
  const auto a = got.to_doubles(), b = expected.to_doubles();
  double largest = 0, magnitude = 0;
  std::size_t first = a.size();
  for (const double v : b) magnitude = std::max(magnitude, std::abs(v));
  const double allowed = ir::is_float(got.dtype())  ? 1e-5 * magnitude
                         : ir::is_int8(got.dtype()) ? steps
                                                    : 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(a[i] - b[i]));
    if (!(std::abs(a[i] - b[i]) <= allowed)) first = std::min(first, i);
  }
  if (first == a.size()) return "";
  return fmt::format("element {} of {} is {} instead of {}; largest difference {}", first, a.size(),
                     a[first], b[first], largest);
}

/// Random inputs for a graph whose symbols all have the size `size`.
Tensors inputs_for(const ir::Graph& graph, std::int64_t size, unsigned seed) {
  std::mt19937 random(seed);
  Tensors inputs;
  for (const ir::Value* in : graph.inputs()) {
    ir::Sizes sizes;
    for (const ir::Dim& d : in->type.shape)
      sizes.push_back(d.symbols().empty() ? d.constant() : size);
    const auto count = static_cast<std::size_t>(ir::element_count(sizes));
    if (ir::is_float(in->type.dtype)) {
      std::normal_distribution<float> normal(0.3f, 2.0f);
      std::vector<float> values(count);
      for (float& v : values) v = normal(random);
      inputs[in->name] = ir::Tensor::of(sizes, std::move(values));
    } else {
      const bool is_unsigned = in->type.dtype == ir::DType::u8;
      std::uniform_int_distribution<std::int64_t> any(is_unsigned ? 0 : -128,
                                                      is_unsigned ? 255 : 127);
      std::vector<std::int64_t> values(count);
      for (auto& v : values) v = any(random);
      inputs[in->name] = ir::Tensor::of(sizes, std::move(values)).converted(in->type.dtype);
    }
  }
  return inputs;
}

/// Compiled in full, and with the passes that fuse left out, each against the interpreter.
void expect_as_interpreted(const std::string& text, int steps = 0) {
  for (const std::int64_t size : {1, 2, 7, 33})
    for (const bool fused : {true, false}) {
      const ir::Graph graph = ir::parse(text);
      const Tensors inputs = inputs_for(graph, size, static_cast<unsigned>(size));
      const auto expected =
          ops::interpret(graph, std::map<std::string, ir::Tensor>(inputs.begin(), inputs.end()));
      SessionOptions options;
      if (!fused) options.disabled_passes = {"find_linear_q", "find_linear"};
      Session session = Session::compile(ir::parse(text), options);
      const Tensors outputs = session.run(inputs);
      for (std::size_t i = 0; i < expected.size(); ++i) {
        const std::string& name = graph.outputs()[i].name;
        EXPECT_EQ(difference(outputs.at(name), expected[i], steps), "")
            << name << ", size " << size << (fused ? ", fused\n" : ", not fused\n") << text;
      }
    }
}

/// Constants of a matrix product: %w [5, 3] of `type`, %wz one zero point or three.
std::string weights(const std::string& type, bool per_column) {
  const bool is_unsigned = type == "u8";
  std::string text = "  const %w: " + type + "[5, 3] = [";
  for (int i = 0; i < 15; ++i)
    text += fmt::format("{}{}", i ? ", " : "", i * 53 % 256 - (is_unsigned ? 0 : 128));
  text += fmt::format("]\n  const %wz: {}[{}] = {}\n", type, per_column ? "3" : "",
                      per_column ? (is_unsigned ? "[0, 255, 17]" : "[-128, 0, 127]")
                                 : (is_unsigned ? "200" : "-5"));
  return text;
}

TEST(IntegerOps, MatMulIntegerOfEveryTypeAndZeroPoint) {
  for (const std::string a : {"u8", "i8"})
    for (const std::string b : {"u8", "i8"})
      for (const bool per_column : {false, true})
        expect_as_interpreted("graph g(%x: " + a + "[batch, seq, 5], %z: " + a + "[1]) {\n" +
                              weights(b, per_column) +
                              R"(  const %s: f32[] = 0.0078125
  const %bias: f32[3] = [1, -2, 3]
  %sums: i32[batch, seq, 3] = MatMulInteger(%x, %w, %z, %wz)
  %again: i32[batch, seq, 3] = MatMulInteger(%x, %w, %z, %wz)
  %numbers: f32[batch, seq, 3] = Cast(%again) {to = "f32"}
  %real: f32[batch, seq, 3] = Mul(%numbers, %s)
  %y: f32[batch, seq, 3] = Add(%real, %bias)
  return %y as y, %sums as sums
})");
}

TEST(IntegerOps, MatMulIntegerOfTwoComputedOperands) {
  expect_as_interpreted(R"(graph g(%a: u8[batch, n, 6], %b: i8[6, m], %az: u8[n], %bz: i8[m]) {
  %y: i32[batch, n, m] = MatMulInteger(%a, %b, %az, %bz)
  return %y as y
})");
  expect_as_interpreted(R"(graph g(%a: u8[7], %b: u8[batch, 7, m], %az: u8[]) {
  %y: i32[batch, m] = MatMulInteger(%a, %b, %az)
  return %y as y
})");
}

TEST(IntegerOps, DynamicQuantizeLinearAndItsProduct) {
  for (const std::string type : {"u8", "i8"})
    expect_as_interpreted("graph g(%x: f32[batch, seq, 5]) {\n" + weights(type, true) +
                          R"(  const %ws: f32[3] = [0.5, 0.25, 0.125]
  const %bias: f32[3] = [1, -2, 3]
  %q: u8[batch, seq, 5], %xs: f32[], %xz: u8[] = DynamicQuantizeLinear(%x)
  %sums: i32[batch, seq, 3] = MatMulInteger(%q, %w, %xz, %wz)
  %numbers: f32[batch, seq, 3] = Cast(%sums) {to = "f32"}
  %scale: f32[3] = Mul(%xs, %ws)
  %real: f32[batch, seq, 3] = Mul(%numbers, %scale)
  %biased: f32[batch, seq, 3] = Add(%real, %bias)
  %y: f32[batch, seq, 3] = Gelu(%biased)
  return %y as y, %q as q, %xs as scale, %xz as zero_point
})");
}

TEST(IntegerOps, QLinearMatMul) {
  for (const std::string type : {"u8", "i8"})
    for (const bool per_column : {false, true})
      expect_as_interpreted("graph g(%x: " + type + "[batch, seq, 5]) {\n" +
                                weights(type, per_column) + "  const %xz: " + type +
                                (type == "u8" ? "[] = 77\n" : "[] = -77\n") +
                                R"(  const %xs: f32[] = 0.0125
  const %ws: f32[3] = [0.5, 0.25, 0.125]
  const %ys: f32[] = 3.7
  const %yz: u8[] = 99
  %y: u8[batch, seq, 3] = QLinearMatMul(%x, %xs, %xz, %w, %ws, %wz, %ys, %yz)
  return %y as y
})",
                            1);
}

TEST(IntegerOps, WeightsOfDequantizeLinearMayHaveAnyZeroPoint) {
  expect_as_interpreted("graph g(%x: u8[batch, seq, 5]) {\n" + weights("u8", true) +
                        R"(  const %xs: f32[] = 0.0125
  const %xz: u8[] = 200
  const %ws: f32[3] = [0.5, 0.25, 0.125]
  %xr: f32[batch, seq, 5] = DequantizeLinear(%x, %xs, %xz)
  %wr: f32[5, 3] = DequantizeLinear(%w, %ws, %wz) {axis = 1}
  %y: f32[batch, seq, 3] = MatMul(%xr, %wr)
  return %y as y
})");
}

TEST(IntegerOps, CumSum) {
  for (const int axis : {0, 1, -1})
    for (const int exclusive : {0, 1})
      for (const int reverse : {0, 1})
        for (const std::string type : {"i64", "i32"})
          expect_as_interpreted(
              fmt::format("graph g(%x: {0}[batch, seq, 5]) {{\n  const %axis: i64[] = {1}\n"
                          "  %y: {0}[batch, seq, 5] = CumSum(%x, %axis) {{exclusive = {2}, "
                          "reverse = {3}}}\n  return %y as y\n}}",
                          type, axis, exclusive, reverse));
}

/// Files whose stored outputs are wrong: ONNX Runtime made them where u8 x s8 products saturate at
/// 16 bits (vpmaddubsw), which ONNX does not ask for.
const std::set<std::string> saturated = {
    "C_quantized/onnxruntime-qnn/dynamic_quantize_matmul_int8_bias.onnx",
    "C_quantized/onnxruntime-qnn/matmul_integer_to_float_int8.onnx",
    "C_quantized/onnxruntime-qnn/matmul_integer_to_float_int8_bias.onnx"};

TEST(IntegerOps, FilesOfOtherProjectsGiveTheirOutputs) {
  BERTCL_NEEDS("interop/goldens_status.tsv");
  std::ifstream table(tests::shared_file("interop/goldens_status.tsv"));
  int checked = 0;
  for (std::string line; std::getline(table, line);) {
    if (line.ends_with('\r')) line.pop_back();
    std::istringstream row(line);
    std::string file, status, golden;
    std::getline(row, file, '\t');
    std::getline(row, status, '\t');
    std::getline(row, golden, '\t');
    const bool integer = file.find("matmul_int") != std::string::npos ||
                         file.find("matmulinteger") != std::string::npos ||
                         file.find("dynamic") != std::string::npos ||
                         file.find("qlinear") != std::string::npos;
    if (!file.starts_with("C_quantized") || golden.empty() || !integer || saturated.contains(file))
      continue;
    SCOPED_TRACE(file);
    Session session = Session::load(tests::shared_file("interop/" + file));
    const auto arrays = npz::load(tests::shared_file("interop/" + golden));
    Tensors inputs;
    for (const auto& [name, tensor] : arrays)
      if (name.starts_with("in__")) inputs[name.substr(4)] = tensor;
    const Tensors outputs = session.run(inputs);
    for (const auto& [name, tensor] : outputs)
      EXPECT_EQ(difference(tensor, arrays.at("out__" + name), 1), "") << name;
    ++checked;
  }
  EXPECT_GE(checked, 9);
}

}  // namespace
}  // namespace bertcl::runtime
