// SPDX-License-Identifier: Apache-2.0
// Which operators depend on rows of padding.
#include <gtest/gtest.h>

#include <string>

#include "passes/padding_readers.hpp"
#include "tests/support/parse_graph.hpp"

namespace bertcl::passes {
namespace {

/// The op that reads padding of %x in the lines; "" for none.
std::string reader_in(const std::string& lines, const std::string& x = "batch, seq, 8",
                      const std::string& constants = "") {
  const ir::Graph g =
      ir::parse("graph g(%picked: i64[batch, 2], %x: f32[" + x + "], %ids: i64[" +
                x.substr(0, x.rfind(", ")) + "], %mask: f32[" + x.substr(0, x.rfind(", ")) +
                "]) {\n" + constants + lines + "\n  return %y\n}");
  const ir::Node* reader = reader_of_padding(g, g.find_value("mask"), {g.find_value("x")}, {});
  return reader ? reader->op : "";
}

TEST(PaddingReaders, SumsOverTokens) {
  EXPECT_EQ(reader_in("%y: f32[batch, 8] = ReduceMean(%x) {axes = [1], keepdims = 0}"),
            "ReduceMean");
  EXPECT_EQ(reader_in("%y: f32[batch, seq] = ReduceMean(%x) {axes = [-1], keepdims = 0}"), "");
  EXPECT_EQ(reader_in("%y: f32[batch, seq, 8] = CumSum(%x, %a)", "batch, seq, 8",
                      "const %a: i64[] = 1\n"),
            "CumSum");
  EXPECT_EQ(reader_in("%y: f32[batch, seq, 8] = CumSum(%x, %a)", "batch, seq, 8",
                      "const %a: i64[] = 2\n"),
            "");
  EXPECT_EQ(reader_in("%y: f32[batch, seq, 8] = CumSum(%x, %a)", "batch, seq, 8",
                      "const %a: i64[] = -2\n"),
            "CumSum");
  EXPECT_EQ(reader_in("%y: f32[batch, seq, 8] = CumSum(%x, %a)", "batch, seq, 8",
                      "const %a: i64[] = -5\n"),
            "CumSum");  // no axis of %x, which is not noticed before
  EXPECT_EQ(reader_in(R"(%r: f32[batch*seq, 8] = Reshape(%x)
  %y: f32[1, 8] = ReduceMax(%r) {axes = [0], keepdims = 1})"),
            "ReduceMax");
}

TEST(PaddingReaders, RowsOfSeveralTokens) {
  const std::string flat = "%f: f32[2, 32] = Reshape(%x)\n", x = "2, 4, 8";
  const std::string weights = "const %w: f32[32, 3] = ...\n  const %g: f32[32] = ...\n";
  EXPECT_EQ(reader_in(flat + "%y: f32[2, 3] = linear(%f, %w)", x, weights), "linear");
  EXPECT_EQ(reader_in(flat + "%y: f32[2, 3] = MatMul(%f, %w)", x, weights), "MatMul");
  EXPECT_EQ(reader_in(flat + "%y: f32[2, 32] = LayerNormalization(%f, %g) {axis = -1, epsilon = "
                             "0.5}",
                      x, weights),
            "LayerNormalization");
  EXPECT_EQ(reader_in(flat + "%y: f32[2, 32] = add_norm(%f, _, %g) {epsilon = 0.5}", x, weights),
            "add_norm");
  EXPECT_EQ(reader_in(flat + "%y: f32[2, 32] = Relu(%f)", x, weights), "") << "each by itself";
  EXPECT_EQ(reader_in("%f: f32[2, 2, 16] = Reshape(%x)\n  %y: f32[2, 2, 3] = linear(%f, %w)", x,
                      "const %w: f32[16, 3] = ...\n"),
            "linear")
      << "two tokens a row";
  EXPECT_EQ(reader_in("%f: f32[2, 8, 4] = Transpose(%x) {perm = [0, 2, 1]}\n"
                      "  %y: f32[2, 8, 3] = linear(%f, %w)",
                      x, "const %w: f32[4, 3] = ...\n"),
            "linear");
  EXPECT_EQ(reader_in("%f: f32[2, 8, 8] = Transpose(%x) {perm = [0, 2, 1]}\n"
                      "  %y: f32[2, 8, 3] = linear(%f, %w)",
                      "2, 8, 8", "const %w: f32[8, 3] = ...\n"),
            "linear")
      << "of equal extents";
  EXPECT_EQ(reader_in("%y: f32[2, 3, 8] = MatMul(%w, %x)", x, "const %w: f32[3, 4] = ...\n"),
            "MatMul")
      << "of tokens, from the left";
  // One token a row, however the rows are arranged.
  EXPECT_EQ(reader_in(R"(%r: f32[8, 8] = Reshape(%x)
  %h: f32[8, 3] = linear(%r, %w)
  %b: f32[2, 4, 3] = Reshape(%h)
  %y: f32[4, 2, 3] = Transpose(%b) {perm = [1, 0, 2]})",
                      x, "const %w: f32[8, 3] = ...\n"),
            "");
}

TEST(PaddingReaders, TokensByTheirNumber) {
  const std::string linear = "\n  %y: f32[batch, 3] = linear(%t, %w)";
  const std::string constants =
      "const %w: f32[8, 3] = ...\n  const %0: i64[] = 0\n  const %9: i64[] = 9\n";
  const auto taken = [&](const std::string& op) {
    return reader_in("%t: f32[batch, 8] = " + op + linear, "batch, seq, 8", constants);
  };
  EXPECT_EQ(taken("Gather(%x, %0) {axis = 1}"), "") << "the first is a real one";
  EXPECT_EQ(taken("Gather(%x, %9) {axis = 1}"), "Gather");
  EXPECT_EQ(reader_in(R"(%e: i64[batch] = ArgMax(%ids) {axis = 1, keepdims = 0}
  %t: f32[batch, batch, 8] = Gather(%x, %e) {axis = 1}
  %y: f32[batch, batch, 3] = linear(%t, %w))",
                      "batch, seq, 8", constants),
            "")
      << "chosen by the ids";
  const auto picked = [&](const std::string& op, const std::string& indices) {
    return reader_in(
        indices + "%t: f32[batch, 2, 8] = " + op + "\n %y: f32[batch, 2, 3] = linear(%t, %w)",
        "batch, seq, 8", constants + "const %1: i64[1] = [2]\n");
  };
  EXPECT_EQ(picked("Gather(%x, %picked) {axis = 1}", ""), "Gather") << "chosen by the caller";
  EXPECT_EQ(picked("GatherND(%x, %p) {batch_dims = 1}",
                   "%p: i64[batch, 2, 1] = Unsqueeze(%picked) {axes = [2]}\n"),
            "GatherND");
  const auto sliced = [&](int start, int count) {
    const std::string shape = "f32[batch, " + std::to_string(count) + ", 8]";
    return reader_in("%t: " + shape + " = Slice(%x) {axes = [1], starts = [" +
                     std::to_string(start) +
                     "], steps = [1]}\n  %y: f32[batch, 8] = ReduceSum(%t) "
                     "{axes = [1], keepdims = 0}");
  };
  EXPECT_EQ(sliced(0, 1), "");
  EXPECT_EQ(sliced(1, 1), "Slice");
  EXPECT_EQ(sliced(0, 3), "ReduceSum");
}

