// SPDX-License-Identifier: Apache-2.0
// Linears whose columns are taken apart.
#include <limits>

#include "check.hpp"
#include "passes/node_queries.hpp"
#include "tests/support/parse_graph.hpp"

namespace bertcl::passes {

Pass split_linear();
namespace {

/// A linear of two parts of `n` columns, the second without a Slice if it is read whole.
std::string gated(int n, std::string_view weight,
                  std::string_view second = "Slice(%y) {axes = [-1], starts = [") {
  const std::string half = std::to_string(n), both = std::to_string(2 * n);
  return "graph g(%x: f32[batch, seq, 1]) {\n" + std::string(weight) + "  %y: f32[batch, seq, " +
         both + "] = linear(%x, %w)\n  %a: f32[batch, seq, " + half +
         "] = Slice(%y) {axes = [-1], starts = [0], steps = [1]}\n  %b: f32[batch, seq, " + half +
         "] = " + std::string(second) + half + "]}\n  return %a as a, %b as b\n}";
}

/// "0, 1, .." from `first` on.
std::string numbers(int first, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += (i ? ", " : "") + std::to_string(first + i);
  return text;
}

TEST(SplitLinear, AGatedLinear) {
  EXPECT_REWRITE(split_linear(), gated(16, "  const %w: f32[1, 32] = [" + numbers(0, 32) + "]\n"),
                 "graph g(%x: f32[batch, seq, 1]) {\n"
                 "  const %w0: f32[1, 16] = [" +
                     numbers(0, 16) +
                     "]\n"
                     "  const %w1: f32[1, 16] = [" +
                     numbers(16, 16) +
                     "]\n"
                     "  %a: f32[batch, seq, 16] = linear(%x, %w0)\n"
                     "  %b: f32[batch, seq, 16] = linear(%x, %w1)\n"
                     "  return %a as a, %b as b\n}");
}

TEST(SplitLinear, WeightsWithAScaleForEachColumn) {
  EXPECT_REWRITE(
      split_linear(),
      gated(16, "  const %q: i8[1, 32] = [" + numbers(0, 32) + "]\n  const %s: f32[32] = [" +
                    numbers(50, 32) + "]\n  const %z: i8[32] = [" + numbers(0, 32) +
                    "]\n  %w: f32[1, 32] = DequantizeLinear(%q, %s, %z) {axis = 1}\n"),
      "graph g(%x: f32[batch, seq, 1]) {\n"
      "  const %q0: i8[1, 16] = [" +
          numbers(0, 16) +
          "]\n"
          "  const %s0: f32[16] = [" +
          numbers(50, 16) +
          "]\n"
          "  const %z0: i8[16] = [" +
          numbers(0, 16) +
          "]\n"
          "  const %q1: i8[1, 16] = [" +
          numbers(16, 16) +
          "]\n"
          "  const %s1: f32[16] = [" +
          numbers(66, 16) +
          "]\n"
          "  const %z1: i8[16] = [" +
          numbers(16, 16) +
          "]\n"
          "  %w0: f32[1, 16] = DequantizeLinear(%q0, %s0, %z0) {axis = 1}\n"
          "  %a: f32[batch, seq, 16] = linear(%x, %w0)\n"
          "  %w1: f32[1, 16] = DequantizeLinear(%q1, %s1, %z1) {axis = 1}\n"
          "  %b: f32[batch, seq, 16] = linear(%x, %w1)\n"
          "  return %a as a, %b as b\n}");
}

TEST(SplitLinear, AStartMayBeAnyInteger) {
  ir::Graph g = ir::parse(R"(graph g(%x: f32[batch, n], %ends: i64[1]) {
  const %start: i64[1] = [0]
  %y: f32[batch, m] = Slice(%x, %start, %ends)
  return %y
})");
  constexpr std::int64_t end_of_axis = std::numeric_limits<std::int64_t>::max();  // no double
  g.find_value("start")->constant = ir::Tensor::of<std::int64_t>({1}, {end_of_axis});
  EXPECT_EQ(only_integer(*g.find_value("y")->producer, "starts", 1), end_of_axis);
}

TEST(SplitLinear, FewColumnsAndOtherReadersKeepItWhole) {
  EXPECT_UNCHANGED(split_linear(), gated(8, "  const %w: f32[1, 16] = [" + numbers(0, 16) + "]\n"));
  EXPECT_UNCHANGED(split_linear(), "graph g(%x: f32[batch, seq, 1]) {\n  const %w: f32[1, 32] = [" +
                                       numbers(0, 32) + R"(]
  %y: f32[batch, seq, 32] = linear(%x, %w)
  %a: f32[batch, seq, 16] = Slice(%y) {axes = [-1], starts = [0]}
  %b: f32[batch, seq, 32] = Neg(%y)
  return %a as a, %b as b
})");
}

