// SPDX-License-Identifier: Apache-2.0
// Launch steps of reductions and of Softmax.
#include <algorithm>

#include "kernels/contracts/reduce.hpp"
#include "kernels/contracts/rows.hpp"
#include "plan/ops/ops.hpp"
#include "plan/row_kernels.hpp"
#include "plan/types.hpp"

namespace bertcl::plan {
namespace {

// Codes of reduce.cl.
const std::map<std::string, std::int32_t, std::less<>> codes{{"ReduceSum", 0},  {"ReduceMean", 1},
                                                             {"ReduceMax", 2},  {"ReduceMin", 3},
                                                             {"ReduceProd", 4}, {"ReduceL2", 5}};

/// outer, size, inner of a reduction over neighbouring axes.
std::array<ir::Dim, 3> split(const ir::Node& node, const ir::Shape& shape,
                             std::vector<std::int64_t> axes) {
  const auto rank = static_cast<std::int64_t>(shape.size());
  if (axes.empty())
    for (std::int64_t d = 0; d < rank; ++d) axes.push_back(d);
  for (std::int64_t& a : axes) a += a < 0 ? rank : 0;
  std::sort(axes.begin(), axes.end());
  if (!axes.empty() && axes.back() - axes.front() + 1 != static_cast<std::int64_t>(axes.size()))
    throw Error(fmt::format("{}: kernels reduce adjacent axes only", node.describe()));
  std::array<ir::Dim, 3> view{ir::Dim(1), ir::Dim(1), ir::Dim(1)};
  for (std::int64_t d = 0; d < rank; ++d) {
    const std::size_t part = axes.empty() || d < axes.front() ? 0 : d <= axes.back() ? 1 : 2;
    view[part] = view[part] * shape[static_cast<std::size_t>(d)];
  }
  return view;
}

void lower_reduce(Builder& b, const ir::Graph&, const ir::Node& node) {
  const ir::Type& type = node.inputs[0]->type;
  std::vector<std::int64_t> axes;
  if (node.has("axes")) axes = node.ints_attribute("axes");
  const auto [outer, size, inner] = split(node, type.shape, axes);
  const char* kernel = type.dtype == ir::DType::f32   ? "reduce_f32"
                       : type.dtype == ir::DType::i32 ? "reduce_i32"
                       : type.dtype == ir::DType::i64 ? "reduce_i64"
                                                      : nullptr;
  if (!kernel)
    throw Error(fmt::format("{}: no kernel for element type {} (supported: f32, i32, i64)",
                            node.describe(), ir::name_of(type.dtype)));
  if (node.op == "ReduceL2" && type.dtype != ir::DType::f32)
    throw Error(fmt::format("{}: no kernel for element type {} (supported: f32)", node.describe(),
                            ir::name_of(type.dtype)));
  const std::int32_t chunk = b.rows_per_item();
  b.launch(node, std::string(ir::name_of(type.dtype)), "rows", b.kernel("reduce", kernel),
           kernels::Reduce<Argument>{.x = b.in(node.inputs[0]),
                                     .out = b.out(node.output()),
                                     .op = codes.find(node.op)->second,
                                     .outer = Size{outer},
                                     .size = Size{size},
                                     .inner = Size{inner},
                                     .chunk = chunk},
           {Size{outer * inner, chunk}, Size{}, Size{}});
}

void lower_argmax(Builder& b, const ir::Graph&, const ir::Node& node) {
  if (node.inputs[0]->type.dtype != ir::DType::f32)
    throw Error(fmt::format("{}: no kernel for element type {} (supported: f32)", node.describe(),
                            ir::name_of(node.inputs[0]->type.dtype)));
  const auto [outer, size, inner] =
      split(node, node.inputs[0]->type.shape, {node.int_attribute("axis", 0)});
  const std::int32_t chunk = b.rows_per_item();
  b.launch(node, "f32", "rows", b.kernel("reduce", "argmax_f32"),
           kernels::ArgMax<Argument>{
               .x = b.in(node.inputs[0]),
               .out = b.out(node.output()),
               .outer = Size{outer},
               .size = Size{size},
               .inner = Size{inner},
               .take_last = static_cast<std::int32_t>(node.int_attribute("select_last_index", 0)),
               .chunk = chunk},
           {Size{outer * inner, chunk}, Size{}, Size{}});
}

void lower_softmax(Builder& b, const ir::Graph&, const ir::Node& node) {
  const ir::Shape& shape = node.output()->type.shape;
  const auto rank = static_cast<std::int64_t>(shape.size());
  const std::int64_t axis = node.int_attribute("axis", -1);
  if (axis != -1 && axis != rank - 1)
    throw Error(fmt::format("{}: kernels work along the last axis, got axis {} of rank {}",
                            node.describe(), axis, rank));
  const ir::Dim rows = row_count(shape);
  launch_rows(
      b, node, "fp32", "softmax", "softmax_f32",
      kernels::SoftmaxF32<Argument>{.x = b.in(node.inputs[0]),
                                    .out = b.out(node.output()),
                                    .rows = Size{rows},
                                    .size = Size{shape.back()},
                                    .logarithm = static_cast<std::int32_t>(node.op == "LogSoftmax"),
                                    .rows_per_item = b.rows_per_item()},
      rows, {shape.back(), false});
}

}  // namespace

void add_reduce(LoweringTable& table) {
  for (const auto& [op, code] : codes) table[op] = lower_reduce;
  table["ArgMax"] = lower_argmax;
  table["Softmax"] = lower_softmax;
  table["LogSoftmax"] = lower_softmax;
}

}  // namespace bertcl::plan
