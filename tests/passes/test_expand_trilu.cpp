// SPDX-License-Identifier: Apache-2.0
// Trilu that is left becomes a choice by the places of rows and columns.
#include <limits>

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
  const %k: i64[] = 0
  const %zero: f32[] = 0
  %rows: i64[seq] = Range() {start = 0, step = 1}
  %row: i64[seq, 1] = Reshape(%rows)
  %column: i64[3] = Range() {start = 0, step = 1}
  %diagonal: i64[seq, 3] = Sub(%column, %row)
  %kept: bool[seq, 3] = LessOrEqual(%diagonal, %k)
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
  %column: i64[seq] = Range() {start = 0, step = 1}
  %diagonal: i64[2, seq] = Sub(%column, %row)
  %kept: bool[2, seq] = LessOrEqual(%k, %diagonal)
  %y: i64[2, seq] = Where(%kept, %x, %zero)
  return %y as y
})");
}

TEST(ExpandTrilu, GivesWhatTheOperatorGives) {
  constexpr std::int64_t last = std::numeric_limits<std::int64_t>::max();
  for (const std::string type : {"f32", "bool"})
    for (const std::string upper : {"0", "1"})
      for (const std::int64_t k : {-last, std::int64_t{-2}, std::int64_t{-1}, std::int64_t{0},
                                   std::int64_t{1}, std::int64_t{3}, last}) {
        const std::string of_x = type + "[2, 3, 4]";
        const std::string text = "graph g(%x: " + of_x + ", %k: i64[1]) {\n  %y: " + of_x +
                                 " = Trilu(%x, %k) {upper = " + upper + "}\n  return %y as y\n}";
        std::vector<float> values(24);
        for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) + 1;
        const ir::Tensor x = ir::Tensor::of<float>({2, 3, 4}, values);
        const ops::Tensors inputs{{"x", type == "f32" ? x : x.converted(ir::DType::boolean)},
                                  {"k", ir::Tensor::of<std::int64_t>({1}, {k})}};
        ir::Graph expanded = ir::parse(text);
        ASSERT_TRUE(expand_trilu().run(expanded));
        EXPECT_EQ(ops::interpret(expanded, inputs)[0].to_doubles(),
                  ops::interpret(ir::parse(text), inputs)[0].to_doubles())
            << type << ", upper " << upper << ", k " << k;
      }
}

}  // namespace
}  // namespace bertcl::passes
