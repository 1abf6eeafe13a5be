// SPDX-License-Identifier: Apache-2.0
// Launch steps of elementwise operators with broadcasting.
#include "kernels/contracts/elementwise.hpp"
#include "plan/ops/ops.hpp"
#include "plan/strided.hpp"
#include "plan/types.hpp"

namespace bertcl::plan {
namespace {

// Codes of elementwise_binary.cl and elementwise_unary.cl.
const std::map<std::string, std::int32_t, std::less<>> binary_codes{{"Add", 0},
                                                                    {"Sub", 1},
                                                                    {"Mul", 2},
                                                                    {"Div", 3},
                                                                    {"Pow", 4},
                                                                    {"Min", 5},
                                                                    {"Max", 6},
                                                                    {"Mod", 7},
                                                                    {"Equal", 16},
                                                                    {"Less", 17},
                                                                    {"Greater", 18},
                                                                    {"LessOrEqual", 19},
                                                                    {"GreaterOrEqual", 20},
                                                                    {"And", 24},
                                                                    {"Or", 25},
                                                                    {"Xor", 26}};
const std::map<std::string, std::int32_t, std::less<>> unary_codes{{"Neg", 0},
                                                                   {"Abs", 1},
                                                                   {"Sqrt", 2},
                                                                   {"Exp", 3},
                                                                   {"Log", 4},
                                                                   {"Erf", 5},
                                                                   {"Tanh", unary::tanh},
                                                                   {"Sigmoid", 7},
                                                                   {"Relu", unary::relu},
                                                                   {"Gelu", unary::gelu},
                                                                   {"Reciprocal", 11},
                                                                   {"Floor", 12},
                                                                   {"Ceil", 13},
                                                                   {"Round", 14},
                                                                   {"Sign", 15},
                                                                   {"Sin", 16},
                                                                   {"Cos", 17},
                                                                   {"Not", 18},
                                                                   {"IsNaN", 19}};
constexpr std::int32_t fmod_code = 8;

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
  throw Error(fmt::format("{}: no kernel for element type {}; f32, i32, i64 and bool have one",
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
  std::int32_t code = binary_codes.find(node.op)->second;
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
  std::int32_t code = unary_codes.find(node.op)->second;
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
                                    .chunk = b.chunk()},
           {Size{count, b.chunk()}, Size{}, Size{}});
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
  for (const auto& [op, code] : binary_codes) table[op] = lower_binary;
  for (const auto& [op, code] : unary_codes) table[op] = lower_unary;
  table["Where"] = lower_where;
}

}  // namespace bertcl::plan
