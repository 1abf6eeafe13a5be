// SPDX-License-Identifier: Apache-2.0
// Masks and positions in the spellings of exporters, and what only looks like them.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <numeric>

#include "ops/infer.hpp"
#include "ops/recognize_by_value.hpp"
#include "tests/support/parse_graph.hpp"

namespace bertcl::ops {
namespace {

// Sizes are already apart from the tensors they are sizes of, as resolve_shapes leaves them.
const std::string head =
    "graph g(%ids: i64[batch, seq], %mask: i64[batch, seq]) {\n"
    "const %one: f32[] = 1.0\n const %zero: f32[] = 0.0\n const %low: f32[] = -3.4028235e38\n"
    "const %ten: f32[] = -10000.0\n const %small: f32[] = -1.0\n"
    "const %i0: i64[] = 0\n const %i1: i64[] = 1\n const %v0: i64[1] = [0]\n"
    "const %v1: i64[1] = [1]\n"
    "%wide: i64[] = Unsqueeze(%mask) {axes = [1, 2]}\n"
    "%float: f32[] = Cast(%wide) {to = \"f32\"}\n"
    "%shape: i64[2] = sizes() {values = \"[batch, seq]\"}\n %seq: i64[] = Gather(%shape, %i1) "
    "{axis = 0}\n";

/// The graph of some nodes that end in %y, with inferred types.
ir::Graph graph_of(const std::string& nodes) {
  ir::Graph graph = ir::parse(head + nodes + "\nreturn %y as y }");
  SymbolicValues values;
  infer(graph, values);
  return graph;
}
std::string str(AttentionSpan span) {
  return (span.causal ? ", causal" : "") +
         (span.window > 0 ? ", window " + std::to_string(span.window) : "");
}
std::string additive(const std::string& nodes) {
  ir::Graph graph = graph_of(nodes);
  const auto mask = additive_key_mask(graph, graph.outputs()[0].value);
  if (!mask) return "no";
  return mask->input->name + (mask->mask_is_length ? ", mask_is_length" : "") + str(mask->span);
}
std::string boolean(const std::string& nodes, bool keeps) {
  ir::Graph graph = graph_of(nodes);
  const auto mask = boolean_key_mask(graph, graph.outputs()[0].value, keeps);
  if (!mask) return "no";
  return mask->input->name + (mask->mask_is_length ? ", mask_is_length" : "") + str(mask->span) +
         (mask->masks_rows ? ", masks_rows" : "");
}
std::string rows(const std::string& nodes) {
  ir::Graph graph = graph_of(nodes);
  const ir::Value* mask = mask_of_rows(graph, graph.outputs()[0].value);
  return mask ? mask->name : "no";
}
bool positions(const std::string& nodes) {
  ir::Graph graph = graph_of(nodes);
  return is_position_ids(graph, graph.outputs()[0].value);
}

TEST(AdditiveMask, OfEarlyExporters) {
  EXPECT_EQ(additive("%a: f32[] = Sub(%one, %float)\n %y: f32[] = Mul(%a, %ten)"), "mask");
  EXPECT_EQ(additive("%a: f32[] = Sub(%one, %float)\n %y: f32[] = Mul(%low, %a)"), "mask");
  // (mask - 1) * 10000, as TensorFlow graphs write it.
  EXPECT_EQ(additive("const %k: f32[] = 10000.0\n %a: f32[] = Sub(%float, %one)\n"
                     "%y: f32[] = Mul(%a, %k)"),
            "mask");
}

// Rows of a batch of fixed size could be told apart by their places alone.
TEST(AdditiveMask, OfAnotherSequenceIsNone) {
  const auto of_row = [](std::int64_t batch, const std::string& order) {
    ir::Graph graph = ir::parse(fmt::format(R"(graph g(%mask: i64[{0}, 4]) {{
  const %order: i64[{0}] = [{1}]  const %one: f32[] = 1  const %low: f32[] = -10000
  %m: i64[] = Gather(%mask, %order) {{axis = 0}}
  %w: i64[] = Unsqueeze(%m) {{axes = [1, 2]}}
  %f: f32[] = Cast(%w) {{to = "f32"}}
  %a: f32[] = Sub(%one, %f)
  %y: f32[] = Mul(%a, %low)
  return %y as y
}})",
                                            batch, order));
    SymbolicValues values;
    infer(graph, values);
    return additive_key_mask(graph, graph.outputs()[0].value).has_value();
  };
  EXPECT_TRUE(of_row(3, "0, 1, 2"));
  EXPECT_FALSE(of_row(3, "2, 1, 0"));
  for (int other = 0; other < 69; ++other) {
    std::vector<int> order(70);
    std::iota(order.begin(), order.end(), 0);
    std::swap(order[69], order[static_cast<std::size_t>(other)]);
    EXPECT_FALSE(of_row(70, fmt::format("{}", fmt::join(order, ", ")))) << other;
  }
}

