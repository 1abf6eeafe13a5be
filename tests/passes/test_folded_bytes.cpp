// SPDX-License-Identifier: Apache-2.0
// Constants that double and double are refused before they fill the memory.
#include <fmt/format.h>

#include "bertcl/error.hpp"
#include "check.hpp"
#include "tests/support/parse_graph.hpp"

namespace bertcl::passes {

Pass fold_constants(const ir::Limits& limits);
namespace {

/// Two constants that are concatenated in both orders, again and again: 2^levels times the first.
ir::Graph doubling(int levels, int elements) {
  std::string text = fmt::format(
      "graph g(%x: f32[1]) {{\n  const %a0: f32[{0}] = splat 1\n  const %b0: f32[{0}] = splat 2\n",
      elements);
  std::int64_t n = elements;
  for (int i = 0; i < levels; ++i) {
    n *= 2;
    text += fmt::format(
        "  %a{1}: f32[{2}] = Concat(%a{0}, %b{0}) {{axis = 0}}\n"
        "  %b{1}: f32[{2}] = Concat(%b{0}, %a{0}) {{axis = 0}}\n",
        i, i + 1, n);
  }
  return ir::parse(text + fmt::format("  %y: f32[{1}] = Add(%a{0}, %x)\n"
                                      "  %z: f32[{1}] = Add(%b{0}, %y)\n  return %z as z\n}}",
                                      levels, n));
}

TEST(FoldedBytes, AreLimited) {
  ir::Graph graph = doubling(30, 1000);
  EXPECT_ERROR(AllOf(HasSubstr("Concat"), HasSubstr("'max_memory'")),
               fold_constants({}).run(graph));
}

TEST(FoldedBytes, ByMaxMemory) {
  ir::Limits limits{.memory = 2 * 4 * 1000 * (2 + 4 + 8)};
  ir::Graph fits = doubling(3, 1000), exceeds = doubling(4, 1000);
  EXPECT_TRUE(fold_constants(limits).run(fits));
  EXPECT_THROW(fold_constants(limits).run(exceeds), Error);
}

}  // namespace
}  // namespace bertcl::passes