TEST(SplitLinear, AComputedScaleKeepsItWhole) {
  const auto scaled = [](const char* axis) {
    return gated(16, "  const %q: i8[1, 32] = [" + numbers(0, 32) + R"(]
  const %half: f32[1] = [0.5]
  %s: f32[1] = Neg(%half)
  %w: f32[1, 32] = DequantizeLinear(%q, %s) {axis = )" +
                         axis + "}\n");
  };
  EXPECT_UNCHANGED(split_linear(), scaled("0"));
  EXPECT_UNCHANGED(split_linear(), scaled("1"));
}

TEST(SplitLinear, ReadersOfOtherRanksKeepItWhole) {
  EXPECT_UNCHANGED(split_linear(), "graph g(%x: f32[batch, seq, 1]) {\n  const %w: f32[1, 32] = [" +
                                       numbers(0, 32) + R"(]
  %y: f32[batch, seq, 32] = linear(%x, %w)
  %q: u8[batch, seq, 32], %s: f32[], %z: u8[] = DynamicQuantizeLinear(%y)
  return %q as q, %s as s, %z as z
})");
}

TEST(SplitLinear, QueriesKeysAndValuesOnAnAxis) {
  EXPECT_REWRITE(split_linear(), R"(graph g(%x: f32[batch, seq, 1]) {
  const %w: f32[1, 6] = [0, 1, 2, 3, 4, 5]  const %bias: f32[6] = [6, 7, 8, 9, 10, 11]
  %y: f32[batch, seq, 6] = linear(%x, %w, %bias)
  %r: f32[batch, seq, 3, 2, 1] = Reshape(%y)
  %s0: f32[batch, seq, 1, 2, 1], %s1: f32[batch, seq, 1, 2, 1], %s2: f32[batch, seq, 1, 2, 1] = Split(%r) {axis = 2}
  %q: f32[batch, seq, 2, 1] = Squeeze(%s0) {axes = [2]}
  %k: f32[batch, seq, 2, 1] = Squeeze(%s1) {axes = [2]}
  %v: f32[batch, seq, 2, 1] = Squeeze(%s2) {axes = [2]}
  return %q as q, %k as k, %v as v
})",
                 R"(graph g(%x: f32[batch, seq, 1]) {
  const %w0: f32[1, 2] = [0, 1]  const %b0: f32[2] = [6, 7]  const %w1: f32[1, 2] = [2, 3]
  const %b1: f32[2] = [8, 9]  const %w2: f32[1, 2] = [4, 5]  const %b2: f32[2] = [10, 11]
  %q: f32[batch, seq, 2] = linear(%x, %w0, %b0)
  %qh: f32[batch, seq, 2, 1] = Reshape(%q)
  %k: f32[batch, seq, 2] = linear(%x, %w1, %b1)
  %kh: f32[batch, seq, 2, 1] = Reshape(%k)
  %v: f32[batch, seq, 2] = linear(%x, %w2, %b2)
  %vh: f32[batch, seq, 2, 1] = Reshape(%v)
  return %qh as q, %kh as k, %vh as v
})");
}

/// Queries, keys and values, transposed before they are taken apart along `axis`.
std::string transposed_heads(const std::string& perm, const std::string& whole,
                             const std::string& part, const std::string& heads,
                             const std::string& axis) {
  std::string text = R"(graph g(%x: f32[batch, seq, 1]) {
  const %w: f32[1, 6] = [0, 1, 2, 3, 4, 5]
  %y: f32[batch, seq, 6] = linear(%x, %w)
  %r: f32[batch, seq, 3, 2, 1] = Reshape(%y)
  %t: f32[)" + whole +
                     "] = Transpose(%r) {perm = [" + perm + "]}\n  ";
  for (const char* name : {"%s0", "%s1", "%s2"})
    text += (name[2] == '0' ? "" : ", ") + std::string(name) + ": f32[" + part + "]";
  text += " = Split(%t) {axis = " + axis + "}\n";
  for (const char* i : {"0", "1", "2"})
    text += "  %h" + std::string(i) + ": f32[" + heads + "] = Squeeze(%s" + i + ") {axes = [" +
            axis + "]}\n";
  return text + "  return %h0 as q, %h1 as k, %h2 as v\n}";
}