TEST(PaddingReaders, TokensBesideOthers) {
  const std::string halves = R"(%a: f32[2, 3, 8] = Slice(%x) {axes = [1], starts = [0], steps = [1]}
  %b: f32[2, 3, 8] = Slice(%x) {axes = [1], starts = [1], steps = [1]}
)";
  EXPECT_EQ(reader_in(halves + "%y: f32[2, 3, 8] = Sub(%a, %b)", "2, 4, 8"), "Sub");
  EXPECT_EQ(reader_in(halves + "%y: f32[2, 3, 8] = Mul(%b, %b)", "2, 4, 8"), "");
  EXPECT_EQ(reader_in(halves + "%y: f32[2, 6, 8] = Concat(%a, %b) {axis = 1}", "2, 4, 8"), "");
  EXPECT_EQ(reader_in(halves + R"(%c: f32[2, 3, 16] = Concat(%a, %b) {axis = 2}
  %y: f32[2, 3, 4] = linear(%c, %w))",
                      "2, 4, 8", "const %w: f32[16, 4] = ...\n"),
            "Concat");
}

TEST(PaddingReaders, TheMaskHidesAlongItsAxes) {
  const std::string column = "%column: f32[batch, seq, 1] = Unsqueeze(%mask) {axes = [2]}\n";
  const std::string mean = "\n  %y: f32[batch, 8] = ReduceSum(%m) {axes = [1], keepdims = 0}";
  EXPECT_EQ(reader_in(column + "%m: f32[batch, seq, 8] = Mul(%x, %column)" + mean), "");
  EXPECT_EQ(reader_in(R"(%n: f32[batch, 1] = ReduceMean(%mask) {axes = [1], keepdims = 1}
  %share: f32[batch, 1, 1] = Unsqueeze(%n) {axes = [2]}
  %m: f32[batch, seq, 8] = Mul(%x, %share))" +
                      mean),
            "ReduceSum")
      << "one number for all tokens";
  const std::string kept = column +
                           "%c: bool[batch, seq, 1] = Cast(%column) {to = \"bool\"}\n"
                           "%r: f32[batch, seq, 8] = Relu(%x)\n";
  EXPECT_EQ(reader_in(kept + "%m: f32[batch, seq, 8] = Where(%c, %x, %zero)" + mean,
                      "batch, seq, 8", "const %zero: f32[] = 0\n"),
            "");
  EXPECT_EQ(reader_in(kept + "%m: f32[batch, seq, 8] = Where(%c, %x, %r)" + mean), "ReduceSum")
      << "padding either way";
  EXPECT_EQ(
      reader_in("%s: f32[batch, seq] = CumSum(%mask, %a)\n" +
                    std::string("%column: f32[batch, seq, 1] = Unsqueeze(%s) {axes = [2]}\n") +
                    "%m: f32[batch, seq, 8] = Mul(%x, %column)" + mean,
                "batch, seq, 8", "const %a: i64[] = 1\n"),
      "ReduceSum")
      << "not zero for padding";
  const std::string tail = "[2, 3, 1] = Slice(%column) {axes = [1], starts = [";
  const auto without_first = [&](const std::string& start) {
    return reader_in(
        "%column: f32[2, 4, 1] = Unsqueeze(%mask) {axes = [2]}\n"
        "%a: f32[2, 3, 8] = Slice(%x) {axes = [1], starts = [1], steps = [1]}\n"
        "%b: f32" +
            tail + start +
            "], steps = [1]}\n"
            "%m: f32[2, 3, 8] = Mul(%a, %b)\n"
            "%y: f32[2, 8] = ReduceSum(%m) {axes = [1], keepdims = 0}",
        "2, 4, 8");
  };
  EXPECT_EQ(without_first("1"), "");
  EXPECT_EQ(without_first("0"), "ReduceSum") << "the mask of other tokens";

  const std::string attention = R"(const %one: f32[] = 1
  const %low: f32[] = -10000
  %t: f32[batch, 8, seq] = Transpose(%x) {perm = [0, 2, 1]}
  %s: f32[batch, seq, seq] = MatMul(%x, %t)
  %real: f32[batch, 1, seq] = Unsqueeze(%mask) {axes = [1]}
  %far: f32[batch, 1, seq] = Sub(%one, %real)
  %keys: f32[batch, 1, seq] = Mul(%far, %low)
  %h: f32[batch, seq, seq] = Add(%s, %keys)
  %p: f32[batch, seq, seq] = Softmax(%h) {axis = -1}
)";
  EXPECT_EQ(reader_in(attention + "%y: f32[batch, seq, 8] = MatMul(%p, %x)"), "");
  EXPECT_EQ(
      reader_in(attention + "%y: f32[batch, seq] = ReduceMean(%p) {axes = [2], keepdims = 0}"), "");
  EXPECT_EQ(
      reader_in(attention + "%y: f32[batch, seq] = ReduceMean(%p) {axes = [1], keepdims = 0}"),
      "ReduceMean")
      << "of queries, which the mask of keys leaves";
  const std::string turned =
      attention +
      "%r: f32[batch, seq, seq] = Transpose(%p) {perm = [0, 2, 1]}\n  %y: f32[batch, seq] ";
  EXPECT_EQ(reader_in(turned + "= ReduceMean(%r) {axes = [2], keepdims = 0}"), "ReduceMean");
  EXPECT_EQ(reader_in(turned + "= ReduceMean(%r) {axes = [1], keepdims = 0}"), "");
  EXPECT_EQ(reader_in(attention + R"(%c: f32[batch, seq, 8] = MatMul(%p, %x)
  %y: f32[batch, 8] = ReduceMean(%c) {axes = [1], keepdims = 0})"),
            "ReduceMean");
}

