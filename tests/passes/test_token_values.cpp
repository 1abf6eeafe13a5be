// SPDX-License-Identifier: Apache-2.0
// Which values have a row for each token, where the file fixes the length of sequences.
#include "passes/token_values.hpp"

#include "tests/support/matchers.hpp"
#include "tests/support/parse_graph.hpp"

namespace bertcl::passes {
namespace {

std::set<std::string> names_of_tokens(std::string_view text) {
  const ir::Graph graph = ir::parse(text);
  std::set<std::string> names;
  for (const ir::Value* value : values_of_tokens(graph)) names.insert(value->name);
  return names;
}

TEST(TokenValues, AreFollowedThroughEmbeddingAndAttention) {
  EXPECT_THAT(names_of_tokens(R"(graph g(%ids: i64[batch, 4], %mask: i64[batch, 4]) {
  const %word: f32[9, 4] = ...  const %position: f32[9, 4] = ...  const %gamma: f32[4] = ...
  %e: f32[batch, 4, 4] = embed_norm(%ids, _, _, %word, _, %position, %gamma, _) {epsilon = 0.5}
  %a: f32[batch, 4, 4] = attention(%e, %e, %e, %mask) {heads = 1, p_type = "f32", scale = 0.5}
  %y: f32[batch, 4, 4] = Relu(%a)
  %v: f32[batch, 4] = ReduceMean(%y) {axes = [1], keepdims = 0}
  return %y as y, %v as v
})"),
              UnorderedElementsAre("ids", "mask", "e", "a", "y"));
}

TEST(TokenValues, EndWhereTokensAreOthers) {
  EXPECT_THAT(names_of_tokens(R"(graph g(%ids: i64[batch, 4]) {
  const %table: f32[9, 4] = ...
  %x: f32[batch, 4, 4] = Gather(%table, %ids)
  %t: f32[batch, 4, 4] = Transpose(%x) {perm = [0, 2, 1]}
  return %t as t
})"),
              UnorderedElementsAre("ids", "x"));
}

}  // namespace
}  // namespace bertcl::passes
