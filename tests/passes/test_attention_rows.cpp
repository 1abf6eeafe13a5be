// SPDX-License-Identifier: Apache-2.0
// Attention is found over the rows of one input alone.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "attention_graphs.hpp"
#include "check.hpp"

namespace bertcl::passes {
namespace {

/// Attention without a mask over each of these lengths.
std::string unmasked(const std::vector<std::string>& lengths) {
  std::string inputs = "%n: i64[batch, k], %ids: i64[batch, seq]", nodes, returned;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    inputs += fmt::format(", %x{0}: f32[batch, {1}, 8]", i, lengths[i]);
    nodes += fmt::format(R"(
  %r{0}: f32[batch, {1}, 2, 4] = Reshape(%x{0})
  %q{0}: f32[batch, 2, {1}, 4] = Transpose(%r{0}) {{perm = [0, 2, 1, 3]}}
  %k{0}: f32[batch, 2, 4, {1}] = Transpose(%r{0}) {{perm = [0, 2, 3, 1]}}
  %s{0}: f32[batch, 2, {1}, {1}] = MatMul(%q{0}, %k{0})
  %p{0}: f32[batch, 2, {1}, {1}] = Softmax(%s{0}) {{axis = -1}}
  %c{0}: f32[batch, 2, {1}, 4] = MatMul(%p{0}, %q{0})
  %t{0}: f32[batch, {1}, 2, 4] = Transpose(%c{0}) {{perm = [0, 2, 1, 3]}}
  %y{0}: f32[batch, {1}, 8] = Reshape(%t{0}))",
                         i, lengths[i]);
    returned += fmt::format("{}%y{}", returned.empty() ? "" : ", ", i);
  }
  return fmt::format("graph g({}) {{{}\n  return {}\n}}", inputs, nodes, returned);
}

TEST(AttentionRows, AnInputHasThem) {
  EXPECT_UNCHANGED(find_attention(), unmasked({"4"}));
  const std::string text = after(find_attention(), unmasked({"seq"}));
  EXPECT_THAT(text, HasSubstr("attention(%x0, "));
}

TEST(AttentionRows, AllAreThoseOfTheFirst) {
  const std::string text = after(find_attention(), unmasked({"seq", "k", "seq"}));
  EXPECT_THAT(text, HasSubstr("attention(%x0, "));
  EXPECT_THAT(text, Not(HasSubstr("attention(%x1, ")));
  EXPECT_THAT(text, HasSubstr("attention(%x2, "));
}

}  // namespace
}  // namespace bertcl::passes
