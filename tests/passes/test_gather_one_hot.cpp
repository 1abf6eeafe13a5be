// SPDX-License-Identifier: Apache-2.0
// Segment embeddings as TensorFlow's BERT writes them.
#include "check.hpp"

namespace bertcl::passes {

Pass gather_one_hot();
namespace {

TEST(GatherOneHot, ALookUpWrittenAsAMatMul) {
  EXPECT_REWRITE(gather_one_hot(), R"(graph g(%ids: i64[batch, seq], %table: f32[2, 64]) {
  const %depth: i64[] = 2  const %values: f32[2] = [0, 1]
  %a: f32[batch, seq, 2] = OneHot(%ids, %depth, %values) {axis = -1}
  %y: f32[batch, seq, 64] = MatMul(%a, %table)
  return %y as y
})",
                 R"(graph g(%ids: i64[batch, seq], %table: f32[2, 64]) {
  %y: f32[batch, seq, 64] = Gather(%table, %ids) {axis = 0}
  return %y as y
})");
}

TEST(GatherOneHot, OtherValuesStayAMatMul) {
  EXPECT_UNCHANGED(gather_one_hot(), R"(graph g(%ids: i64[batch, seq], %table: f32[2, 64]) {
  const %depth: i64[] = 2  const %values: f32[2] = [0, 2]
  %a: f32[batch, seq, 2] = OneHot(%ids, %depth, %values) {axis = -1}
  %y: f32[batch, seq, 64] = MatMul(%a, %table)
  return %y as y
})");
}

TEST(GatherOneHot, IdsOfTypesThatGatherDoesNotTakeStayAMatMul) {
  for (const char* type : {"u8", "f32"})
    EXPECT_UNCHANGED(gather_one_hot(),
                     replaced(R"(graph g(%ids: TYPE[batch, seq], %table: f32[2, 64]) {
  const %depth: i64[] = 2  const %values: f32[2] = [0, 1]
  %a: f32[batch, seq, 2] = OneHot(%ids, %depth, %values) {axis = -1}
  %y: f32[batch, seq, 64] = MatMul(%a, %table)
  return %y as y
})",
                              "TYPE", type));
}

}  // namespace
}  // namespace bertcl::passes
