// SPDX-License-Identifier: Apache-2.0
// Shapes with symbols, and the shape arithmetic of exporters.
#include <fmt/format.h>

#include "bertcl/error.hpp"
#include "ops/infer.hpp"
#include "ops/op.hpp"
#include "tests/support/matchers.hpp"
#include "tests/support/parse_graph.hpp"

namespace bertcl::ops {
namespace {

/// The type that inference gives to the first output of a graph text; the declared types of
/// results are ignored.
std::string inferred(const std::string& text) {
  ir::Graph graph = ir::parse(text);
  SymbolicValues values;
  infer(graph, values);
  return ir::str(graph.outputs()[0].value->type);
}
std::string failure(const std::string& text) {
  try {
    return "no error, " + inferred(text);
  } catch (const Error& e) {
    return e.what();
  }
}

TEST(Infer, BroadcastsSymbolsAgainstOnes) {
  EXPECT_EQ(inferred("graph g(%a: f32[batch, 1, seq], %b: f32[12, 1]) {"
                     "%c: f32[] = Add(%a, %b) return %c }"),
            "f32[batch, 12, seq]");
}

TEST(Infer, NamesTheNodeWhenExtentsDiffer) {
  const auto message = failure(
      "graph g(%a: f32[batch, 3], %b: f32[batch, 4]) { %sum: f32[] = Add(%a, %b) return %sum }");
  EXPECT_THAT(message, HasSubstr("Add (result 'sum')"));
  EXPECT_THAT(message, HasSubstr("3 against 4"));
  EXPECT_THAT(failure("graph g(%a: f32[batch], %b: f32[seq], %ids: i64[batch, seq]) {"
                      "%c: f32[] = Mul(%a, %b) return %c }"),
              HasSubstr("batch against seq"));
}

TEST(Infer, NotesWhatOnlyTheRunCanTell) {
  ir::Graph graph =
      ir::parse("graph g(%a: f32[m, n], %b: f32[c]) { %c: f32[] = Mul(%a, %b) return %c }");
  SymbolicValues values;
  infer(graph, values);
  EXPECT_EQ(ir::str(graph.outputs()[0].value->type), "f32[m, n]");
  EXPECT_THAT(graph.assumptions(), ElementsAre(Pair(ir::Dim::symbol("c"), ir::Dim::symbol("n"))));

  // Also of axes that a file calls as inference calls those it makes up.
  graph = ir::parse("graph g(%a: f32[n1], %b: f32[n2]) { %c: f32[] = Mul(%a, %b) return %c }");
  infer(graph, values);
  EXPECT_THAT(graph.assumptions(), ElementsAre(Pair(ir::Dim::symbol("n1"), ir::Dim::symbol("n2"))));
}

TEST(Infer, FollowsTheHeadSplitOfAnExporter) {
  // Reshape(x, Concat(Shape(x)[0:1], Shape(x)[1:2], -1, 64))
  EXPECT_EQ(inferred(R"(graph g(%x: f32[batch, seq, 768]) {
      %shape: i64[] = Shape(%x)
      const %zero: i64[] = 0  const %one: i64[] = 1
      %b: i64[] = Gather(%shape, %zero) {axis = 0}
      %s: i64[] = Gather(%shape, %one) {axis = 0}
      %b1: i64[] = Unsqueeze(%b) {axes = [0]}
      %s1: i64[] = Unsqueeze(%s) {axes = [0]}
      const %rest: i64[2] = [-1, 64]
      %target: i64[] = Concat(%b1, %s1, %rest) {axis = 0}
      %y: f32[] = Reshape(%x, %target)
      return %y })"),
            "f32[batch, seq, 12, 64]");
}

TEST(Infer, DividesSizes) {
  // The size of a head as Shape(x)[2] / 12, merged back by -1.
  EXPECT_EQ(inferred(R"(graph g(%x: f32[batch, seq, 768]) {
      %width: i64[] = Shape(%x) {start = 2, end = 3}
      const %heads: i64[1] = [12]
      %size: i64[] = Div(%width, %heads)
      const %rest: i64[2] = [-1, 12]
      %target: i64[] = Concat(%rest, %size) {axis = 0}
      %y: f32[] = Reshape(%x, %target)
      return %y })"),
            "f32[batch*seq, 12, 64]");
}

