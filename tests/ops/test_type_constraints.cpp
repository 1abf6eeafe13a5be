// SPDX-License-Identifier: Apache-2.0
// The element types that each operator takes, and the refusal of others by name.
#include <limits>

#include "ops/infer.hpp"
#include "ops/interpret.hpp"
#include "ops/op.hpp"
#include "ops/type_constraints.hpp"
#include "tests/support/matchers.hpp"
#include "tests/support/parse_graph.hpp"

namespace bertcl::ops {
namespace {

std::string inference_error(const std::string& text) {
  return error_of([&] {
    ir::Graph graph = ir::parse(text);
    SymbolicValues values;
    infer(graph, values);
  });
}

TEST(TypeConstraints, EveryOperandHasOne) {
  for (const std::string& op : names())
    EXPECT_EQ(find(op)->types.empty(), find(op)->max_inputs == 0) << op;
}

TEST(TypeConstraints, NameOperandItsTypeAndTheTypesThatAreTaken) {
  EXPECT_THAT(
      inference_error("graph g(%x: i32[3]) { %y: bool[3] = Not(%x) return %y }"),
      AllOf(HasSubstr("Not (result 'y')"), HasSubstr("operand 'x' is i32[3]; Not expects bool")));
  EXPECT_THAT(inference_error("graph g(%x: i8[3]) { const %s: f32[] = 1 const %z: u8[] = 0"
                              " %y: u8[3] = QuantizeLinear(%x, %s, %z) return %y }"),
              HasSubstr("operand 'x' is i8[3]; QuantizeLinear expects f32, f16 or bf16"));
  EXPECT_THAT(inference_error("graph g(%x: f32[3], %i: f32[2]) {"
                              " %y: f32[2] = Gather(%x, %i) {axis = 0} return %y }"),
              HasSubstr("operand 'i' is f32[2]; Gather expects i32 or i64"));
  EXPECT_THAT(inference_error("graph g(%c: u8[3], %a: f32[3], %b: f32[3]) {"
                              " %y: f32[3] = Where(%c, %a, %b) return %y }"),
              HasSubstr("operand 'c' is u8[3]; Where expects bool"));
}

TEST(TypeConstraints, OperandsOfOneVariableAreOfOneType) {
  EXPECT_THAT(
      inference_error("graph g(%x: f32[3], %e: i64[]) { %y: f32[3] = Pow(%x, %e) return %y }"),
      HasSubstr("operands have different types: 'x' f32[3] and 'e' i64[]"));
  EXPECT_THAT(inference_error("graph g(%x: f32[2, 3], %s: f64[3]) {"
                              " %y: f32[2, 3] = LayerNormalization(%x, %s) return %y }"),
              HasSubstr("operands have different types: 'x' f32[2, 3] and 's' f64[3]"));
  EXPECT_EQ(inference_error("graph g(%x: f16[2, 3], %s: f32[3]) {"
                            " %y: f16[2, 3] = LayerNormalization(%x, %s) return %y }"),
            kNoError);
  EXPECT_THAT(inference_error("graph g(%x: u8[2, 3], %w: i8[3, 2], %z: i8[]) {"
                              " %y: i32[2, 2] = MatMulInteger(%x, %w, %z) return %y }"),
              HasSubstr("operands have different types: 'x' u8[2, 3] and 'z' i8[]"));
}

/// The elements of a graph of constants.
std::vector<std::int64_t> value_of(const std::string& text) {
  return interpret(ir::parse(text), {}).front().to_ints();
}

TEST(TypeConstraints, IntegersArePoweredExactly) {
  EXPECT_EQ(value_of("graph g() { const %x: i64[6] = [3, -3, 2, -1, 1, 5] "
                     "const %e: i64[6] = [39, 39, 62, -3, -2, -1]"
                     " %y: i64[6] = Pow(%x, %e) return %y }"),
            (std::vector<std::int64_t>{4052555153018976267, -4052555153018976267,
                                       std::int64_t{1} << 62, -1, 1, 0}));
}

/// 2^64 - 1 and 2, which an int64 orders the other way round.
constexpr const char* kUnsigned =
    "graph g() { const %i: i64[2] = [-1, 2] const %j: i64[2] = [2, -1]"
    " %a: u64[2] = Cast(%i) {to = \"u64\"} %b: u64[2] = Cast(%j) {to = \"u64\"} ";

TEST(TypeConstraints, TheUpperHalfOfU64IsNotNegative) {
  const std::string head = kUnsigned;
  EXPECT_EQ(value_of(head + "%y: bool[2] = Less(%a, %b) return %y }"),
            (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(value_of(head + "%y: u64[2] = Min(%a, %b) return %y }"),
            (std::vector<std::int64_t>{2, 2}));
  EXPECT_EQ(value_of(head + "%y: u64[2] = Div(%a, %b) return %y }"),
            (std::vector<std::int64_t>{std::numeric_limits<std::int64_t>::max(), 0}));
  EXPECT_EQ(value_of(head + "%y: u64[2] = Mod(%a, %b) return %y }"),
            (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(value_of(head + "%m: u64[1] = ReduceMin(%a) {keepdims = 1} return %m }"),
            (std::vector<std::int64_t>{2}));
  EXPECT_EQ(value_of(head + "%m: i64[1] = ArgMax(%a) return %m }"), (std::vector<std::int64_t>{0}));
  EXPECT_EQ(value_of("graph g() { const %x: f32[2] = [9223372036854775808, -3]"
                     " %y: u64[2] = Cast(%x) {to = \"u64\"} return %y }"),
            (std::vector<std::int64_t>{std::numeric_limits<std::int64_t>::min(), 0}));
}

TEST(TypeConstraints, OneHotKeepsEveryBitOfItsValues) {
  EXPECT_EQ(value_of("graph g() { const %i: i64[1] = [1] const %d: i64[] = 2 "
                     "const %a: i64[2] = [9007199254740992, -9007199254740992]"
                     " const %b: i64[2] = [1, -1] %v: i64[2] = Add(%a, %b)"
                     " %y: i64[1, 2] = OneHot(%i, %d, %v) return %y }"),
            (std::vector<std::int64_t>{9007199254740993, -9007199254740993}));
}

}  // namespace
}  // namespace bertcl::ops
