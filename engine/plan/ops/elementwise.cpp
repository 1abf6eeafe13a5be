// SPDX-License-Identifier: Apache-2.0
// Launch steps of elementwise operators with broadcasting.
#include "kernels/contracts/elementwise.hpp"
#include "ops/op.hpp"
#include "plan/ops/ops.hpp"
#include "plan/strided.hpp"
#include "plan/types.hpp"

namespace bertcl::plan {
namespace {

constexpr std::int32_t fmod_code = 8;  // of elementwise_binary.cl

std::string kernel_suffix(ir::DType type, const ir::Node& node) {
  switch (type) {
    case ir::DType::f32:
      return "f32";
    case ir::DType::i32:
      return "i32";
    case ir::DType::i64:
      return "i64";
    case ir::DType::boolean:
      return "bool";
    default:
      break;
  }
  throw Error(fmt::format("{}: no kernel for element type {} (supported: f32, i32, i64, bool)",
                          node.describe(), ir::name_of(type)));
}

void lower_binary(Builder& b, const ir::Graph&, const ir::Node& node) {
  if (node.inputs.size() != 2)
    throw Error(
        fmt::format("{}: {} operands, kernels take two", node.describe(), node.inputs.size()));
  const ir::Shape& shape = node.output()->type.shape;
  const View view = coalesced({shape,
                               {broadcast(node.inputs[0]->type.shape, shape),
                                broadcast(node.inputs[1]->type.shape, shape)}});
  std::int32_t code = *ops::traits(node).binary_code;
  if (node.op == "Mod" && node.int_attribute("fmod", 0) != 0) code = fmod_code;
  const ir::Dim count = element_count(shape);
  const std::string kernel = "binary_" + kernel_suffix(node.inputs[0]->type.dtype, node);
  b.launch(node, std::string(ir::name_of(node.inputs[0]->type.dtype)), "elements",
           b.kernel("elementwise_binary", kernel),
           kernels::Binary<Argument>{.a = b.in(node.inputs[0]),
                                     .b = b.in(node.inputs[1]),
                                     .out = b.out(node.output()),
                                     .op = code,
                                     .shape = table_of(view),
                                     .rank = static_cast<std::int32_t>(view.extents.size()),
                                     .count = Size{count},
                                     .chunk = b.chunk()},
           {Size{count, b.chunk()}, Size{}, Size{}});
}

void lower_unary(Builder& b, const ir::Graph&, const ir::Node& node) {
  std::int32_t code = *ops::traits(node).unary_code;
  if (node.op == "Gelu" && node.has("approximate") &&
      node.string_attribute("approximate") == "tanh")
    code = unary::gelu_tanh;
  const ir::Dim count = element_count(node.output()->type.shape);
  const std::string kernel = "unary_" + kernel_suffix(node.inputs[0]->type.dtype, node);
  b.launch(node, std::string(ir::name_of(node.inputs[0]->type.dtype)), "elements",
           b.kernel("elementwise_unary", kernel),
           kernels::Unary<Argument>{.x = b.in(node.inputs[0]),
                                    .out = b.out(node.output()),
                                    .op = code,
                                    .count = Size{count},
                                    .chunk = b.vector_chunk()},
           {Size{count, b.vector_chunk()}, Size{}, Size{}});
}

void lower_where(Builder& b, const ir::Graph&, const ir::Node& node) {
  const ir::Type& type = node.output()->type;
  View view{type.shape, {}};
  for (const ir::Value* in : node.inputs)
    view.strides.push_back(broadcast(in->type.shape, type.shape));
  view = coalesced(std::move(view));
  const ir::Dim count = element_count(type.shape);
  b.launch(node, std::string(ir::name_of(type.dtype)), "elements",
           b.kernel("where", fmt::format("where_{}", ir::size_of(type.dtype))),
           kernels::Where<Argument>{.condition = b.in(node.inputs[0]),
                                    .a = b.in(node.inputs[1]),
                                    .b = b.in(node.inputs[2]),
                                    .out = b.out(node.output()),
                                    .shape = table_of(view),
                                    .rank = static_cast<std::int32_t>(view.extents.size()),
                                    .count = Size{count},
                                    .chunk = b.chunk()},
           {Size{count, b.chunk()}, Size{}, Size{}});
}

}  // namespace

void add_elementwise(LoweringTable& table) {
  for (const std::string& op : ops::names()) {
    const ops::Traits& traits = ops::find(op)->traits;
    if (traits.binary_code) table[op] = lower_binary;
    if (traits.unary_code) table[op] = lower_unary;
  }
  table["Where"] = lower_where;
}

}  // namespace bertcl::plan
