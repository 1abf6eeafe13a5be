// SPDX-License-Identifier: Apache-2.0
// Linears of one operand side by side.
#include "check.hpp"
#include "tests/support/parse_graph.hpp"

namespace bertcl::passes {

Pass fuse_qkv();
namespace {

TEST(FuseQkv, WeightsAndParametersSideBySide) {
  EXPECT_REWRITE(fuse_qkv(), R"(graph g(%x: u8[batch, seq, 2], %m: i64[batch, seq]) {
  const %s: f32[] = 0.5  const %z: u8[] = 3  const %wq: i8[2, 2] = [1, 2, 3, 4]
  const %bq: f32[2] = [0.5, 1]  const %wk: i8[2, 2] = [5, 6, 7, 8]  const %bk: f32[2] = [1.5, 2]
  const %wv: i8[2, 2] = [9, 10, 11, 12]  const %bv: f32[2] = [2.5, 3]
  const %sk: f32[2] = [0.25, 0.125]  const %z2: u8[] = 4
  %q: u8[batch, seq, 2] = linear_q(%x, %wq, %bq, %s, %z, %s, %s, %z)
  %k: u8[batch, seq, 2] = linear_q(%x, %wk, %bk, %s, %z, %sk, %s, %z2)
  %v: u8[batch, seq, 2] = linear_q(%x, %wv, %bv, %s, %z, %s, %s, _)
  %y: f32[batch, seq, 2] = attention_q(%q, %k, %v, %m, %s, %s, %z, %s, %z, %s, %z) {heads = 1, p_type = "u8", scale = 0.5}
  return %y as y
})",
                 R"(graph g(%x: u8[batch, seq, 2], %m: i64[batch, seq]) {
  const %wq.qkv: i8[2, 6] = ...  const %bq.qkv: f32[6] = [0.5, 1, 1.5, 2, 2.5, 3]
  const %s: f32[] = 0.5  const %z: u8[] = 3
  const %s_0.qkv: f32[6] = [0.5, 0.5, 0.25, 0.125, 0.5, 0.5]
  const %s_1.qkv: f32[6] = [0.5, 0.5, 0.5, 0.5, 0.5, 0.5]
  const %z_0.qkv: u8[6] = [3, 3, 4, 4, 0, 0]
  %qkv: u8[batch, seq, 6] = linear_q(%x, %wq.qkv, %bq.qkv, %s, %z, %s_0.qkv, %s_1.qkv, %z_0.qkv)
  %y: f32[batch, seq, 2] = attention_q(%qkv, %qkv, %qkv, %m, %s, %s, %z, %s, %z, %s, %z) {heads = 1, offsets = [0, 2, 4], p_type = "u8", scale = 0.5}
  return %y as y
})");
}

TEST(FuseQkv, ColumnsOfTheWeightsAlternateByRow) {
  ir::Graph g = ir::parse(R"(graph g(%x: f32[batch, seq, 2]) {
  const %wq: f32[2, 2] = [1, 2, 3, 4]  const %wk: f32[2, 2] = [5, 6, 7, 8]
  const %wv: f32[2, 2] = [9, 10, 11, 12]
  %q: f32[batch, seq, 2] = linear(%x, %wq)
  %k: f32[batch, seq, 2] = linear(%x, %wk)
  %v: f32[batch, seq, 2] = linear(%x, %wv)
  %y: f32[batch, seq, 2] = attention(%q, %k, %v, _) {heads = 1, p_type = "f32", scale = 0.5}
  return %y as y
})");
  ASSERT_TRUE(fuse_qkv().run(g));
  g.remove_dead();
  EXPECT_EQ(g.nodes().front()->inputs[1]->constant->to_doubles(),
            (std::vector<double>{1, 2, 5, 6, 9, 10, 3, 4, 7, 8, 11, 12}));
}

