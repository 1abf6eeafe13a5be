// SPDX-License-Identifier: Apache-2.0
// Launch steps of reductions, of CumSum along an axis that is known, and of Softmax.
#include <algorithm>
#include <array>
#include <utility>

#include "kernels/contracts/reduce.hpp"
#include "kernels/contracts/rows.hpp"
#include "ops/op.hpp"
#include "plan/lowering_table.hpp"
#include "plan/row_kernels.hpp"
#include "plan/strided.hpp"
#include "plan/types.hpp"

namespace bertcl::plan {
namespace {

// Codes of reduce.cl.
const std::map<std::string, std::int32_t, std::less<>> kReduceCodes{
    {"ReduceSum", 0}, {"ReduceMean", 1}, {"ReduceMax", 2},
    {"ReduceMin", 3}, {"ReduceProd", 4}, {"ReduceL2", 5}};

/// outer, size, inner of a reduction over adjacent axes.
std::array<ir::Dim, 3> reduced(const ir::Node& node, const ir::Shape& shape,
                               std::vector<std::int64_t> axes) {
  if (axes.empty()) return split(shape, 0, shape.size());
  for (std::int64_t& a : axes) a += a < 0 ? std::ssize(shape) : 0;
  std::ranges::sort(axes);
  if (axes.back() - axes.front() + 1 != std::ssize(axes))
    fail(node, "only adjacent axes can be reduced");
  return split(shape, static_cast<std::size_t>(axes.front()), axes.size());
}

/// Launches the kernel for elements of `type` along the middle axis of `view`.
void launch_along(Builder& b, const ir::Node& node, ir::DType type, const char* variant,
                  const char* program, const char* kernel, const std::array<ir::Dim, 3>& view,
                  auto arguments) {
  using enum ir::DType;
  check_type(node, type, {f32, i32, i64});
  const auto& [outer, size, inner] = view;
  const std::int32_t chunk = b.rows_per_item();
  arguments.x = b.in(node.inputs[0]);
  arguments.out = b.out(node.output());
  arguments.outer = SizeExpr{outer};
  arguments.size = SizeExpr{size};
  arguments.inner = SizeExpr{inner};
  arguments.chunk = chunk;
  b.launch(node, Arithmetic::elements(type), variant, b.kernel(program, kernel_for(kernel, type)),
           arguments, {SizeExpr{outer * inner, chunk}, SizeExpr{}, SizeExpr{}});
}

void lower_reduce(Builder& b, const ir::Graph&, const ir::Node& node) {
  const ir::Type& of = node.inputs[0]->type;
  std::vector<std::int64_t> axes;
  if (node.has("axes")) axes = node.ints_attribute("axes");
  const std::array<ir::Dim, 3> view = reduced(node, of.shape, axes);
  if (node.op == "ReduceL2") check_type(node, of.dtype, {ir::DType::f32});
  launch_along(b, node, of.dtype, "rows", "reduce", "reduce", view,
               kernels::Reduce<Argument>{.op = kReduceCodes.find(node.op)->second});
}

void lower_argmax(Builder& b, const ir::Graph&, const ir::Node& node) {
  const ir::Type& of = node.inputs[0]->type;
  const std::size_t axis = ops::axis_of(node, "axis", 0, of.shape.size());
  b.limit(ir::Dim(1), of.shape[axis]);  // of no elements none is the largest
  launch_along(b, node, of.dtype, "rows", "reduce", "argmax", split(of.shape, axis),
               kernels::ArgMax<Argument>{.take_last = static_cast<std::int32_t>(
                                             node.int_attribute("select_last_index", 0))});
}

void lower_cumsum(Builder& b, const ir::Graph&, const ir::Node& node) {
  const ir::Value* axis_operand = node.inputs[1];
  if (!axis_operand->is_constant()) fail(node, "axis '{}' is not constant", axis_operand->name);
  const ir::Type& of = node.output()->type;
  const std::size_t axis =
      ops::NodeContext{node}.axis(axis_operand->constant->to_ints().at(0), of.shape.size());
  launch_along(b, node, of.dtype, "lines", "cumsum", "cumsum", split(of.shape, axis),
               kernels::CumSum<Argument>{
                   .exclusive = static_cast<std::int32_t>(node.int_attribute("exclusive", 0)),
                   .reverse = static_cast<std::int32_t>(node.int_attribute("reverse", 0))});
}

void lower_softmax(Builder& b, const ir::Graph&, const ir::Node& node) {
  const ir::Shape& shape = node.output()->type.shape;
  if (!ops::is_last_axis(node, -1, shape))
    fail(node, "kernels work along the last axis, got axis {} of rank {}",
         node.int_attribute("axis", -1), shape.size());
  const ir::Dim rows = row_count(shape);
  launch_rows(
      b, node, Arithmetic::fp32, kernels::softmax_variants(), "softmax_f32",
      kernels::SoftmaxF32<Argument>{.x = b.in(node.inputs[0]),
                                    .out = b.out(node.output()),
                                    .rows = SizeExpr{rows},
                                    .size = SizeExpr{shape.back()},
                                    .logarithm = static_cast<std::int32_t>(node.op == "LogSoftmax"),
                                    .rows_per_item = b.rows_per_item()},
      rows, {shape.back(), false});
}

}  // namespace

void add_reduce(LoweringTable& table) {
  for (const auto& [op, code] : kReduceCodes) table[op] = lower_reduce;
  table["ArgMax"] = lower_argmax;
  table["CumSum"] = lower_cumsum;
  table["Softmax"] = lower_softmax;
  table["LogSoftmax"] = lower_softmax;
}

}  // namespace bertcl::plan
