// SPDX-License-Identifier: Apache-2.0
// Rotary positions of queries and keys in one op.
#include <fmt/format.h>

#include <cmath>
#include <string>
#include <vector>

#include "check.hpp"
#include "ops/interpret.hpp"
#include "tests/support/parse_graph.hpp"

namespace bertcl::passes {

Pass fuse_rotary();
namespace {

TEST(FuseRotary, InFloat) {
  EXPECT_REWRITE(fuse_rotary(),
                 R"(graph g(%x: f32[batch, seq, 2], %c: f32[1, seq, 2], %s: f32[1, seq, 2]) {
  const %wq: f32[2, 2] = [1, 2, 3, 4]  const %wk: f32[2, 2] = [5, 6, 7, 8]
  const %wv: f32[2, 2] = [9, 10, 11, 12]
  %q: f32[batch, seq, 2] = linear(%x, %wq)
  %k: f32[batch, seq, 2] = linear(%x, %wk)
  %v: f32[batch, seq, 2] = linear(%x, %wv)
  %qt: f32[batch, seq, 2] = rotary(%q, %c, %s) {heads = 1}
  %kt: f32[batch, seq, 2] = rotary(%k, %c, %s) {heads = 1}
  %y: f32[batch, seq, 2] = attention(%qt, %kt, %v, _) {heads = 1, p_type = "f32", scale = 0.5}
  return %y as y
})",
                 R"(graph g(%x: f32[batch, seq, 2], %c: f32[1, seq, 2], %s: f32[1, seq, 2]) {
  const %wq.qk: f32[2, 4] = [1, 2, 5, 6, 3, 4, 7, 8]
  %q.qk: f32[batch, seq, 4] = linear(%x, %wq.qk)
  const %wv: f32[2, 2] = [9, 10, 11, 12]
  %v: f32[batch, seq, 2] = linear(%x, %wv)
  %qt.qk: f32[batch, seq, 4] = rotary(%q.qk, %c, %s) {heads = 2}
  %y: f32[batch, seq, 2] = attention(%qt.qk, %qt.qk, %v, _) {heads = 1, offsets = [0, 2, 0], p_type = "f32", scale = 0.5}
  return %y as y
})");
}

TEST(FuseRotary, EachKeepsItsScale) {
  EXPECT_REWRITE(
      fuse_rotary(),
      R"(graph g(%x: u8[batch, seq, 2], %v: u8[batch, seq, 2], %c: f32[1, seq, 2], %s: f32[1, seq, 2]) {
  const %r: f32[] = 0.5  const %t: f32[] = 0.25  const %z: u8[] = 3
  const %wq: i8[2, 2] = [1, 2, 3, 4]  const %wk: i8[2, 2] = [5, 6, 7, 8]
  %q: f32[batch, seq, 2] = linear_q(%x, %wq, _, %r, %z, %r)
  %k: f32[batch, seq, 2] = linear_q(%x, %wk, _, %r, %z, %r)
  %qt: u8[batch, seq, 2] = rotary(%q, %c, %s, _, %r, %z) {heads = 1}
  %kt: u8[batch, seq, 2] = rotary(%k, %c, %s, _, %t, _) {heads = 1}
  %y: f32[batch, seq, 2] = attention_q(%qt, %kt, %v, _, %r, %r, %z, %t, _, %r, %z) {heads = 1, p_type = "u8", scale = 0.5}
  return %y as y
})",
      R"(graph g(%x: u8[batch, seq, 2], %v: u8[batch, seq, 2], %c: f32[1, seq, 2], %s: f32[1, seq, 2]) {
  const %wq.qk: i8[2, 4] = [1, 2, 5, 6, 3, 4, 7, 8]  const %r: f32[] = 0.5  const %z: u8[] = 3
  const %r_0.qk: f32[4] = [0.5, 0.5, 0.5, 0.5]
  %q.qk: f32[batch, seq, 4] = linear_q(%x, %wq.qk, _, %r, %z, %r_0.qk)
  const %r_1.qk: f32[4] = [0.5, 0.5, 0.25, 0.25]  const %z_0.qk: u8[4] = [3, 3, 0, 0]
  %qt.qk: u8[batch, seq, 4] = rotary(%q.qk, %c, %s, _, %r_1.qk, %z_0.qk) {heads = 2}
  const %t: f32[] = 0.25
  %y: f32[batch, seq, 2] = attention_q(%qt.qk, %qt.qk, %v, _, %r, %r, %z, %t, _, %r, %z) {heads = 1, offsets = [0, 2, 0], p_type = "u8", scale = 0.5}
  return %y as y
})");
}

TEST(FuseRotary, DifferentAnglesStay) {
  EXPECT_UNCHANGED(
      fuse_rotary(),
      R"(graph g(%x: f32[batch, seq, 2], %c: f32[1, seq, 2], %s: f32[1, seq, 2], %v: f32[batch, seq, 2]) {
  const %wq: f32[2, 2] = [1, 2, 3, 4]
  %q: f32[batch, seq, 2] = linear(%x, %wq)
  const %wk: f32[2, 2] = [5, 6, 7, 8]
  %k: f32[batch, seq, 2] = linear(%x, %wk)
  %qt: f32[batch, seq, 2] = rotary(%q, %c, %s) {heads = 1}
  %kt: f32[batch, seq, 2] = rotary(%k, %s, %c) {heads = 1}
  %y: f32[batch, seq, 2] = attention(%qt, %kt, %v, _) {heads = 1, p_type = "f32", scale = 0.5}
  return %y as y
})");
}