TEST(FuseQkv, PartsOfOneLinearAreReadInPlace) {
  const std::string split = R"(graph g(%x: f32[batch, seq, 2]) {
  const %w: f32[2, 6] = ...
  %qkv: f32[batch, seq, 6] = linear(%x, %w)
  %q: f32[batch, seq, 2], %k: f32[batch, seq, 2], %v: f32[batch, seq, 2] = Split(%qkv) {axis = 2, split = [2, 2, 2]}
)";
  const auto in_place = [](const std::string& offsets) {
    return R"(graph g(%x: f32[batch, seq, 2]) {
  const %w: f32[2, 6] = ...
  %qkv: f32[batch, seq, 6] = linear(%x, %w)
  %y: f32[batch, seq, 2] = attention(%qkv, %qkv, %qkv, _) {heads = 1, offsets = [)" +
           offsets + R"(], p_type = "f32", scale = 0.5}
  return %y as y
})";
  };
  for (const auto& [operands, offsets] :
       {std::pair("%q, %k, %v", "0, 2, 4"), std::pair("%v, %q, %k", "4, 0, 2")})
    EXPECT_REWRITE(fuse_qkv(),
                   split + "  %y: f32[batch, seq, 2] = attention(" + operands +
                       ", _) {heads = 1, p_type = \"f32\", scale = 0.5}\n  return %y as y\n}",
                   in_place(offsets));
  EXPECT_UNCHANGED(
      fuse_qkv(),
      split +
          R"(  %y: f32[batch, seq, 2] = attention(%q, %k, %x, _) {heads = 1, p_type = "f32", scale = 0.5}
  return %y as y
})");
}

TEST(FuseQkv, ScoresOfPositionsReadTheSameLinear) {
  const std::string scores = R"(graph g(%x: f32[batch, seq, 2], %i: i32[1, 1, seq, seq]) {
  const %wq: f32[2, 2] = ...  const %wk: f32[2, 2] = ...  const %wv: f32[2, 2] = ...
  const %p: f32[1, 2, 3] = ...
  %q: f32[batch, seq, 2] = linear(%x, %wq)
  %k: f32[batch, seq, 2] = linear(%x, %wk)
  %v: f32[batch, seq, 2] = linear(%x, %wv)
  %c: f32[batch, 1, seq, seq] = position_scores(%q, %p, %i) {heads = 1, scale = 0.5}
  %b: f32[batch, 1, seq, seq] = position_scores(%k, %p, %i, %c) {heads = 1, of_keys = 1, scale = 0.5}
  %y: f32[batch, seq, 2] = attention(%q, %k, %v, _, _, _, _, _, %b) {heads = 1, p_type = "f32", scale = 0.5}
)";
  EXPECT_REWRITE(fuse_qkv(), scores + "  return %y as y\n}",
                 R"(graph g(%x: f32[batch, seq, 2], %i: i32[1, 1, seq, seq]) {
  const %wq.qkv: f32[2, 6] = ...  const %p: f32[1, 2, 3] = ...
  %qkv: f32[batch, seq, 6] = linear(%x, %wq.qkv)
  %c: f32[batch, 1, seq, seq] = position_scores(%qkv, %p, %i) {heads = 1, offset = 0, scale = 0.5}
  %b: f32[batch, 1, seq, seq] = position_scores(%qkv, %p, %i, %c) {heads = 1, of_keys = 1, offset = 2, scale = 0.5}
  %y: f32[batch, seq, 2] = attention(%qkv, %qkv, %qkv, _, _, _, _, _, %b) {heads = 1, offsets = [0, 2, 4], p_type = "f32", scale = 0.5}
  return %y as y
})");
  EXPECT_UNCHANGED(fuse_qkv(), scores +
                                   "  %r: f32[batch, seq, 2] = Relu(%k)\n  return %y as y, %r "
                                   "as r\n}");
}

TEST(FuseQkv, LinearsOfDifferentOperandsStay) {
  EXPECT_UNCHANGED(fuse_qkv(), R"(graph g(%x: f32[batch, seq, 2], %o: f32[batch, seq, 2]) {
  const %w: f32[2, 2] = ...
  %q: f32[batch, seq, 2] = linear(%x, %w)
  %k: f32[batch, seq, 2] = linear(%o, %w)
  %v: f32[batch, seq, 2] = linear(%o, %w)
  %y: f32[batch, seq, 2] = attention(%q, %k, %v, _) {heads = 1, p_type = "f32", scale = 0.5}
  return %y as y
})");
}

}  // namespace
}  // namespace bertcl::passes