TEST(Infer, ComparesNegativeSizes) {
  const auto length = [](const std::string& of) {
    return inferred(R"(graph g(%ids: i64[batch, seq]) {
      const %minus: i64[1] = [-2]  const %least: i64[1] = [-3]  const %zero: i64[1] = [0]
      const %number: f32[] = 0.0
      %s: i64[] = Shape(%ids) {start = 1}
      %n: i64[] = Mul(%s, %minus)
)" + of + R"(
      %y: f32[] = Expand(%number, %size)
      return %y })");
  };
  EXPECT_EQ(length("%size: i64[] = Max(%n, %zero)"), "f32[0]");
  EXPECT_EQ(length("%b: bool[] = Less(%n, %zero)\n%size: i64[] = Where(%b, %s, %zero)"),
            "f32[seq]");
  EXPECT_EQ(length("%b: bool[] = Less(%zero, %n)\n%size: i64[] = Where(%b, %zero, %s)"),
            "f32[seq]");
  // max(-2 seq, -3) is not a size, nor is it positive: what it is compared with is not known.
  EXPECT_EQ(length("%m: i64[] = Max(%n, %least)\n%size: i64[] = Max(%zero, %m)"), "f32[n0]");
}

TEST(Infer, UnderstandsTheExpandIdiom) {
  // Expand(m, Where(Equal(shape, -1), 1, shape)) with shape = [batch, -1, seq, seq]
  EXPECT_EQ(inferred(R"(graph g(%m: bool[batch, 1, 1, seq]) {
      %b: i64[] = Shape(%m) {start = 0, end = 1}
      %s: i64[] = Shape(%m) {start = 3}
      const %free: i64[1] = [-1]
      %shape: i64[] = Concat(%b, %free, %s, %s) {axis = 0}
      %rank: i64[] = Shape(%shape)
      const %fill: i64[1] = [1]
      %ones: i64[] = Expand(%fill, %rank)
      const %minus: i64[] = -1
      %negative: i64[] = Mul(%ones, %minus)
      %is_free: bool[] = Equal(%shape, %negative)
      %target: i64[] = Where(%is_free, %ones, %shape)
      %y: bool[] = Expand(%m, %target)
      return %y })"),
            "bool[batch, 1, seq, seq]");
}

TEST(Infer, ExpandsToValuesOfAnInput) {
  // The result has the operand's size only where that is a number: n may be 1, and 4 is not.
  EXPECT_EQ(inferred(R"(graph g(%x: f32[n, 4], %k: i64[1]) {
      const %four: i64[1] = [4]
      %size: i64[] = Concat(%k, %four) {axis = 0}
      %y: f32[] = Expand(%x, %size)
      return %y })"),
            "f32[n0, 4]");
  EXPECT_EQ(inferred("graph g(%x: f32[n, 4], %size: i64[3]) { %y: f32[] = Expand(%x, %size) "
                     "return %y }"),
            "f32[n0, n1, 4]");
}

TEST(Infer, SlicesToASymbol) {
  EXPECT_EQ(inferred(R"(graph g(%ids: i64[batch, seq]) {
      const %table: i64[1, 512] = ...  const %from: i64[1] = [0]  const %axis: i64[1] = [1]
      %to: i64[] = Shape(%ids) {start = 1}
      %y: i64[] = Slice(%table, %from, %to, %axis)
      return %y })"),
            "i64[1, seq]");
}