TEST(AdditiveMask, IsNotTriedOnABatchThatWouldFillTheMemory) {
  const auto recognized = [](const std::string& batch) {
    ir::Graph graph =
        ir::parse("graph g(%mask: f32[" + batch + ", seq]) {\n" +
                  " const %one: f32[] = 1.0 const %low: f32[] = -10000.0\n" + "%m: f32[" + batch +
                  ", 1, 1, seq] = Unsqueeze(%mask) {axes = " + "[1, 2]}\n%a: f32[" + batch +
                  ", 1, 1, seq] = Sub(%one, %m)\n" + "%y: f32[" + batch +
                  ", 1, 1, seq] = Mul(%a, %low)\nreturn %y }");
    return additive_key_mask(graph, graph.outputs()[0].value).has_value();
  };
  EXPECT_TRUE(recognized("batch"));
  EXPECT_TRUE(recognized("512"));
  EXPECT_FALSE(recognized("2147483647"));
}

TEST(AdditiveMask, ExpandedToEveryRow) {
  EXPECT_EQ(additive("%b: i64[] = Unsqueeze(%i0) {axes = [0]}\n"
                     "%s1: i64[] = Unsqueeze(%seq) {axes = [0]}\n"
                     "%n: i64[] = Gather(%shape, %i0) {axis = 0}\n"
                     "%n1: i64[] = Unsqueeze(%n) {axes = [0]}\n"
                     "%t: i64[] = Concat(%n1, %v1, %s1, %s1) {axis = 0}\n"
                     "%e: i64[] = Expand(%wide, %t)\n %f: f32[] = Cast(%e) {to = \"f32\"}\n"
                     "%inverted: f32[] = Sub(%one, %f)\n"
                     "%drop: bool[] = Cast(%inverted) {to = \"bool\"}\n"
                     "%y: f32[] = Where(%drop, %low, %inverted)"),
            "mask");
}

TEST(AdditiveMask, ByWhere) {
  EXPECT_EQ(additive("%keep: bool[] = Cast(%wide) {to = \"bool\"}\n"
                     "%y: f32[] = Where(%keep, %zero, %low)"),
            "mask");
  EXPECT_EQ(additive("%drop: bool[] = Equal(%wide, %i0)\n"
                     "%y: f32[] = Where(%drop, %ten, %zero)"),
            "mask");
}

// As many first keys as the row has ones; the same backwards is not such a mask.
TEST(AdditiveMask, ByTheNumberOfOnes) {
  const std::string keys =
      "%n: i64[] = ReduceSum(%wide) {axes = [3], keepdims = 1}\n"
      "%r: i64[] = Range(%i0, %seq, %i1)\n";
  EXPECT_EQ(additive(keys + "%keep: bool[] = Less(%r, %n)\n"
                            "%y: f32[] = Where(%keep, %zero, %low)"),
            "mask, mask_is_length");
  EXPECT_EQ(boolean(keys + "%y: bool[] = Less(%r, %n)", true), "mask, mask_is_length");
  EXPECT_EQ(boolean(keys + "%y: bool[] = GreaterOrEqual(%r, %n)", true), "no");
  EXPECT_EQ(boolean(keys + "%y: bool[] = LessOrEqual(%r, %n)", true), "no");
}

