// SPDX-License-Identifier: Apache-2.0
// Shape arithmetic, which the types tell.
#include "check.hpp"

namespace bertcl::passes {

Pass resolve_shapes();
namespace {

TEST(ResolveShapes, ReshapeByShapeArithmeticTakesTheShapeFromItsType) {
  EXPECT_REWRITE(resolve_shapes(), R"(graph g(%x: f32[batch, seq, 8]) {
  %s: i64[3] = Shape(%x)
  const %zero: i64[1] = [0]  const %one: i64[1] = [1]
  %b: i64[1] = Gather(%s, %zero) {axis = 0}
  %t: i64[1] = Gather(%s, %one) {axis = 0}
  const %heads: i64[2] = [2, 4]
  %c: i64[4] = Concat(%b, %t, %heads) {axis = 0}
  %y: f32[n0, n1, n2, n3] = Reshape(%x, %c)
  return %y as y
})",
                 R"(graph g(%x: f32[batch, seq, 8]) {
  %y: f32[batch, seq, 2, 4] = Reshape(%x)
  return %y as y
})");
}

TEST(ResolveShapes, ADimensionThatIsANumberBecomesAConstant) {
  EXPECT_DIFF(resolve_shapes(), R"(graph g(%x: f32[batch, 8]) {
- %s: i64[2] = Shape(%x)
- const %one: i64[] = 1
- %d: i64[] = Gather(%s, %one) {axis = 0}
+ const %d: i64[] = 8
  %f: f32[] = Cast(%d) {to = "f32"}
  %y: f32[batch, 8] = Div(%x, %f)
  return %y as y
})");
}

TEST(ResolveShapes, AShapeThatOnlyTheCallerReadsHasNoOpEither) {
  EXPECT_DIFF(resolve_shapes(), R"(graph g(%x: f32[batch, 8]) {
- %s: i64[2] = Shape(%x)
- %n: i64[] = Size(%x)
+ %s: i64[2] = sizes() {values = "[batch, 8]"}
+ %n: i64[] = sizes() {values = "[8*batch]"}
  return %s as shape, %n as size
})");
  EXPECT_REWRITE(resolve_shapes(),
                 "graph g(%x: f32[3, 8]) { %s: i64[2] = Shape(%x) return %s as y }",
                 "graph g(%x: f32[3, 8]) { const %s: i64[2] = [3, 8] return %s as y }");
}

}  // namespace
}  // namespace bertcl::passes