/// The heads of keys have tables of their own if their number is another: these are as wide as a
/// head.
std::string in_float(int q_heads, int k_heads, std::string_view outputs) {
  const char *c = k_heads == q_heads ? "%c" : "%kc", *s = k_heads == q_heads ? "%s" : "%ks";
  return fmt::format(
      R"(graph g(%x: f32[batch, seq, 4], %c: f32[1, seq, {0}], %s: f32[1, seq, {0}], %kc: f32[1, seq, {1}], %ks: f32[1, seq, {1}], %v: f32[batch, seq, 4]) {{
  const %wq: f32[4, 4] = [1, 2, 3, 4, 5, 6, 7, 8, 8, 7, 6, 5, 4, 3, 2, 1]
  %q: f32[batch, seq, 4] = linear(%x, %wq)
  const %wk: f32[4, 4] = [5, 6, 7, 8, 1, 2, 3, 4, 4, 3, 2, 1, 8, 7, 6, 5]
  %k: f32[batch, seq, 4] = linear(%x, %wk)
  %qt: f32[batch, seq, 4] = rotary(%q, %c, %s) {{heads = {2}}}
  %kt: f32[batch, seq, 4] = rotary(%k, {4}, {5}) {{heads = {3}}}
  %y: f32[batch, seq, 4] = attention(%qt, %kt, %v, _) {{heads = {2}, p_type = "f32", scale = 0.5}}
  return {6}
}})",
      4 / q_heads, 4 / k_heads, q_heads, k_heads, c, s, outputs);
}

TEST(FuseRotary, WhatIsReadElsewhereStays) {
  const std::string alone = in_float(1, 1, "%y as y");
  EXPECT_NE(after(fuse_rotary(), alone), normal(alone));
  for (const char* other : {"%q", "%k", "%qt", "%kt"})
    EXPECT_UNCHANGED(fuse_rotary(), in_float(1, 1, fmt::format("%y as y, {} as z", other)));
  // The same rotary for both operands.
  EXPECT_UNCHANGED(
      fuse_rotary(),
      R"(graph g(%x: f32[batch, seq, 2], %c: f32[1, seq, 2], %s: f32[1, seq, 2], %v: f32[batch, seq, 2]) {
  const %wq: f32[2, 2] = [1, 2, 3, 4]
  %q: f32[batch, seq, 2] = linear(%x, %wq)
  %qt: f32[batch, seq, 2] = rotary(%q, %c, %s) {heads = 1}
  %y: f32[batch, seq, 2] = attention(%qt, %qt, %v, _) {heads = 1, p_type = "f32", scale = 0.5}
  return %y as y
})");
}

TEST(FuseRotary, DifferentHeadsStay) {
  EXPECT_UNCHANGED(fuse_rotary(), in_float(1, 2, "%y as y"));
  EXPECT_UNCHANGED(fuse_rotary(), in_float(2, 1, "%y as y"));
}

TEST(FuseRotary, BytesOfDifferentTypesStay) {
  EXPECT_UNCHANGED(
      fuse_rotary(),
      R"(graph g(%x: f32[batch, seq, 2], %c: f32[1, seq, 2], %s: f32[1, seq, 2], %v: u8[batch, seq, 2]) {
  const %wq: f32[2, 2] = [1, 2, 3, 4]
  %q: f32[batch, seq, 2] = linear(%x, %wq)
  const %wk: f32[2, 2] = [5, 6, 7, 8]
  %k: f32[batch, seq, 2] = linear(%x, %wk)
  const %r: f32[] = 0.5
  %qt: u8[batch, seq, 2] = rotary(%q, %c, %s, _, %r, _) {heads = 1}
  const %z: i8[] = 0
  %kt: i8[batch, seq, 2] = rotary(%k, %c, %s, _, %r, %z) {heads = 1}
  %y: f32[batch, seq, 2] = attention_q(%qt, %kt, %v, _, %r, %r, _, %r, %z, %r, _) {heads = 1, p_type = "u8", scale = 0.5}
  return %y as y
})");
}

/// 0, step, 2 step, ...; above `range` on from -range.
ir::Tensor ramp(ir::Sizes sizes, double step, double range) {
  std::vector<double> values(static_cast<std::size_t>(ir::element_count(sizes)));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = std::fmod(static_cast<double>(i) * step + range, 2 * range) - range;
  return ir::Tensor::of(std::move(sizes), std::move(values)).converted(ir::DType::f32);
}

TEST(FuseRotary, ComputesTheSame) {
  ir::Graph g = ir::parse(in_float(2, 2, "%y as y"));
  ops::Tensors inputs{{"x", ramp({2, 3, 4}, 0.07, 0.2)},
                      {"c", ramp({1, 3, 2}, 0.3, 1)},
                      {"s", ramp({1, 3, 2}, 0.7, 1)},
                      {"v", ramp({2, 3, 4}, 0.9, 2)}};
  inputs["kc"] = inputs["c"];
  inputs["ks"] = inputs["s"];
  const ir::Tensor before = ops::interpret(g, inputs).at(0);
  ASSERT_TRUE(fuse_rotary().run(g));
  EXPECT_EQ(ops::interpret(g, inputs).at(0), before);
}

}  // namespace
}  // namespace bertcl::passes