TEST(SplitLinear, QueriesKeysAndValuesOnAnAxisThatWasTransposed) {
  const auto expected = [](const std::string& perm, const std::string& heads) {
    std::string text = "graph g(%x: f32[batch, seq, 1]) {\n";
    for (const char* i : {"0, 1", "2, 3", "4, 5"})
      text += "  const %w" + std::string(1, i[0]) + ": f32[1, 2] = [" + i + "]\n";
    for (const std::string i : {"0", "2", "4"})
      text += "  %y" + i + ": f32[batch, seq, 2] = linear(%x, %w" + i + ")\n  %r" + i +
              ": f32[batch, seq, 2, 1] = Reshape(%y" + i + ")\n  %h" + i + ": f32[" + heads +
              "] = Transpose(%r" + i + ") {perm = [" + perm + "]}\n";
    return text + "  return %h0 as q, %h2 as k, %h4 as v\n}";
  };
  EXPECT_REWRITE(split_linear(),
                 transposed_heads("0, 3, 2, 1, 4", "batch, 2, 3, seq, 1", "batch, 2, 1, seq, 1",
                                  "batch, 2, seq, 1", "2"),
                 expected("0, 2, 1, 3", "batch, 2, seq, 1"));
  EXPECT_REWRITE(split_linear(),
                 transposed_heads("2, 0, 3, 1, 4", "3, batch, 2, seq, 1", "1, batch, 2, seq, 1",
                                  "batch, 2, seq, 1", "0"),
                 expected("0, 2, 1, 3", "batch, 2, seq, 1"));
}

TEST(SplitLinear, QueriesAndKeysThatAreTransposedAfterTheSplit) {
  EXPECT_REWRITE(split_linear(), R"(graph g(%x: f32[batch, seq, 1]) {
  const %w: f32[1, 4] = [0, 1, 2, 3]
  %y: f32[batch, seq, 4] = linear(%x, %w)
  %r: f32[batch, seq, 2, 2, 1] = Reshape(%y)
  %s0: f32[batch, seq, 1, 2, 1], %s1: f32[batch, seq, 1, 2, 1] = Split(%r) {axis = 2}
  %t0: f32[batch, 2, 1, seq, 1] = Transpose(%s0) {perm = [0, 3, 2, 1, 4]}
  %q: f32[batch, 2, seq, 1] = Squeeze(%t0) {axes = [2]}
  %k: f32[batch, seq, 2, 1] = Squeeze(%s1) {axes = [2]}
  return %q as q, %k as k
})",
                 R"(graph g(%x: f32[batch, seq, 1]) {
  const %w0: f32[1, 2] = [0, 1]  const %w1: f32[1, 2] = [2, 3]
  %y0: f32[batch, seq, 2] = linear(%x, %w0)
  %r0: f32[batch, seq, 2, 1] = Reshape(%y0)
  %q: f32[batch, 2, seq, 1] = Transpose(%r0) {perm = [0, 2, 1, 3]}
  %y1: f32[batch, seq, 2] = linear(%x, %w1)
  %k: f32[batch, seq, 2, 1] = Reshape(%y1)
  return %q as q, %k as k
})");
}

TEST(SplitLinear, ATransposeWithOtherReadersKeepsItWhole) {
  EXPECT_UNCHANGED(split_linear(), R"(graph g(%x: f32[batch, seq, 1]) {
  const %w: f32[1, 4] = [0, 1, 2, 3]
  %y: f32[batch, seq, 4] = linear(%x, %w)
  %r: f32[batch, seq, 2, 2, 1] = Reshape(%y)
  %t: f32[batch, 2, 2, seq, 1] = Transpose(%r) {perm = [0, 3, 2, 1, 4]}
  %s0: f32[batch, 2, 1, seq, 1], %s1: f32[batch, 2, 1, seq, 1] = Split(%t) {axis = 2}
  %q: f32[batch, 2, seq, 1] = Squeeze(%s0) {axes = [2]}
  %k: f32[batch, 2, seq, 1] = Squeeze(%s1) {axes = [2]}
  %n: f32[batch, seq, 2, 2, 1] = Neg(%r)
  return %q as q, %k as k, %n as n
})");
}

TEST(SplitLinear, HeadsThatAreOutputsOfTheGraphStay) {
  const auto graph = [](const std::string& rest) {
    return "graph g(%x: f32[batch, seq, 1]) {\n  const %w: f32[1, 48] = [" + numbers(0, 48) +
           "]\n  %y: f32[batch, seq, 48] = linear(%x, %w)\n"
           "  %h: f32[batch, seq, 3, 2, 8] = Reshape(%y)\n" +
           rest + "\n}";
  };
  std::string parts, all;
  for (const char* n : {"0", "1", "2"}) {
    parts += std::string("  %p") + n +
             ": f32[batch, seq, 1, 2, 8] = Slice(%h) {axes = [2], starts = [" + n +
             "], steps = [1]}\n";
    all += std::string(all.empty() ? "" : ", ") + "%p" + n + " as p" + n;
  }
  EXPECT_UNCHANGED(split_linear(), graph("  return %h as h"));
  EXPECT_UNCHANGED(split_linear(), graph(parts + "  return " + all));
  EXPECT_UNCHANGED(split_linear(),
                   graph("  %t: f32[3, batch, seq, 2, 8] = Transpose(%h) {perm = [2, 0, 1, 3, 4]}\n"
                         "  return %t as t"));
}

}  // namespace
}  // namespace bertcl::passes
