// SPDX-License-Identifier: Apache-2.0
// Plans give kernels buffers of the element types that they read.
#include "plan/builder.hpp"
#include "tests/support/matchers.hpp"
#include "tests/support/parse_graph.hpp"

namespace bertcl::plan {
namespace {

std::string plan_error(const std::string& graph) {
  static const auto context = opencl::Context::create("cpu");
  return error_of([&] { make_plan(ir::parse(graph), context, {}); });
}

// Graphs as no inference would let them pass.
TEST(Contracts, AKernelOfAnotherElementTypeIsRefused) {
  EXPECT_EQ(plan_error("graph g(%x: f64[2, 4]) { %y: f64[2, 4] = Softmax(%x) return %y }"),
            "Softmax 'y': argument x of kernel softmax_f32 is of element type f64; the kernel "
            "expects f32");
  EXPECT_THAT(plan_error("graph g(%x: i32[4]) { %y: bool[4] = Not(%x) return %y }"),
              HasSubstr("Not 'y': argument out of kernel unary_i32 is of element type bool"));
  EXPECT_THAT(plan_error("graph g(%x: i8[4]) { const %s: f32[] = 1 const %z: u8[] = 0"
                         " %y: u8[4] = QuantizeLinear(%x, %s, %z) return %y }"),
              HasSubstr("argument x of kernel quantize is of element type i8"));
  EXPECT_THAT(plan_error("graph g(%x: f32[4], %e: i64[4]) { %y: f32[4] = Pow(%x, %e) return %y }"),
              HasSubstr("argument b of kernel binary_f32 is of element type i64"));
  EXPECT_THAT(plan_error("graph g(%x: f32[2, 4]) { const %g: f64[4] = [1, 2, 3, 4] %y: f32[2, 4] ="
                         " add_norm(%x, _, %g) {epsilon = 0.1} return %y }"),
              HasSubstr("of kernel add_norm is of element type f64"));
  EXPECT_THAT(
      plan_error("graph g(%c: bool[4], %a: f32[4], %b: i32[4]) {"
                 " %y: f32[4] = Where(%c, %a, %b) return %y }"),
      HasSubstr(
          "argument b of kernel where_4 is of element type i32; the kernel expects that of a"));
  EXPECT_THAT(plan_error("graph g(%x: f32[4]) { %r: f32[4] = Relu(%x) %v: i32[2, 2] = Reshape(%r)"
                         " %y: i32[2, 2] = Relu(%v) return %y }"),
              HasSubstr("'v' i32[2, 2] is a view of 'r' f32[4]"));
}

}  // namespace
}  // namespace bertcl::plan