TEST(BooleanMask, OfRowsToo) {
  const std::string both =
      "%row: i64[] = Unsqueeze(%mask) {axes = [1, 3]}\n"
      "%square: i64[] = Mul(%wide, %row)\n";
  EXPECT_EQ(boolean(both + "%y: bool[] = Cast(%square) {to = \"bool\"}", true), "mask, masks_rows");
  EXPECT_EQ(
      boolean(both + "%b: bool[] = Cast(%square) {to = \"bool\"}\n%y: bool[] = Not(%b)", false),
      "mask, masks_rows");
  // Rows alone: each row that counts has all keys.
  EXPECT_EQ(boolean(both + "%alike: i64[] = Max(%square, %row)\n"
                           "%y: bool[] = Cast(%alike) {to = \"bool\"}",
                    true),
            "no");
}

TEST(BooleanMask, OfRowsThatOnlySomeKeysMatchIsNone) {
  const std::string both =
      "%row: i64[] = Unsqueeze(%mask) {axes = [1, 3]}\n"
      "%same: bool[] = Equal(%row, %wide)\n";
  EXPECT_EQ(boolean(both + "%y: bool[] = Identity(%same)", true), "no") << "of one segment";
  EXPECT_EQ(boolean(both + "%y: bool[] = GreaterOrEqual(%wide, %row)", true), "no")
      << "of this segment and those of larger numbers";
  EXPECT_EQ(boolean(both + "%none: bool[] = Equal(%wide, %i0)\n%real: bool[] = Not(%none)\n"
                           "%y: bool[] = And(%same, %real)",
                    true),
            "no")
      << "of one document";
  EXPECT_EQ(boolean(both + "%r: i64[] = Range(%i0, %seq, %i1)\n"
                           "%c: i64[] = Unsqueeze(%r) {axes = [1]}\n"
                           "%self: bool[] = Equal(%r, %c)\n"
                           "%square: i64[] = Mul(%wide, %row)\n"
                           "%b: bool[] = Cast(%square) {to = \"bool\"}\n"
                           "%y: bool[] = Or(%b, %self)",
                    true),
            "no")
      << "rows of padding attend themselves";
}

TEST(MaskOfRows, IsOneOrZero) {
  const std::string column = "%row: i64[] = Unsqueeze(%mask) {axes = [2]}\n";
  const std::string real = column + "%f: f32[] = Cast(%row) {to = \"f32\"}\n";
  EXPECT_EQ(rows(real + "%y: f32[] = Mul(%f, %one)"), "mask");
  EXPECT_EQ(rows(real + "%y: f32[] = Sub(%one, %f)"), "no");
  EXPECT_EQ(rows(real + "%y: f32[] = Mul(%f, %ten)"), "no");
  EXPECT_EQ(rows("%y: f32[] = Mul(%float, %one)"), "no");
  const auto up_to = [&](const std::string& place) {
    return rows(column + "const %last: i64[] = " + place +
                "\n%r: i64[] = Range(%i0, %seq, %i1)\n %c: i64[] = Unsqueeze(%r) {axes = [1]}\n"
                "%near: bool[] = Less(%c, %last)\n %b: i64[] = Cast(%near) {to = \"i64\"}\n"
                "%y: i64[] = Mul(%row, %b)");
  };
  EXPECT_EQ(up_to("3"), "no");
  EXPECT_EQ(up_to("100"), "no") << "no trial is as long";
}

TEST(AdditiveMask, RefusesWhatIsNone) {
  // Too weak to drop a key; upside down; on query rows; of another shape.
  EXPECT_EQ(additive("%a: f32[] = Sub(%one, %float)\n %y: f32[] = Mul(%a, %small)"), "no");
  EXPECT_EQ(additive("%y: f32[] = Mul(%float, %ten)"), "no");
  EXPECT_EQ(additive("%row: i64[] = Unsqueeze(%mask) {axes = [1, 3]}\n"
                     "%f: f32[] = Cast(%row) {to = \"f32\"}\n %a: f32[] = Sub(%one, %f)\n"
                     "%y: f32[] = Mul(%a, %ten)"),
            "no");
  EXPECT_EQ(additive("%keep: bool[] = Cast(%mask) {to = \"bool\"}\n"
                     "%y: f32[] = Where(%keep, %zero, %low)"),
            "no");
  // It depends on the tokens too.
  EXPECT_EQ(additive("%w: i64[] = Unsqueeze(%ids) {axes = [1, 2]}\n"
                     "%both: i64[] = Mul(%w, %wide)\n %f: f32[] = Cast(%both) {to = \"f32\"}\n"
                     "%a: f32[] = Sub(%one, %f)\n %y: f32[] = Mul(%a, %ten)"),
            "no");
}