TEST(Infer, SlicesFromTheEndOfAFreeAxis) {
  const auto of = [](const std::string& from, const std::string& to) {
    return inferred(
        "graph g(%x: f32[batch, n]) { const %from: i64[1] = " + from + " const %to: i64[1] = " +
        to + " const %axis: i64[1] = 1 %y: f32[] = Slice(%x, %from, %to, %axis) return %y }");
  };
  EXPECT_EQ(of("-4", "2147483647"), "f32[batch, 4]");
  EXPECT_EQ(of("-4", "-1"), "f32[batch, 3]");
  EXPECT_EQ(of("-4", "0"), "f32[batch, 0]");
  EXPECT_EQ(of("-2", "-3"), "f32[batch, 0]");
}

TEST(Infer, ASliceThatEndsBeforeItStartsIsEmpty) {
  EXPECT_EQ(inferred(R"(graph g(%x: f32[batch, n]) {
      const %from: i64[1] = [3]  const %to: i64[1] = [1]
      %y: f32[] = Slice(%x, %from, %to, %to)
      return %y })"),
            "f32[batch, 0]");
}

TEST(Infer, IndicesOfElementsHaveNoMoreRowsThanTheData) {
  EXPECT_THAT(failure("graph g(%x: f32[2, n], %i: i64[5, n]) {"
                      "%y: f32[] = GatherElements(%x, %i) {axis = 1} return %y }"),
              HasSubstr("the indices have 5 entries along axis 0, the data has 2"));
}

TEST(Infer, CountsARangeBySymbol) {
  EXPECT_EQ(inferred(R"(graph g(%ids: i64[batch, seq]) {
      const %one: i64[] = 1  const %zero: i64[] = 0
      %shape: i64[] = Shape(%ids)
      %n: i64[] = Gather(%shape, %one) {axis = 0}
      %y: i64[] = Range(%zero, %n, %one)
      return %y })"),
            "i64[seq]");
}

TEST(Infer, CountsARangeOfFloatsThatASizeMakes) {
  EXPECT_EQ(inferred(R"(graph g(%x: f32[batch, 3, 15]) {
      const %two: i64[] = 2  const %half: f32[] = 0.5  const %one: f32[] = 1
      %shape: i64[] = Shape(%x)
      %n: i64[] = Gather(%shape, %two) {axis = 0}
      %f: f32[] = Cast(%n) {to = "f32"}
      %half_of: f32[] = Mul(%f, %half)
      %y: f32[] = Range(%half, %half_of, %one)
      return %y })"),
            "f32[7]");
}

TEST(Infer, KnowsTheNumbersOfAMatrix) {
  const std::string text = R"(graph g(%x: f32[batch, 3, 15]) {{
      const %two: i64[1] = [2]  const %zero: i64[1] = [0]  const %pair: i64[2] = [-1, 2]
      const %flat: i64[1] = [-1]  const %others: i64[3] = [4, 5, 6]
      %shape: i64[] = Shape(%x)
      %n: i64[] = Gather(%shape, %{}) {{axis = 0}}
      %list: i64[] = Concat(%n, %others) {{axis = 0}}
      %table: i64[] = Reshape(%list, %pair)
      %turned: i64[] = Transpose(%table) {{perm = [1, 0]}}
      %sizes: i64[] = Reshape(%turned, %flat)
      const %scalar: f32[] = 1
      %y: f32[] = Expand(%scalar, %sizes)
      return %y }})";
  EXPECT_EQ(inferred(fmt::format(fmt::runtime(text), "two")), "f32[15, 5, 4, 6]");
  EXPECT_THAT(inferred(fmt::format(fmt::runtime(text), "zero")), Not(HasSubstr("4")));
}

