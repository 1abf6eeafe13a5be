// SPDX-License-Identifier: Apache-2.0
// Integer operators on the device against the host interpreter of the same graph, in their generic
// form and as the compiler fuses them; then files of other projects against their outputs.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "as_interpreted.hpp"
#include "npz/npz.hpp"
#include "tests/support/files.hpp"
#include "tests/support/interop.hpp"
#include "tests/support/parse_graph.hpp"
#include "tests/support/variants_before.hpp"

namespace bertcl::runtime {
namespace {

/// Constants of a matrix multiplication: %w [5, 3] of `type`, %wz one zero point or three.
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

TEST(IntegerOps, SumsOfNoProductsAreZeros) {
  for (const char* y : {"MatMulInteger(%x, %w)", "MatMulInteger(%x, %w, %z)"})
    expect_as_interpreted(R"(graph g(%x: u8[batch, 0], %z: u8[]) {
  const %w: i8[0, 50] = splat 1
  %sums: i32[batch, 50] = )" +
                          std::string(y) +
                          R"(
  %y: f32[batch, 50] = Cast(%sums) {to = "f32"}
  return %y as y
})");
}

TEST(IntegerOps, WeightsWithoutColumns) {
  const std::string head = R"(graph g(%x: u8[batch, 3]) {
  const %w: i8[3, 0] = []
  const %xs: f32[] = 0.5
  const %ws: f32[0] = []
)";
  expect_as_interpreted(head + R"(  %sums: i32[batch, 0] = MatMulInteger(%x, %w)
  %real: f32[batch, 0] = Cast(%sums) {to = "f32"}
  %scale: f32[0] = Mul(%xs, %ws)
  %y: f32[batch, 0] = Mul(%real, %scale)
  return %y as y
})");
  expect_as_interpreted(head + R"(  %xr: f32[batch, 3] = DequantizeLinear(%x, %xs)
  %wr: f32[3, 0] = DequantizeLinear(%w, %ws) {axis = 1}
  %y: f32[batch, 0] = MatMul(%xr, %wr)
  return %y as y
})");
}

// Down the variants of the GEMM, one variant less each time: work-items alone, work-groups,
// reference.
TEST(IntegerOps, EveryGemmVariantGivesTheSame) {
  const std::string text = "graph g(%x: u8[batch, seq, 5], %z: u8[1]) {\n" + weights("i8", true) +
                           R"(  %sums: i32[batch, seq, 3] = MatMulInteger(%x, %w, %z, %wz)
  %y: f32[batch, seq, 3] = Cast(%sums) {to = "f32"}
  return %y as y
})";
  std::set<std::string> variants;
  SessionOptions options;
  for (const char* first : {"x86_vnni", "x86_avx_vnni", "x86_avx2", "portable", "dot4", "ref"}) {
    options.disabled_kernels = tests::s8_variants_before(first);
    Session session = Session::compile(ir::parse(text), options);
    for (const std::int64_t size : {5, 13, 2}) {  // 25, 169 and 4 rows: small tiles, large, small
      const Tensors inputs = inputs_for(ir::parse(text), size, 1);
      const auto expected = ops::interpret(ir::parse(text), inputs);
      EXPECT_EQ(session.run(inputs).at("y"), expected.front()) << "by " << first << " at best";
    }
    for (const plan::Step& step : session.plan().steps)
      if (step.op == "linear_q") variants.insert(step.variant);
  }
  EXPECT_TRUE(variants.contains("dot4") && variants.contains("ref")) << variants.size();
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

TEST(IntegerOps, DynamicQuantizeLinearAndItsMatMul) {
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

TEST(IntegerOps, AScaleForEachRowAndItsMatMul) {
  for (const std::string outputs : {"%y as y", "%y as y, %q as q, %s as scale"})
    for (const std::string type : {"u8", "i8"})
      expect_as_interpreted("graph g(%x: f32[batch, seq, 5]) {\n" + weights(type, true) +
                            R"(  const %ws: f32[3] = [0.5, 0.25, 0.125]
  const %bias: f32[3] = [1, -2, 3]  const %least: f32[] = 1e-30  const %steps: f32[] = 127
  %a: f32[batch, seq, 5] = Abs(%x)
  %m: f32[batch, seq, 1] = ReduceMax(%a) {axes = [2], keepdims = 1}
  %b: f32[batch, seq, 1] = Max(%m, %least)
  %s: f32[batch, seq, 1] = Div(%b, %steps)
  %d: f32[batch, seq, 5] = Div(%x, %s)
  %r: f32[batch, seq, 5] = Round(%d)
  %q: i8[batch, seq, 5] = Cast(%r) {to = "i8"}
  %sums: i32[batch, seq, 3] = MatMulInteger(%q, %w, _, %wz)
  %numbers: f32[batch, seq, 3] = Cast(%sums) {to = "f32"}
  %columns: f32[batch, seq, 3] = Mul(%numbers, %ws)
  %real: f32[batch, seq, 3] = Mul(%s, %columns)
  %biased: f32[batch, seq, 3] = Add(%real, %bias)
  %y: f32[batch, seq, 3] = Gelu(%biased)
  return )" + outputs + "\n}");
}

TEST(IntegerOps, QLinearMatMul) {
  for (const std::string type : {"u8", "i8"})
    for (const bool per_column : {false, true})
      expect_as_interpreted("graph g(%x: " + type + "[batch, seq, 5]) {\n" +
                                weights(type, per_column) + "  const %xz: " + type +
                                (type == "u8" ? "[] = 77\n" : "[] = -77\n") +
                                R"(  const %xs: f32[] = 0.0125
  const %ws: f32[3] = [0.5, 0.25, 0.125]  const %ys: f32[] = 3.7  const %yz: u8[] = 99
  %y: u8[batch, seq, 3] = QLinearMatMul(%x, %xs, %xz, %w, %ws, %wz, %ys, %yz)
  return %y as y
})",
                            1);
}

TEST(IntegerOps, WeightsOfDequantizeLinearMayHaveAnyZeroPoint) {
  expect_as_interpreted("graph g(%x: u8[batch, seq, 5]) {\n" + weights("u8", true) +
                        R"(  const %xs: f32[] = 0.0125
  const %xz: u8[] = 200  const %ws: f32[3] = [0.5, 0.25, 0.125]
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

TEST(IntegerOps, FilesOfOtherProjectsGiveTheirOutputs) {
  BERTCL_NEEDS("interop/goldens_status.tsv");
  int checked = 0;
  for (const auto& [file, golden] : tests::interop_models()) {
    const bool integer = file.find("matmul_int") != std::string::npos ||
                         file.find("matmulinteger") != std::string::npos ||
                         file.find("dynamic") != std::string::npos ||
                         file.find("qlinear") != std::string::npos;
    if (!file.starts_with("C_quantized") || golden.empty() || !integer ||
        tests::saturated_goldens.contains(file))
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
