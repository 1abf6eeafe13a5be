// SPDX-License-Identifier: Apache-2.0
// Embedding tables that are stored in 8 bits.
#include "check.hpp"

namespace bertcl::passes {

Pass dequantize_tables();
namespace {

TEST(DequantizeTables, RowsAreReadInFloat) {
  EXPECT_REWRITE(dequantize_tables(), R"(graph g(%ids: i64[batch, seq]) {
  const %table: u8[3, 2] = [0, 1, 2, 3, 128, 255]  const %s: f32[] = 0.5  const %z: u8[] = 128
  %rows: u8[batch, seq, 2] = Gather(%table, %ids) {axis = 0}
  %y: f32[batch, seq, 2] = DequantizeLinear(%rows, %s, %z)
  return %y as y
})",
                 R"(graph g(%ids: i64[batch, seq]) {
  const %table.dequantized: f32[3, 2] = [-64, -63.5, -63, -62.5, 0, 63.5]
  %y: f32[batch, seq, 2] = Gather(%table.dequantized, %ids) {axis = 0}
  return %y as y
})");
}

// A scale for each column of the table would be one for each column of the result: not this pass.
TEST(DequantizeTables, AScaleForEachColumnStays) {
  EXPECT_UNCHANGED(dequantize_tables(), R"(graph g(%ids: i64[batch]) {
  const %table: u8[3, 2] = [0, 1, 2, 3, 4, 5]  const %s: f32[2] = [0.5, 0.25]
  %rows: u8[batch, 2] = Gather(%table, %ids) {axis = 0}
  %y: f32[batch, 2] = DequantizeLinear(%rows, %s) {axis = 1}
  return %y as y
})");
}

TEST(DequantizeTables, RowsOfTheCallerStay) {
  EXPECT_UNCHANGED(dequantize_tables(), R"(graph g(%table: u8[3, 2], %ids: i64[batch]) {
  const %s: f32[] = 0.5
  %rows: u8[batch, 2] = Gather(%table, %ids) {axis = 0}
  %y: f32[batch, 2] = DequantizeLinear(%rows, %s)
  return %y as y
})");
}

}  // namespace
}  // namespace bertcl::passes
