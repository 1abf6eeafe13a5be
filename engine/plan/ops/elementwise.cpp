// SPDX-License-Identifier: Apache-2.0
// Launch steps of elementwise operators, with broadcasting, and of Cast.
#include "kernels/contracts/elementwise.hpp"
#include "kernels/shared_numbers.hpp"
#include "ops/op.hpp"
#include "plan/elements.hpp"
#include "plan/lowering_table.hpp"
#include "plan/strided.hpp"
#include "plan/types.hpp"

namespace bertcl::plan {
namespace {

ir::DType operand_type(const ir::Node& node) {
  using enum ir::DType;
  const ir::DType type = node.inputs[0]->type.dtype;
  check_type(node, type, {f32, i32, i64, boolean});
  return type;
}

void lower_cast(Builder& b, const ir::Graph&, const ir::Node& node) {
  const ir::Type &from = node.inputs[0]->type, &to = node.output()->type;
  launch_elements(b, node, Arithmetic::elements(to.dtype), "elements", b.kernel("cast", "cast"),
                  kernels::Cast<Argument>{.x = b.in(node.inputs[0]),
                                          .from = type_code(from.dtype),
                                          .y = b.out(node.output()),
                                          .to = type_code(to.dtype)},
                  element_count(to.shape), b.chunk());
}

void lower_binary(Builder& b, const ir::Graph&, const ir::Node& node) {
  if (node.inputs.size() != 2) fail(node, "{} operands, kernels take two", node.inputs.size());
  const ir::Shape& shape = node.output()->type.shape;
  const View view = coalesced({shape,
                               {broadcast(node.inputs[0]->type.shape, shape),
                                broadcast(node.inputs[1]->type.shape, shape)}});
  std::int32_t code = *ops::traits(node).binary_code;
  if (node.op == "Mod" && node.int_attribute("fmod", 0) != 0) code = kernels::kFmod;
  const ir::DType type = operand_type(node);
  launch_strided(b, node, Arithmetic::elements(type), "elements",
                 b.kernel("elementwise_binary", kernel_for("binary", type)),
                 kernels::Binary<Argument>{.a = b.in(node.inputs[0]),
                                           .b = b.in(node.inputs[1]),
                                           .out = b.out(node.output()),
                                           .op = code},
                 view);
}

void lower_unary(Builder& b, const ir::Graph&, const ir::Node& node) {
  std::int32_t code = *ops::traits(node).unary_code;
  if (node.op == "Gelu" && node.has("approximate") &&
      node.string_attribute("approximate") == "tanh")
    code = unary::gelu_tanh;
  const ir::DType type = operand_type(node);
  launch_elements(
      b, node, Arithmetic::elements(type), "elements",
      b.kernel("elementwise_unary", kernel_for("unary", type)),
      kernels::Unary<Argument>{.x = b.in(node.inputs[0]), .out = b.out(node.output()), .op = code},
      element_count(node.output()->type.shape), b.vector_chunk());
}

void lower_where(Builder& b, const ir::Graph&, const ir::Node& node) {
  const ir::Type& type = node.output()->type;
  View view{type.shape, {}};
  for (const ir::Value* in : node.inputs)
    view.strides.push_back(broadcast(in->type.shape, type.shape));
  launch_strided(b, node, Arithmetic::elements(type.dtype), "elements",
                 b.kernel("where", fmt::format("where_{}", ir::size_of(type.dtype))),
                 kernels::Where<Argument>{.condition = b.in(node.inputs[0]),
                                          .a = b.in(node.inputs[1]),
                                          .b = b.in(node.inputs[2]),
                                          .out = b.out(node.output())},
                 coalesced(std::move(view)));
}

}  // namespace

void add_elementwise(LoweringTable& table) {
  for (const std::string& op : ops::names()) {
    const ops::Traits& traits = ops::find(op)->traits;
    if (traits.binary_code) table[op] = lower_binary;
    if (traits.unary_code) table[op] = lower_unary;
  }
  table["Cast"] = lower_cast;
  table["Where"] = lower_where;
}

}  // namespace bertcl::plan
