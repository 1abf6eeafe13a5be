// SPDX-License-Identifier: Apache-2.0
// Graph mutations, text form and verifier.
#include "bertcl/error.hpp"
#include "ir/copy.hpp"
#include "ir/text.hpp"
#include "tests/support/matchers.hpp"
#include "tests/support/parse_graph.hpp"

namespace bertcl::ir {
namespace {

constexpr std::string_view sample = R"(graph g(%ids: i64[batch, seq], %x: f32[12*batch*seq, 4]) {
  const %table: f32[100, 4] = ...
  %0: f32[batch, seq, 4] = Gather(%table, %ids) {axis = 0}
  const %one: i64[] = 1
  const %half: f32[3] = [0.5, -3.0, 1e+30]
  %1: f32[batch, seq, 2], %2: f32[batch, seq, 2] = Split(%0, _, %one, %half) {axis = -1, eps = 1e-12, mode = "a b", perm = [0, 2, 1], weights = f[1.0, 2.5]}
  return %1 as start, %2 as end
}
)";

TEST(Graph, ARenamedValueIsFoundByItsNewNameUnlessThatIsTaken) {
  Graph g = parse(sample);
  Value* value = g.find_value("0");
  g.rename_if_free(value, "hidden");
  EXPECT_EQ(g.find_value("hidden"), value);
  EXPECT_EQ(g.find_value("0"), nullptr);
  g.rename_if_free(value, "table");
  EXPECT_EQ(value->name, "hidden");
  EXPECT_EQ(g.find_value("hidden"), value);
}

TEST(Graph, ACopyIsTheSameAndChangesByItself) {
  Graph g = parse(sample);
  g.metadata = {{"author", "me"}};
  g.source_nodes = {{"split", "Split"}};
  g.assume_equal(Dim::symbol("seq"), Dim::symbol("n7"));
  g.nodes().front()->sources = {"gather"};
  Graph other = copy(g);
  EXPECT_EQ(print(other), sample);
  EXPECT_EQ(other.metadata, g.metadata);
  EXPECT_EQ(other.source_nodes.size(), 1u);
  EXPECT_EQ(other.assumptions(), g.assumptions());
  EXPECT_EQ(other.nodes().front()->sources, g.nodes().front()->sources);
  EXPECT_EQ(other.find_value("table")->constant->bytes().data(),
            g.find_value("table")->constant->bytes().data());
  EXPECT_EQ(str(Shape{other.fresh_symbol()}), "[n8]");
  other.replace_uses(other.find_value("0"), other.find_value("table"));
  other.remove_dead();
  EXPECT_NE(print(other), sample);
  EXPECT_EQ(print(g), sample);
}

TEST(Text, PrintingWhatWasParsedGivesTheSameText) { EXPECT_EQ(print(parse(sample)), sample); }

TEST(Text, ErrorsNameLineAndColumn) {
  EXPECT_ERROR(HasSubstr("line 2, column 22: '%x' is not defined"),
               parse("graph g() {\n  %0: f32[1] = Neg(%x)\n  return %0\n}"));
  EXPECT_ERROR(HasSubstr("more values"), parse("graph g() {\n  const %c: f32[2] = [1, 2, 3]\n"));
  EXPECT_ERROR(HasSubstr("element type"), parse("graph g(%x: f99[1]) {"));
}

TEST(Dim, ArithmeticIsExact) {
  const Dim batch = Dim::symbol("batch"), seq = Dim::symbol("seq");
  const Dim n = Dim(12) * seq * batch;
  EXPECT_EQ(n.str(), "12*batch*seq");
  EXPECT_EQ(Dim::parse("batch*12*seq"), n);
  EXPECT_EQ(Dim::divide(n, seq), Dim(12) * batch);
  EXPECT_EQ(Dim::divide(n, Dim(5)), std::nullopt);
  EXPECT_EQ(Dim::divide(seq, batch), std::nullopt);
  EXPECT_EQ(n.evaluate({{"batch", 2}, {"seq", 3}}), 72);
  EXPECT_THROW(n.evaluate({{"batch", 2}}), Error);
}

TEST(Dim, ShapesReadWhatTheyWrite) {
  for (const Shape& shape : {Shape{}, Shape{Dim(0)}, Shape{Dim::symbol("batch"), Dim(12)},
                             Shape{Dim(12) * Dim::symbol("seq"), Dim(-1), Dim(3)}})
    EXPECT_EQ(parse_shape(str(shape)), shape) << str(shape);
  for (const char* text : {"", "[", "batch", "[batch", "[2, ]", "[, 2]", "[9223372036854775808]"})
    EXPECT_EQ(parse_shape(text), std::nullopt) << text;
}

TEST(Graph, ReplaceAndErase) {
  Graph g = parse(sample);
  Node* split = g.find_value("1")->producer;
  Value* gathered = split->inputs[0];
  EXPECT_TRUE(g.used_once(gathered));
  EXPECT_THROW(g.erase(split), Error);
  g.replace_uses(split->outputs[0], gathered);
  g.replace_uses(split->outputs[1], gathered);
  EXPECT_TRUE(g.remove_dead());
  verify(g);
  EXPECT_EQ(g.nodes().size(), 1u);
  EXPECT_EQ(g.constants().size(), 1u);  // the operands of Split went with it
}

TEST(Graph, RemoveDeadFollowsChains) {
  Graph g = parse(
      "graph g(%x: f32[4]) {\n %a: f32[4] = Neg(%x)\n %b: f32[4] = Neg(%a)\n %c: f32[4] = "
      "Abs(%x)\n %d: f32[4] = Abs(%b)\n return %c\n}");
  EXPECT_TRUE(g.remove_dead());
  EXPECT_EQ(g.nodes().size(), 1u);
  EXPECT_FALSE(g.remove_dead());
  verify(g);
}

TEST(Graph, NamesAreMadeUnique) {
  Graph g;
  Value* a = g.add_input("x", {DType::f32, {4}});
  Value* b = g.add("Neg", {a}, {}, a->type, nullptr, "x");
  EXPECT_NE(a->name, b->name);
  EXPECT_EQ(g.find_value(b->name), b);
}

TEST(Graph, SwappedNamesFindTheOtherValue) {
  Graph g = parse(sample);
  Value* first = g.find_value("1");
  Value* second = g.find_value("2");
  g.swap_names(first, second);
  EXPECT_EQ(g.find_value("1"), second);
  EXPECT_EQ(first->name, "2");
  verify(g);
}

TEST(Verify, FindsUseBeforeDefinition) {
  Graph g;
  Value* x = g.add_input("x", {DType::f32, {4}});
  Value* a = g.add("Neg", {x}, {}, x->type);
  Value* b = g.add("Abs", {x}, {}, x->type, a->producer);
  g.add_output("y", a);
  verify(g);
  g.set_input(b->producer, 0, a);
  EXPECT_THROW(verify(g, "a pass"), Error);
}

TEST(Verify, FindsABrokenUseList) {
  Graph g = parse(sample);
  g.find_value("0")->users.clear();
  EXPECT_THROW(verify(g), Error);
}

}  // namespace
}  // namespace bertcl::ir
