// SPDX-License-Identifier: Apache-2.0
// Signs of values.
#include "passes/signs.hpp"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/parse_graph.hpp"

namespace bertcl::passes {
namespace {

/// "positive", "nonnegative" or "unknown", of %y in the lines.
std::string sign_of(const std::string& lines) {
  const ir::Graph g = ir::parse(R"(graph g(%x: f32[n, 8], %z: f32[n, 8]) {
  const %one: f32[] = 1  const %two: f32[] = 2  const %three: f32[] = 3  const %zero: f32[] = 0
  const %minus: f32[] = -1  const %mixed: f32[2] = [1, -1]
  %a: f32[n, 8] = Abs(%x)
  %e: f32[n, 8] = Exp(%x)
)" + lines + "\n  return %y\n}");
  const ir::Value* y = g.find_value("y");
  EXPECT_TRUE(is_nonnegative(y) || !is_positive(y));
  return is_positive(y) ? "positive" : is_nonnegative(y) ? "nonnegative" : "unknown";
}

TEST(Signs, OfOperators) {
  const auto sign = [](const std::string& node) { return sign_of("%y: f32[n, 8] = " + node); };
  for (const char* node : {"Exp(%x)", "Sigmoid(%x)", "Abs(%e)", "Sqrt(%e)", "Mul(%e, %e)",
                           "Mul(%e, %two)", "Div(%e, %two)", "Add(%a, %one)", "Add(%one, %a)",
                           "Max(%x, %one)", "Min(%e, %one)", "Identity(%e)"})
    EXPECT_EQ(sign(node), "positive") << node;
  for (const char* node : {"Abs(%x)", "Relu(%x)", "Softmax(%x) {axis = 1}", "Sqrt(%a)",
                           "Mul(%x, %x)", "Mul(%a, %e)", "Pow(%x, %two)", "Div(%a, %e)",
                           "Add(%a, %a)", "Add(%a, %zero)", "Max(%x, %zero)", "Min(%a, %one)"})
    EXPECT_EQ(sign(node), "nonnegative") << node;
  for (const char* node : {"Neg(%a)", "Log(%e)", "Sub(%e, %one)", "Mul(%x, %z)", "Mul(%e, %minus)",
                           "Pow(%x, %three)", "Div(%e, %a)", "Add(%a, %x)", "Add(%e, %minus)",
                           "Max(%x, %z)", "Max(%x, %minus)", "Min(%a, %x)", "Tanh(%e)"})
    EXPECT_EQ(sign(node), "unknown") << node;
}

TEST(Signs, OfReductionsAndConstants) {
  EXPECT_EQ(sign_of("%y: f32[n, 1] = ReduceL2(%x) {axes = [1], keepdims = 1}"), "nonnegative");
  EXPECT_EQ(sign_of("%y: f32[n, 1] = ReduceSum(%e) {axes = [1], keepdims = 1}"), "positive");
  EXPECT_EQ(sign_of("%y: f32[n, 1] = ReduceMean(%x) {axes = [1], keepdims = 1}"), "unknown");
  EXPECT_EQ(sign_of("%y: f32[2] = Identity(%mixed)"), "unknown");
}

// Each value twice the one before: a search of all paths would not end.
TEST(Signs, SearchesAreShort) {
  std::string lines = "%v0: f32[n, 8] = Add(%x, %x)\n";
  for (int i = 1; i < 200; ++i)
    lines += "%v" + std::to_string(i) + ": f32[n, 8] = Add(%v" + std::to_string(i - 1) + ", %v" +
             std::to_string(i - 1) + ")\n";
  EXPECT_EQ(sign_of(lines + "%y: f32[n, 8] = Identity(%v199)"), "unknown");
}

}  // namespace
}  // namespace bertcl::passes
