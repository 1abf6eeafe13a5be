// SPDX-License-Identifier: Apache-2.0
// Key heads that several query heads share, through the passes of attention.
#include <cmath>
#include <string>

#include "attention_graphs.hpp"
#include "check.hpp"
#include "ops/interpret.hpp"
#include "tests/support/parse_graph.hpp"

namespace bertcl::passes {

Pass lift_quantize();
Pass fuse_qkv();
namespace {

/// `x` [batch, 2, seq, 4] with each head twice, side by side, or all of them one after the other.
std::string repeated(const std::string& x, bool side_by_side = true) {
  const std::string apart = side_by_side ? "batch, 2, 1, seq, 4" : "batch, 1, 2, seq, 4";
  return "  %" + x + "1: f32[" + apart + "] = Reshape(%" + x + ")\n  %" + x +
         "2: f32[batch, 2, 2, seq, 4] = Expand(%" + x + "1)\n  %" + x +
         "4: f32[batch, 4, seq, 4] = Reshape(%" + x + "2)\n";
}
const std::string inputs =
    "graph g(%q: f32[batch, seq, 16], %v: f32[batch, seq, 8], %m: i64[batch, seq]) {\n"
    "  %k: f32[batch, seq, 8] = Slice(%q) {axes = [2], starts = [8], steps = [1]}\n";
/// Attention of four heads of queries, and two of keys and values that `keys` and `values` repeat.
std::string grouped(const std::string& keys, const std::string& values) {
  return inputs + std::string(additive) + R"(
  %qr: f32[batch, seq, 4, 4] = Reshape(%q)
  %qt: f32[batch, 4, seq, 4] = Transpose(%qr) {perm = [0, 2, 1, 3]}
  %kr: f32[batch, seq, 2, 4] = Reshape(%k)
  %kt: f32[batch, 2, seq, 4] = Transpose(%kr) {perm = [0, 2, 1, 3]}
  %vr: f32[batch, seq, 2, 4] = Reshape(%v)
  %vt: f32[batch, 2, seq, 4] = Transpose(%vr) {perm = [0, 2, 1, 3]}
)" + keys +
         values +
         R"(  %kn: f32[batch, 4, 4, seq] = Transpose(%kt4) {perm = [0, 1, 3, 2]}
  %0: f32[batch, 4, seq, seq] = MatMul(%qt, %kn)
  %s: f32[batch, 4, seq, seq] = Add(%0, %mask)
  %p: f32[batch, 4, seq, seq] = Softmax(%s) {axis = -1}
  %c: f32[batch, 4, seq, 4] = MatMul(%p, %vt4)
  %ct: f32[batch, seq, 4, 4] = Transpose(%c) {perm = [0, 2, 1, 3]}
  %y: f32[batch, seq, 16] = Reshape(%ct)
  return %y
})";
}

TEST(SharedKeyHeads, AreReadWhereTheyAre) {
  EXPECT_REWRITE(find_attention(), grouped(repeated("kt"), repeated("vt")), inputs + R"(
  %y: f32[batch, seq, 16] = attention(%q, %k, %v, %m) {heads = 4, key_heads = 2, p_type = "f32", scale = 1.0}
  return %y
})");
}

TEST(SharedKeyHeads, OneAfterTheOtherStay) {
  EXPECT_UNCHANGED(find_attention(), grouped(repeated("kt", false), repeated("vt", false)));
  EXPECT_UNCHANGED(find_attention(), grouped(repeated("kt"), repeated("vt", false)));
}

TEST(SharedKeyHeads, RepeatedRowsStay) {
  // The places of sequences, which lie where heads would: their number is the same by chance.
  std::string text = grouped(repeated("kt"), repeated("vt"));
  for (std::size_t at; (at = text.find("seq")) != std::string::npos;) text.replace(at, 3, "2");
  EXPECT_THAT(after(find_attention(), text), HasSubstr("key_heads"));
  EXPECT_UNCHANGED(
      find_attention(),
      replaced(replaced(text, "%kt1: f32[batch, 2, 1, 2, 4] = Reshape(%kt)",
                        "%kt1: f32[batch, 2, 1, 2, 4] = Reshape(%kr)"),
               "%kt: f32[batch, 2, 2, 4] = Transpose(%kr) {perm = [0, 2, 1, 3]}\n", ""));
}