TEST(Infer, GivesOneSymbolToOneUnknownSize) {
  // seq + 1 has no form as a size; computed twice it is still the same size.
  EXPECT_EQ(inferred(R"(graph g(%ids: i64[batch, seq]) {
      const %one: i64[1] = [1]  const %v: f32[] = 0.0
      %s: i64[] = Shape(%ids) {start = 1}
      %a: i64[] = Add(%s, %one)
      %b: i64[] = Add(%s, %one)
      %x: f32[] = Expand(%v, %a)
      %y: f32[] = Expand(%v, %b)
      %z: f32[] = Add(%x, %y)
      return %z })"),
            "f32[n0]");
}

TEST(Infer, CancelsWhatIsAddedToASize) {
  const auto range = [](const std::string& start, const std::string& limit) {
    return inferred(R"(graph g(%ids: i64[seq]) {
      const %one: i64[1] = [1]  const %three: i64[1] = [3]
      %s: i64[] = Shape(%ids)
      %longer: i64[] = Add(%s, %one)
      %shorter: i64[] = Sub(%s, %one)
      %again: i64[] = Add(%one, %shorter)
      %y: i64[] = Range()" +
                    start + ", " + limit + ", %one)\n return %y }");
  };
  EXPECT_EQ(range("%one", "%longer"), "i64[seq]");
  EXPECT_EQ(range("%s", "%longer"), "i64[1]");
  EXPECT_EQ(range("%one", "%again"), range("%one", "%s"));
  EXPECT_NE(range("%three", "%longer"), "i64[seq]");
}

TEST(Infer, ComparesWhatSizesMake) {
  // One element where the comparison holds for every size, three where for none.
  const auto of = [](const std::string& made, const std::string& comparison) {
    return inferred(R"(graph g(%ids: i64[seq]) {
      const %five: i64[1] = [5]  const %zero: i64[1] = [0]
      const %one: i64[1] = [1]  const %three: i64[1] = [3]  const %v: f32[] = 0
      %s: i64[] = Shape(%ids)
      %minus: i64[] = Sub(%s, %five)
      %d: i64[] = )" +
                    made + "\n%c: bool[] = " + comparison + R"(
      %size: i64[] = Where(%c, %one, %three)
      %y: f32[] = Expand(%v, %size)
      return %y })");
  };
  const auto depends = MatchesRegex(R"(f32\[n[0-9]+\])");
  for (const char* difference : {"Sub(%s, %five)", "Sub(%five, %s)", "Add(%minus, %one)"})
    for (const char* comparison : {"Greater", "Less", "Equal"})
      EXPECT_THAT(of(difference, std::string(comparison) + "(%d, %zero)"), depends)
          << difference << comparison;
  EXPECT_EQ(of("Add(%s, %five)", "Greater(%d, %zero)"), "f32[1]");
  for (const char* rest : {"Div(%s, %five)", "Mod(%s, %five)", "Max(%minus, %zero)"}) {
    EXPECT_THAT(of(rest, "Equal(%d, %zero)"), depends) << rest;
    EXPECT_THAT(of(rest, "Greater(%d, %zero)"), depends) << rest;
    EXPECT_EQ(of(rest, "Less(%d, %zero)"), "f32[3]") << rest;
  }
  EXPECT_THAT(of("Min(%minus, %three)", "Less(%d, %zero)"), depends);
  EXPECT_EQ(of("Min(%s, %five)", "Greater(%d, %zero)"), "f32[1]");
}

TEST(Infer, AnExtentIsNotNegative) {
  EXPECT_EQ(inferred(R"(graph g(%x: f32[seq]) {
      const %one: i64[1] = [1]  const %end: i64[1] = [-1]  const %v: f32[] = 0
      %inner: f32[] = Slice(%x, %one, %end)
      %s: i64[] = Shape(%inner)
      %c: bool[] = Equal(%s, %end)
      %size: i64[] = Where(%c, %one, %s)
      %y: f32[] = Expand(%v, %size)
      %z: f32[] = Add(%y, %inner)
      return %z })"),
            "f32[n1]");
}

TEST(Infer, RefusesAWrongNumberOfOperands) {
  EXPECT_THAT(failure("graph g(%a: f32[2]) { %c: f32[] = Add(%a) return %c }"),
              HasSubstr("got 1 operands, expected 2 to 2"));
}