/// The op that reads padding of %x where the mask [batch, seq, 1] is %m, and %drop 1 for padding.
std::string reader_under_mask(const std::string& lines) {
  return reader_in(R"(%m: f32[batch, seq, 1] = Unsqueeze(%mask) {axes = [2]}
  %drop: f32[batch, seq, 1] = Sub(%one, %m)
  %low: f32[batch, seq, 1] = Mul(%drop, %least)
  %is: bool[batch, seq, 1] = Cast(%m) {to = "bool"}
)" + lines,
                   "batch, seq, 8", R"(const %one: f32[] = 1
  const %zero: f32[] = 0  const %least: f32[] = -10000  const %w: f32[8, 1] = ...
  const %half: f32[] = 0.5  const %two: f32[] = 2  const %minus: f32[] = -1
  const %small: f32[] = 0.001
)");
}

/// The op that reads padding of what `op` gives in `reduction` over the tokens.
std::string reader_of_masked(const std::string& op, const std::string& reduction) {
  return reader_under_mask("%h: f32[batch, seq, 8] = " + op + "\n  %y: f32[batch, 8] = " +
                           reduction + "(%h) {axes = [1], keepdims = 0}");
}

TEST(PaddingReaders, FactorsThatAreZeroHide) {
  for (const char* reduction : {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin"})
    EXPECT_EQ(reader_of_masked("Mul(%x, %m)", reduction), "");
  EXPECT_EQ(reader_of_masked("Mul(%x, %drop)", "ReduceSum"), "ReduceSum");
  EXPECT_EQ(reader_of_masked("Div(%x, %m)", "ReduceSum"), "ReduceSum");
  EXPECT_EQ(reader_of_masked("Max(%x, %m)", "ReduceSum"), "ReduceSum");
  EXPECT_EQ(reader_under_mask(R"(%more: f32[batch, seq, 1] = Add(%m, %one)
  %h: f32[batch, seq, 8] = Mul(%x, %more)
  %y: f32[batch, 8] = ReduceSum(%h) {axes = [1], keepdims = 0})"),
            "ReduceSum");
  const auto multiplied = [](const std::string& factor) {
    return reader_under_mask("%r: f32[batch, 1, seq] = Transpose(" + factor +
                             ") {perm = [0, 2, 1]}\n  %y: f32[batch, 1, 8] = MatMul(%r, %x)");
  };
  EXPECT_EQ(multiplied("%m"), "");
  EXPECT_EQ(multiplied("%drop"), "MatMul");
}

TEST(PaddingReaders, NothingHidesWhatMayBeInfiniteOrNaN) {
  // Rows of padding are 0: 0 / 0 is NaN, and NaN times 0 is not 0.
  const auto reader = [](const std::string& lines, const std::string& last) {
    return reader_under_mask(
        "%a: f32[batch, seq, 8] = Abs(%x)\n  %u: f32[batch, seq, 8] = " + lines + "\n" + last);
  };
  const auto sum_of = [&](const std::string& masked) {
    return "%h: f32[batch, seq, 8] = " + masked +
           "\n  %y: f32[batch, 8] = ReduceSum(%h) {axes = [1], keepdims = 0}";
  };
  const std::string sum = sum_of("Mul(%u, %m)");
  for (const char* op : {"Div(%x, %a)", "Reciprocal(%a)", "Log(%a)", "Sqrt(%x)", "Pow(%x, %half)",
                         "Pow(%a, %minus)"}) {
    EXPECT_EQ(reader(op, sum), "ReduceSum") << op;
    EXPECT_EQ(reader(op, sum_of("Where(%is, %u, %zero)")), "") << op;
  }
  for (const char* op : {"Div(%x, %one)", "Sqrt(%a)", "Pow(%a, %half)", "Pow(%x, %two)"})
    EXPECT_EQ(reader(op, sum), "") << op;
  EXPECT_EQ(reader("Div(%x, %a)", R"(%h: f32[batch, seq, 8] = Add(%u, %low)
  %y: f32[batch, 8] = ReduceMax(%h) {axes = [1], keepdims = 0})"),
            "ReduceMax");
  EXPECT_EQ(reader("Div(%x, %a)", R"(%r: f32[batch, 1, seq] = Transpose(%m) {perm = [0, 2, 1]}
  %y: f32[batch, 1, 8] = MatMul(%r, %u))"),
            "MatMul");
  EXPECT_EQ(reader("Div(%x, %a)", R"(%b: f32[batch, seq, 8] = Mul(%x, %m)
  %h: f32[batch, seq, 8] = Mul(%u, %b)
  %y: f32[batch, 8] = ReduceSum(%h) {axes = [1], keepdims = 0})"),
            "ReduceSum");
  // Lengths of rows, as in F.normalize and in norms spelled out.
  const auto divided_by = [&](const std::string& lines) {
    return reader("Mul(%x, %x)",
                  "%q: f32[batch, seq, 1] = ReduceSum(%u) {axes = [2], keepdims = "
                  "1}\n  %l: f32[batch, seq, 1] = Sqrt(%q)\n" +
                      lines + "\n  %v: f32[batch, seq, 8] = Div(%x, %d)\n" + sum_of("Mul(%v, %m)"));
  };
  EXPECT_EQ(divided_by("%d: f32[batch, seq, 1] = Identity(%l)"), "ReduceSum");
  EXPECT_EQ(divided_by("%d: f32[batch, seq, 1] = Max(%l, %small)"), "");
  EXPECT_EQ(divided_by("%d: f32[batch, seq, 1] = Max(%l, %zero)"), "ReduceSum");
  EXPECT_EQ(divided_by("%d: f32[batch, seq, 1] = Add(%l, %small)"), "");
  EXPECT_EQ(divided_by("%s: f32[batch, seq, 1] = Add(%q, %small)\n"
                       "  %d: f32[batch, seq, 1] = Sqrt(%s)"),
            "");
}

TEST(PaddingReaders, LowNumbersHideFromMaximaAlone) {
  for (const char* low : {"Add(%x, %low)", "Where(%is, %x, %least)"})
    EXPECT_EQ(reader_of_masked(low, "ReduceMax"), "");
  EXPECT_EQ(reader_of_masked("Where(%is, %x, %least)", "ReduceMin"), "") << "the same in all";
  EXPECT_EQ(reader_of_masked("Add(%x, %low)", "ReduceMin"), "ReduceMin");
  EXPECT_EQ(reader_of_masked("Add(%x, %low)", "ReduceSum"), "ReduceSum");
  EXPECT_EQ(reader_of_masked("Sub(%x, %low)", "ReduceMax"), "ReduceMax");
  EXPECT_EQ(reader_of_masked("Sub(%x, %drop)", "ReduceMax"), "ReduceMax");
  EXPECT_EQ(reader_of_masked("Where(%is, %zero, %x)", "ReduceMax"), "ReduceMax");
  EXPECT_EQ(reader_under_mask(R"(%a: f32[batch, seq, 8] = Add(%x, %low)
  %h: f32[batch, seq, 8] = Mul(%a, %x)
  %y: f32[batch, 8] = ReduceMax(%h) {axes = [1], keepdims = 0})"),
            "ReduceMax")
      << "of any sign";
}

TEST(PaddingReaders, AttentionPoolings) {
  const auto pooled = [](const std::string& masked) {
    return reader_under_mask(
        "%s: f32[batch, seq, 1] = MatMul(%x, %w)\n%a: f32[batch, seq, 1] = " + masked + R"(
  %p: f32[batch, seq, 1] = Softmax(%a) {axis = 1}
  %h: f32[batch, seq, 8] = Mul(%x, %p)
  %y: f32[batch, 8] = ReduceSum(%h) {axes = [1], keepdims = 0})");
  };
  EXPECT_EQ(pooled("Add(%s, %low)"), "");
  EXPECT_EQ(pooled("Where(%is, %s, %least)"), "");
  EXPECT_EQ(pooled("Where(%is, %s, %zero)"), "ReduceSum") << "padding has a share";
  EXPECT_EQ(pooled("Add(%s, %m)"), "Softmax");
  EXPECT_EQ(reader_under_mask(R"(%a: f32[batch, seq, 8] = Add(%x, %low)
  %top: f32[batch, 1, 8] = ReduceMax(%a) {axes = [1], keepdims = 1}
  %less: f32[batch, seq, 8] = Sub(%a, %top)
  %e: f32[batch, seq, 8] = Exp(%less)
  %sum: f32[batch, 1, 8] = ReduceSum(%e) {axes = [1], keepdims = 1}
  %p: f32[batch, seq, 8] = Div(%e, %sum)
  %h: f32[batch, seq, 8] = Mul(%x, %p)
  %y: f32[batch, 8] = ReduceSum(%h) {axes = [1], keepdims = 0})"),
            "")
      << "a softmax spelled out";
}

TEST(PaddingReaders, SequencesOfABatchBesideEachOther) {
  const std::string constants =
      "const %first: i64[1] = [0]\n  const %last: i64[1] = [-1]\n  const %w: f32[8, 8] = ...\n";
  const auto reader = [&](const std::string& lines) {
    return reader_in(lines, "batch, seq, 8", constants);
  };
  for (const std::string op : {"ReduceMean", "ReduceMax"})
    EXPECT_EQ(reader("%y: f32[1, seq, 8] = " + op + "(%x) {axes = [0], keepdims = 1}"), op);
  EXPECT_EQ(reader("%y: f32[batch, seq, 8] = Softmax(%x) {axis = 0}"), "Softmax");
  EXPECT_EQ(reader("%y: f32[batch, seq, 8] = Softmax(%x) {axis = 2}"), "");
  for (const std::string which : {"%first", "%last"})
    EXPECT_EQ(reader("%one: f32[1, seq, 8] = Gather(%x, " + which +
                     ") {axis = 0}\n  %y: f32[batch, seq, 8] = Sub(%x, %one)"),
              "Gather");
  const std::string attention = R"(
  %s: f32[seq, batch, batch] = MatMul(%l, %r)
  %p: f32[seq, batch, batch] = Softmax(%s) {axis = -1}
  %y: f32[seq, batch, 8] = MatMul(%p, %l))";
  EXPECT_EQ(reader(R"(%l: f32[seq, batch, 8] = Transpose(%x) {perm = [1, 0, 2]}
  %r: f32[seq, 8, batch] = Transpose(%x) {perm = [1, 2, 0]})" +
                   attention),
            "Softmax");
  EXPECT_EQ(reader(R"(%l: f32[seq, batch, 8] = Transpose(%x) {perm = [1, 0, 2]}
  %h: f32[seq, batch, 8] = linear(%l, %w)
  %four: f32[seq, batch, 2, 4] = Reshape(%h)
  %heads: f32[batch, 2, seq, 4] = Transpose(%four) {perm = [1, 2, 0, 3]}
  %y: f32[batch, 1, seq, 4] = ReduceSum(%heads) {axes = [1], keepdims = 1})"),
            "")
      << "heads of one sequence";
  EXPECT_EQ(reader(R"(%column: f32[batch, seq, 1] = Unsqueeze(%mask) {axes = [2]}
  %h: f32[batch, seq, 8] = Mul(%x, %column)
  %p: f32[batch, 8] = ReduceMean(%h) {axes = [1], keepdims = 0}
  %y: f32[1, 8] = ReduceMean(%p) {axes = [0], keepdims = 1})"),
            "")
      << "of vectors";
}

TEST(PaddingReaders, ABatchInAnotherOrder) {
  const std::string rolled = R"(%a: f32[1, 4, 8] = Slice(%x) {axes = [0], starts = [1], steps = [1]}
  %b: f32[2, 4, 8] = Slice(%x) {axes = [0], starts = [0], steps = [1]}
)";
  EXPECT_EQ(reader_in(rolled + R"(%r: f32[3, 4, 8] = Concat(%b, %a) {axis = 0}
  %y: f32[3, 4, 8] = Add(%x, %r))",
                      "3, 4, 8"),
            "Slice")
      << "one sequence by its number";
  EXPECT_EQ(reader_in(R"(%b: f32[2, 4, 8] = Slice(%x) {axes = [0], starts = [0], steps = [1]}
  %c: f32[2, 4, 8] = Slice(%x) {axes = [0], starts = [1], steps = [1]}
  %y: f32[2, 4, 8] = Add(%b, %c))",
                      "3, 4, 8"),
            "Add");
}

}  // namespace
}  // namespace bertcl::passes
