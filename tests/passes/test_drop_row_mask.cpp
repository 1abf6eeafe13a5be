// SPDX-License-Identifier: Apache-2.0
// Embeddings that are made zero for padding, which attention hides anyway.
#include "check.hpp"

namespace bertcl::passes {

Pass drop_row_mask();
namespace {

/// An encoder whose rows are multiplied with `rows`, and what reads them as `reader`. `end`: nodes
/// after attention, if any, and the result.
std::string masked_rows(const std::string& rows, const std::string& reader,
                        const std::string& attention = "%m",
                        const std::string& end = "return %y as y",
                        const std::string& attributes = "heads = 1, ") {
  return R"(graph g(%x: f32[batch, seq, 4], %m: i64[batch, seq], %o: i64[batch, seq]) {
  const %gamma: f32[4] = ...  const %w: f32[4, 4] = ...  const %two: f32[] = 2
  %n: f32[batch, seq, 4] = LayerNormalization(%x, %gamma) {axis = -1, epsilon = 0.5}
  %u: i64[batch, seq, 1] = Unsqueeze(%m) {axes = [2]}
  %f: f32[batch, seq, 1] = Cast(%u) {to = "f32"}
  %f2: f32[batch, seq, 1] = Mul(%f, %two)
  %ou: i64[batch, seq, 1] = Unsqueeze(%o) {axes = [2]}
  %of: f32[batch, seq, 1] = Cast(%ou) {to = "f32"}
  %z: f32[batch, seq, 4] = )" +
         rows + R"(
  %l: f32[batch, seq, 4] = )" +
         reader + R"(
  %y: f32[batch, seq, 4] = attention(%l, %l, %l, )" +
         attention + ") {" + attributes + "p_type = \"f32\", scale = 0.5}\n  " + end + "\n}";
}

TEST(DropRowMask, RowsThatAttentionHides) {
  for (const char* rows : {"Mul(%n, %f)", "Mul(%f, %n)"})
    EXPECT_REWRITE(drop_row_mask(), masked_rows(rows, "linear(%z, %w)"),
                   R"(graph g(%x: f32[batch, seq, 4], %m: i64[batch, seq], %o: i64[batch, seq]) {
  const %gamma: f32[4] = ...  const %w: f32[4, 4] = ...
  %n: f32[batch, seq, 4] = LayerNormalization(%x, %gamma) {axis = -1, epsilon = 0.5}
  %l: f32[batch, seq, 4] = linear(%n, %w)
  %y: f32[batch, seq, 4] = attention(%l, %l, %l, %m) {heads = 1, masks_rows = 1, p_type = "f32", scale = 0.5}
  return %y as y
})");
}

TEST(DropRowMask, OtherFactorsReadersAndMasksStay) {
  const auto unchanged = [](const std::string& text) {
    return after(drop_row_mask(), text) == after({"none", [](ir::Graph&) { return false; }}, text);
  };
  EXPECT_TRUE(unchanged(masked_rows("Mul(%n, %f2)", "linear(%z, %w)"))) << "not 1";
  EXPECT_TRUE(unchanged(masked_rows("Mul(%n, %of)", "linear(%z, %w)"))) << "of another input";
  EXPECT_TRUE(unchanged(masked_rows("Mul(%x, %f)", "linear(%z, %w)"))) << "no LayerNormalization";
  EXPECT_TRUE(unchanged(masked_rows("Mul(%n, %f)", "Softmax(%z) {axis = 1}"))) << "mixes tokens";
  EXPECT_TRUE(unchanged(masked_rows("Mul(%n, %f)", "linear(%z, %w)", "_"))) << "attention has none";
  const auto usual = [&](const std::string& end, const std::string& attributes = "heads = 1, ") {
    return unchanged(masked_rows("Mul(%n, %f)", "linear(%z, %w)", "%m", end, attributes));
  };
  EXPECT_FALSE(usual("return %y as y"));
  EXPECT_TRUE(usual("return %z as y")) << "a result of the graph";
  EXPECT_TRUE(usual("return %y as y", "heads = 1, mask_is_length = 1, "));
  EXPECT_TRUE(usual(
      R"(%a: f32[batch, seq, 4] = attention(%y, %y, %y, %o) {heads = 1, p_type = "f32", scale = 0.5}
  return %a as y)"))
      << "another attention has another mask";
  const std::string reduction = "f32[batch, 4] = ReduceMean(%a) {axes = [1], keepdims = 0}\n";
  EXPECT_TRUE(usual("%a: f32[batch, seq, 4] = Relu(%y)\n  %r: " + reduction + "return %r as y"))
      << "padding counts";
  EXPECT_FALSE(
      usual("%a: f32[batch, seq, 4] = Mul(%y, %f)\n  %r: " + reduction + "return %r as y"));
}

}  // namespace
}  // namespace bertcl::passes
