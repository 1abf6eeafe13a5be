// SPDX-License-Identifier: Apache-2.0
// One pass on a graph written as text, compared with the graph that should come out.
#pragma once
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "ir/text.hpp"
#include "ops/verify.hpp"
#include "passes/pass.hpp"
#include "tests/support/matchers.hpp"
#include "tests/support/parse_graph.hpp"

namespace bertcl::passes {

/// The text of `before` after the pass, results numbered anew; verified.
inline std::string after(const Pass& pass, std::string_view before) {
  ir::Graph g = ir::parse(before);
  pass.run(g);
  g.remove_dead();
  ir::verify(g, pass.name);
  ops::verify(g, pass.name);
  return ir::print(g, {.renumber = true});
}

/// `text` in the printer's own form, results numbered anew.
inline std::string normal(std::string_view text) {
  return ir::print(ir::parse(text), {.renumber = true});
}

/// `text` with `to` in the place of `from`. Throws unless that is there exactly once: else a test
/// of a changed graph would be one of the same graph.
inline std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  if (at == std::string_view::npos || text.find(from, at + 1) != std::string_view::npos)
    throw std::invalid_argument("not exactly once in the graph: " + std::string(from));
  return std::string(text).replace(at, from.size(), to);
}

/// Two graphs as one text: lines that begin with "- " are only in the first, with "+ " only in the
/// second. Throws if they are the same but for the names of results.
inline std::pair<std::string, std::string> both(const std::string& text) {
  std::pair<std::string, std::string> graphs;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const bool only_first = line.starts_with("- "), only_second = line.starts_with("+ ");
    if (only_first || only_second) line[0] = ' ';
    if (!only_second) graphs.first += line + '\n';
    if (!only_first) graphs.second += line + '\n';
  }
  if (normal(graphs.first) == normal(graphs.second))
    throw std::invalid_argument("nothing differs in: " + text);
  return graphs;
}

#define EXPECT_REWRITE(pass, before, expected) EXPECT_EQ(after((pass), (before)), normal(expected))
#define EXPECT_DIFF(pass, text) EXPECT_REWRITE(pass, both(text).first, both(text).second)
#define EXPECT_UNCHANGED(pass, before) EXPECT_EQ(after((pass), (before)), normal(before))

}  // namespace bertcl::passes