// Keys after the row do not count; those before it do not either, or that of the row itself.
TEST(CausalMask, OfAMaskAndOfSizesAlone) {
  const auto ahead = [](const std::string& op) {
    return "%r: i64[] = Range(%i0, %seq, %i1)\n %c: i64[] = Unsqueeze(%r) {axes = [1]}\n"
           "%ahead: bool[] = " +
           op + "(%r, %c)\n %z: f32[] = Where(%ahead, %ten, %zero)\n";
  };
  const std::string of_mask =
      "%a: f32[] = Sub(%one, %float)\n %m: f32[] = Mul(%a, %ten)\n %y: f32[] = Add(%m, %z)";
  EXPECT_EQ(additive(ahead("Greater") + of_mask), "mask, causal");
  EXPECT_EQ(additive(ahead("Less") + of_mask), "no");
  EXPECT_EQ(additive(ahead("GreaterOrEqual") + of_mask), "no");
  const auto of_sizes = [](const std::string& nodes) {
    ir::Graph graph = graph_of(nodes);
    return additive_span(graph, graph.outputs()[0].value);
  };
  const std::string same = "%y: f32[] = Identity(%z)";
  EXPECT_EQ(of_sizes(ahead("Greater") + same), (AttentionSpan{0, true}));
  EXPECT_FALSE(of_sizes(ahead("Less") + same));
  EXPECT_FALSE(of_sizes(ahead("GreaterOrEqual") + same));
  EXPECT_FALSE(of_sizes(ahead("Greater") + "%y: f32[] = Mul(%z, %small)"));
  EXPECT_FALSE(of_sizes(ahead("Greater") + of_mask));
  ir::Graph graph = graph_of(ahead("Greater") + "%y: bool[] = Identity(%ahead)");
  ir::Value* mask = graph.outputs()[0].value;
  EXPECT_EQ(boolean_span(graph, mask, /*keeps=*/false), (AttentionSpan{0, true}));
  EXPECT_FALSE(boolean_span(graph, mask, /*keeps=*/true));
}

// A sequence of 9 and more tells these masks from one of keys alone.
TEST(BooleanMask, OfPlacesIsNone) {
  const std::string both =
      "const %eight: i64[] = 8\n %r: i64[] = Range(%i0, %seq, %i1)\n"
      "%keep: bool[] = Cast(%wide) {to = \"bool\"}\n";
  const auto of_blocks = [&](const std::string& block) {
    return boolean(both + block +
                       "%row: i64[] = Unsqueeze(%block) {axes = [1]}\n"
                       "%same: bool[] = Equal(%row, %block)\n%y: bool[] = And(%keep, %same)",
                   true);
  };
  EXPECT_EQ(of_blocks("%block: i64[] = Div(%r, %eight)\n"), "no");
  EXPECT_EQ(of_blocks("const %part: f32[] = 0.125\n%f: f32[] = Cast(%r) {to = \"f32\"}\n"
                      "%p: f32[] = Mul(%f, %part)\n%block: i64[] = Cast(%p) {to = \"i64\"}\n"),
            "no");
  EXPECT_EQ(boolean(both + "%first: i64[] = Min(%r, %eight)\n%same: bool[] = Equal(%r, %first)\n"
                           "%y: bool[] = And(%keep, %same)",
                    true),
            "no");
  std::string table;
  for (int row = 0; row < 8; ++row)
    for (int key = 0; key < 8; ++key)
      table += std::string(table.empty() ? "" : ", ") + (std::abs(row - key) < 6 ? "1" : "0");
  EXPECT_EQ(boolean("const %table: bool[1, 1, 8, 8] = [" + table +
                        "]\n"
                        "%keep: bool[] = Cast(%wide) {to = \"bool\"}\n"
                        "%n: i64[] = Unsqueeze(%seq) {axes = [0]}\n"
                        "%ends: i64[] = Concat(%n, %n) {axis = 0}\n"
                        "const %starts: i64[2] = [0, 0] const %axes: i64[2] = [2, 3]\n"
                        "%near: bool[] = Slice(%table, %starts, %ends, %axes)\n"
                        "%y: bool[] = And(%keep, %near)",
                    true),
            "mask, window 5");
}