TEST(Infer, MatMulChecksTheInnerExtent) {
  EXPECT_EQ(inferred("graph g(%a: f32[batch, 12, seq, 64], %b: f32[batch, 12, 64, seq]) {"
                     "%c: f32[] = MatMul(%a, %b) return %c }"),
            "f32[batch, 12, seq, seq]");
  EXPECT_THAT(failure("graph g(%a: f32[batch, 64], %w: f32[65, 3]) {"
                      "%c: f32[] = MatMul(%a, %w) return %c }"),
              HasSubstr("64 against 65"));
}

TEST(Infer, QuantizationChecksItsParameters) {
  EXPECT_EQ(inferred("graph g(%x: f32[4, 6], %s: f32[6], %z: i8[6]) {"
                     "%q: u8[] = QuantizeLinear(%x, %s, %z) {axis = -1} return %q }"),
            "i8[4, 6]");
  EXPECT_THAT(failure("graph g(%x: f32[4, 6], %s: f32[5], %z: i8[5]) {"
                      "%q: u8[] = QuantizeLinear(%x, %s, %z) {axis = 1} return %q }"),
              HasSubstr("scale 's' f32[5] does not match axis 1 of 'x' f32[4, 6]"));
  EXPECT_THAT(failure("graph g(%x: i8[4, 6], %s: f32[], %z: u8[]) {"
                      "%q: u8[] = DequantizeLinear(%x, %s, %z) return %q }"),
              HasSubstr("operands have different types: 'x' i8[4, 6] and 'z' u8[]"));
}

TEST(Infer, SizesBeyond64BitsAreRefused) {
  EXPECT_THAT(failure("graph g(%a: f32[9223372036854775807], %b: f32[2]) {"
                      "%c: f32[] = Concat(%a, %b) {axis = 0} return %c }"),
              HasSubstr("extents 9223372036854775807 and 2 add up to a negative extent"));
  EXPECT_THAT(failure("graph g(%a: f32[9223372036854775807*n], %b: f32[2*n]) {"
                      "%c: f32[] = Concat(%a, %b) {axis = 0} return %c }"),
              HasSubstr("the size 9223372036854775807*n + 2*n overflows 64 bits"));
  EXPECT_THAT(failure("graph g(%a: f32[3]) { %c: f32[], %d: f32[] = Split(%a) {axis = 0,"
                      " split = [4611686018427387904, 4611686018427387904]} return %c }"),
              HasSubstr("the sum of the extents overflows 64 bits"));
  EXPECT_THAT(failure("graph g(%a: f32[3]) { %c: f32[] = Pad(%a) {"
                      "pads = [4611686018427387904, 4611686018427387904]} return %c }"),
              HasSubstr("the pads overflow 64 bits"));
  EXPECT_THAT(failure("graph g(%a: f32[3]) { const %r: i64[1] = [-2]"
                      " %c: f32[] = Tile(%a, %r) return %c }"),
              HasSubstr("-2 repeats of dimension 0"));
}

TEST(Infer, TheLeastNumberHasNoOpposite) {
  const auto of = [](const std::string& rest) {
    return inferred(
        "graph g(%x: f32[4]) { const %least: i64[1] = [-9223372036854775808]"
        " const %minus: i64[1] = [-1] const %zero: i64[1] = [0]"
        " const %three: i64[1] = [3] " +
        rest);
  };
  EXPECT_EQ(of("%y: i64[] = Div(%least, %minus) return %y }"), "i64[1]");
  EXPECT_EQ(of("%y: i64[] = Mod(%least, %minus) return %y }"), "i64[1]");
  EXPECT_EQ(of("%y: f32[] = Slice(%x, %three, %least, %zero, %least) return %y }"), "f32[1]");
}

}  // namespace
}  // namespace bertcl::ops