TEST(SharedKeyHeads, ComputeTheSame) {
  ir::Graph g = ir::parse(grouped(repeated("kt"), repeated("vt")));
  const auto ramp = [](ir::Sizes sizes, double step) {
    std::vector<double> values(static_cast<std::size_t>(ir::element_count(sizes)));
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = std::sin(static_cast<double>(i) * step);
    return ir::Tensor::of(std::move(sizes), std::move(values)).converted(ir::DType::f32);
  };
  const ops::Tensors values{{"q", ramp({2, 3, 16}, 0.7)},
                            {"v", ramp({2, 3, 8}, 0.3)},
                            {"m", ir::Tensor::of<std::int64_t>({2, 3}, {1, 1, 1, 1, 1, 0})}};
  const auto before = ops::interpret(g, values).at(0).to_doubles();
  ASSERT_TRUE(find_attention().run(g));
  const auto found = ops::interpret(g, values).at(0).to_doubles();
  for (std::size_t i = 0; i < before.size(); ++i) ASSERT_NEAR(found[i], before[i], 1e-6) << i;
}

TEST(SharedKeyHeads, QuantizationMovesAboveThem) {
  const std::string heads = R"(graph g(%x: f32[batch, seq, 8]) {
  %r: f32[batch, seq, 2, 4] = Reshape(%x)
  %vt: f32[batch, 2, seq, 4] = Transpose(%r) {perm = [0, 2, 1, 3]}
)";
  const std::string quantized = R"(
  const %s: f32[] = 0.125
  %q: u8[batch, 4, seq, 4] = QuantizeLinear(%vt4, %s)
  %d: f32[batch, 4, seq, 4] = DequantizeLinear(%q, %s)
  return %d as y
})";
  const std::string lifted = R"(graph g(%x: f32[batch, seq, 8]) {
  const %s: f32[] = 0.125
  %q: u8[batch, seq, 8] = QuantizeLinear(%x, %s)
  %d: f32[batch, seq, 8] = DequantizeLinear(%q, %s)
)";
  EXPECT_REWRITE(lift_quantize(), heads + repeated("vt") + quantized,
                 lifted + replaced(heads.substr(heads.find("  %r")), "%x", "%d") + repeated("vt") +
                     "  return %vt4 as y\n}");
  EXPECT_UNCHANGED(lift_quantize(), heads + repeated("vt", false) + quantized);
}

TEST(SharedKeyHeads, NarrowerLinearsAreOneWithThatOfTheQueries) {
  EXPECT_REWRITE(fuse_qkv(), R"(graph g(%x: f32[batch, seq, 2]) {
  const %wq: f32[2, 2] = [1, 2, 3, 4]  const %wk: f32[2, 1] = [5, 6]  const %wv: f32[2, 1] = [7, 8]
  %q: f32[batch, seq, 2] = linear(%x, %wq)
  %k: f32[batch, seq, 1] = linear(%x, %wk)
  %v: f32[batch, seq, 1] = linear(%x, %wv)
  %y: f32[batch, seq, 2] = attention(%q, %k, %v, _) {heads = 2, key_heads = 1, p_type = "f32", scale = 0.5}
  return %y as y
})",
                 R"(graph g(%x: f32[batch, seq, 2]) {
  const %w: f32[2, 4] = [1, 2, 5, 7, 3, 4, 6, 8]
  %qkv: f32[batch, seq, 4] = linear(%x, %w)
  %y: f32[batch, seq, 2] = attention(%qkv, %qkv, %qkv, _) {heads = 2, key_heads = 1, offsets = [0, 2, 3], p_type = "f32", scale = 0.5}
  return %y as y
})");
}

}  // namespace
}  // namespace bertcl::passes