// A file without a mask makes it of the ids, whose padding is 0.
TEST(BooleanMask, OfIdsIsNone) {
  const std::string nodes =
      "%u: i64[] = Unsqueeze(%ids) {axes = [1, 2]}\n%y: bool[] = Cast(%u) {to = \"bool\"}\n";
  EXPECT_EQ(boolean(nodes, true), "ids") << "of what nothing takes for ids";
  EXPECT_EQ(boolean("const %words: f32[3, 1] = [0, 1, 2]\n%x: f32[] = Gather(%words, %ids) "
                    "{axis = 0}\n" +
                        nodes,
                    true),
            "no");
}

TEST(BooleanMask, OfBothSenses) {
  const std::string keep = "%y: bool[] = Cast(%wide) {to = \"bool\"}";
  const std::string drop = "%y: bool[] = Equal(%wide, %i0)";
  EXPECT_EQ(boolean(keep, true), "mask");
  EXPECT_EQ(boolean(keep, false), "no");
  EXPECT_EQ(boolean(drop, false), "mask");
  EXPECT_EQ(boolean(drop, true), "no");
  EXPECT_EQ(boolean("%y: i64[] = Identity(%wide)", true), "no");  // not boolean
}

TEST(Positions, InEverySpelling) {
  EXPECT_TRUE(positions("%y: i64[] = Range(%i0, %seq, %i1)"));
  EXPECT_TRUE(
      positions("%r: i64[] = Range(%i0, %seq, %i1)\n"
                "%u: i64[] = Unsqueeze(%r) {axes = [0]}\n"
                "%y: i64[] = Expand(%u, %shape)"));
  // NonZero of ones, as exporters wrote arange before opset 11.
  EXPECT_TRUE(
      positions("%n: i64[] = Unsqueeze(%seq) {axes = [0]}\n"
                "%ones: f32[] = Expand(%one, %n)\n %at: i64[] = NonZero(%ones)\n"
                "%t: i64[] = Transpose(%at) {perm = [1, 0]}\n"
                "%y: i64[] = Squeeze(%t) {axes = [1]}"));
  EXPECT_TRUE(
      positions("const %table: i64[1, 6] = [0, 1, 2, 3, 4, 5]\n"
                "%n: i64[] = Unsqueeze(%seq) {axes = [0]}\n"
                "%y: i64[] = Slice(%table, %v0, %n, %v1)"));
}

TEST(Positions, RefusesWhatIsNone) {
  EXPECT_FALSE(positions("%r: i64[] = Range(%i0, %seq, %i1)\n %y: i64[] = Add(%r, %i1)"));
  EXPECT_FALSE(positions("%y: i64[] = Identity(%ids)"));
  EXPECT_FALSE(positions("%c: i64[] = CumSum(%mask, %i1)\n %y: i64[] = Sub(%c, %i1)"));
}

TEST(Positions, OfLongSequencesToo) {
  const std::string range = "const %eight: i64[] = 8\n%r: i64[] = Range(%i0, %seq, %i1)\n";
  EXPECT_FALSE(positions(range + "%y: i64[] = Mod(%r, %eight)"));
  EXPECT_FALSE(positions(range + "%y: i64[] = Min(%r, %eight)"));
  EXPECT_FALSE(
      positions("const %table: i64[1, 6] = [0, 1, 2, 3, 5, 4]\n"
                "%n: i64[] = Unsqueeze(%seq) {axes = [0]}\n"
                "%y: i64[] = Slice(%table, %v0, %n, %v1)"));
}

TEST(AllZero, NeedsEveryElement) {
  ir::Graph zero = graph_of("%y: i64[] = Expand(%i0, %shape)");
  ir::Graph one = graph_of("%y: i64[] = Expand(%i1, %shape)");
  EXPECT_TRUE(is_all_zero(zero, zero.outputs()[0].value));
  EXPECT_FALSE(is_all_zero(one, one.outputs()[0].value));
  ir::Graph second_half = graph_of(
      "const %eight: i64[] = 8\n%r: i64[] = Range(%i0, %seq, %i1)\n%y: i64[] = Div(%r, %eight)");
  EXPECT_FALSE(is_all_zero(second_half, second_half.outputs()[0].value));
}

}  // namespace
}  // namespace bertcl::ops
