// SPDX-License-Identifier: Apache-2.0
// Trilu that is left becomes a choice by the places of rows and columns.
#include "check.hpp"
#include "ops/interpret.hpp"
#include "tests/support/parse_graph.hpp"

namespace bertcl::passes {

Pass expand_trilu();
namespace {

TEST(ExpandTrilu, OfTheLowerPart) {
  EXPECT_REWRITE(expand_trilu(), R"(graph g(%x: f32[batch, seq, 3]) {
  %y: f32[batch, seq, 3] = Trilu(%x) {upper = 0}
  return %y as y
})",
                 R"(graph g(%x: f32[batch, seq, 3]) {
  const %zero: f32[] = 0
  %rows: i64[seq] = Range() {start = 0, step = 1}
  %row: i64[seq, 1] = Reshape(%rows)
  %column: i64[3] = Range() {start = 0, step = 1}
  %kept: bool[seq, 3] = LessOrEqual(%column, %row)
  %y: f32[batch, seq, 3] = Where(%kept, %x, %zero)
  return %y as y
})");
}

TEST(ExpandTrilu, OfTheUpperPartFromADiagonal) {
  EXPECT_REWRITE(expand_trilu(), R"(graph g(%x: i64[2, seq], %k: i64[]) {
  %y: i64[2, seq] = Trilu(%x, %k) {upper = 1}
  return %y as y
})",
                 R"(graph g(%x: i64[2, seq], %k: i64[]) {
  const %zero: i64[] = 0
  %rows: i64[2] = Range() {start = 0, step = 1}
  %row: i64[2, 1] = Reshape(%rows)
  %diagonal: i64[2, 1] = Add(%row, %k)
  %column: i64[seq] = Range() {start = 0, step = 1}
  %kept: bool[2, seq] = LessOrEqual(%diagonal, %column)
  %y: i64[2, seq] = Where(%kept, %x, %zero)
  return %y as y
})");
}

TEST(ExpandTrilu, GivesWhatTheOperatorGives) {
  for (const std::string upper : {"0", "1"})
    for (const std::int64_t k : {-2, -1, 0, 1, 3, 9}) {
      const std::string text =
          "graph g(%x: f32[2, 3, 4], %k: i64[]) {\n  %y: f32[2, 3, 4] = Trilu(%x, %k) {upper = " +
          upper + "}\n  return %y as y\n}";
      std::vector<float> values(24);
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) + 1;
      const ops::Tensors inputs{{"x", ir::Tensor::of<float>({2, 3, 4}, values)},
                                {"k", ir::Tensor::of<std::int64_t>({}, {k})}};
      ir::Graph expanded = ir::parse(text);
      ASSERT_TRUE(expand_trilu().run(expanded));
      EXPECT_EQ(ops::interpret(expanded, inputs)[0].to_doubles(),
                ops::interpret(ir::parse(text), inputs)[0].to_doubles())
          << "upper " << upper << ", k " << k;
    }
}

}  // namespace
}  // namespace bertcl::passes
