// SPDX-License-Identifier: Apache-2.0
// Graphs that a wrong rewrite could leave behind, and what the verifier says of them.
#include "ops/verify.hpp"

#include "tests/support/matchers.hpp"
#include "tests/support/parse_graph.hpp"

namespace bertcl::ops {
namespace {

std::string error_in(const std::string& body, const std::string& inputs = "%x: f32[batch, 4]") {
  return error_of([&] {
    ir::Graph graph = ir::parse("graph g(" + inputs + ") {\n" + body + "\n}");
    verify(graph, "some_pass");
  });
}

TEST(Verify, AcceptsWhatFits) {
  EXPECT_EQ(error_in("const %w: f32[4, 2] = ... const %b: f32[2] = ...\n"
                     "%y: f32[batch, 2] = linear(%x, %w, %b) {activation = \"gelu\"} return %y"),
            kNoError);
}

TEST(Verify, NamesThePassAndTheNode) {
  EXPECT_THAT(error_in("%y: f32[batch, 4] = Twist(%x) return %y"),
              StartsWith("invalid graph after some_pass: Twist (result 'y')"));
}

TEST(Verify, CountsOperands) {
  EXPECT_THAT(error_in("%y: f32[batch, 4] = Tanh(%x, %x) return %y"),
              HasSubstr("got 2 operands, expected at most 1"));
  EXPECT_THAT(error_in("%y: f32[batch, 4] = Add(%x) return %y"), HasSubstr("operand 1 is missing"));
  EXPECT_THAT(error_in("const %w: i8[4, 2] = ... const %s: f32[] = 1\n"
                       "%y: f32[batch, 2] = linear_q(%x, %w, _, %s) return %y",
                       "%x: u8[batch, 4]"),
              HasSubstr("operand 'w_scale' is missing"));
}

TEST(Verify, ChecksTypesOfOperands) {
  EXPECT_THAT(error_in("const %w: f32[4, 2] = ...\n%y: f32[batch, 2] = linear(%x, %w) return %y",
                       "%x: u8[batch, 4]"),
              HasSubstr("operand 'x' is u8[batch, 4]; linear expects f32 or bf16"));
  EXPECT_THAT(error_in("const %w: i8[4, 2] = ... const %s: f32[] = 1 const %z: i8[] = 1\n"
                       "%y: f32[batch, 2] = linear_q(%x, %w, _, %s, %z, %s) return %y",
                       "%x: u8[batch, 4]"),
              HasSubstr("operands have different types: 'x' u8[batch, 4] and 'z' i8[]"));
}

TEST(Verify, ChecksPrecision) {
  const auto linear = [](const std::string& precision) {
    return error_in(
        "const %w: f32[4, 2] = ...\n%y: f32[batch, 2] = linear(%x, %w) {precision = \"" +
        precision + "\"} return %y");
  };
  EXPECT_EQ(linear("fp16"), kNoError);
  EXPECT_EQ(linear("bf16"), kNoError);
  EXPECT_THAT(linear("f16"),
              HasSubstr("linear (result 'y'): unknown precision 'f16' (choose from fp16, bf16)"));
}

TEST(Verify, ChecksSizes) {
  const auto sizes = [](const std::string& type) {
    return error_in("%y: " + type + " = sizes() {values = \"[batch, 12*seq]\"} return %y",
                    "%x: f32[batch, seq]");
  };
  EXPECT_EQ(sizes("i64[2]"), kNoError);
  EXPECT_THAT(sizes("i64[3]"), HasSubstr("the result i64[3] does not hold 2 sizes"));
  EXPECT_THAT(sizes("f32[2]"), HasSubstr("the result f32[2] does not hold 2 sizes"));
}

TEST(Verify, ChecksResultsOfOwnOps) {
  EXPECT_THAT(
      error_in("const %w: f32[4, 2] = ...\n%y: f32[batch, 3] = linear(%x, %w) return %y"),
      HasSubstr("result 'y' is declared f32[batch, 3], but the operands give f32[batch, 2]"));
  EXPECT_THAT(error_in("const %w: f32[4, 2] = ... const %b: f32[3] = ...\n"
                       "%y: f32[batch, 2] = linear(%x, %w, %b) return %y"),
              HasSubstr("'b' f32[3] does not have 2 columns"));
  EXPECT_THAT(error_in("const %w: i8[4, 2] = ... const %s: f32[] = 1\n"
                       "%y: f32[batch, 2] = linear_q(%x, %w, _, %s, _, %s, %s) return %y",
                       "%x: u8[batch, 4]"),
              HasSubstr("'y' has the scale 's' but is f32[batch, 2]"));
  EXPECT_THAT(error_in("const %g: f32[4] = ...\n"
                       "%y: f32[batch, 4] = add_norm(%x, _, %g) {epsilon = 0.5} return %y",
                       "%x: u8[batch, 4]"),
              HasSubstr("or has no scale"));
  EXPECT_THAT(error_in("const %g: f32[4] = ...\n%y: f32[batch, 4], %q: u8[batch, 4] = "
                       "add_norm(%x, _, %g) {epsilon = 0.5} return %y, %q"),
              HasSubstr("result 1 has no scale"));
  EXPECT_THAT(error_in("%y: f32[batch, seq, 4] = attention(%x, %x, %x) {heads = 3, scale = 1.0} "
                       "return %y",
                       "%x: f32[batch, seq, 4]"),
              HasSubstr("cannot split 4 columns into 3 heads"));
  EXPECT_THAT(error_in("%y: f32[batch, seq, 4] = attention(%x, %x, %x) {heads = 2, offsets = "
                       "[0, 4, 8], scale = 1.0} return %y",
                       "%x: f32[batch, seq, 8]"),
              HasSubstr("does not contain columns 8 to 12"));
  EXPECT_THAT(error_in("%y: f32[batch, seq, 4] = attention(%x, %x, %x) {heads = 4, key_heads = 3, "
                       "scale = 1.0} return %y",
                       "%x: f32[batch, seq, 4]"),
              HasSubstr("4 heads cannot share 3 key heads"));
}

}  // namespace
}  // namespace bertcl::ops
