// SPDX-License-Identifier: Apache-2.0
// Launch steps of QuantizeLinear and DequantizeLinear that stayed unfused.
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "kernels/contracts/quantize.hpp"
#include "ops/op.hpp"
#include "ops/operands.hpp"
#include "plan/elements.hpp"
#include "plan/lowering_table.hpp"
#include "plan/strided.hpp"
#include "plan/types.hpp"

namespace bertcl::plan {
namespace {

/// Why a pair stays a launch of its own.
std::string why_alone(const ir::Node& node) {
  if (node.op == "QuantizeLinear") {
    const ir::Node* maker = node.inputs[0]->producer;
    if (maker && maker->op == ops::operands::add_norm::op && node.inputs[0] != maker->output())
      return "its operand is the sum of add_norm, which is written in f32 only";
    return fmt::format(
        "its operand comes from {}: QuantizeLinear can be fused only into embed_norm, add_norm, "
        "linear_q, attention_q, gated and rotary, and into the last four only if nothing else "
        "reads their float result",
        maker ? maker->op : "the caller");
  }
  std::set<std::string> readers;
  for (const ir::Node* user : node.output()->users) readers.insert(user->op);
  return fmt::format(
      "it is read by {}, which computes in float: only linear_q, attention_q and add_norm read "
      "int8",
      readers.empty() ? "the caller" : fmt::format("{}", fmt::join(readers, ", ")));
}

/// The zero points as the kernels read them. Those of i32 are 0 (ONNX), which is none.
Argument zero_points(Builder& b, const ir::Node& node) {
  const ir::Value* zero = node.input(2);
  if (!zero || zero->type.dtype != ir::DType::i32) return b.in(zero);
  const auto is_zero = [](std::int64_t z) { return z == 0; };
  if (zero->is_constant()) {
    const auto numbers = zero->constant->to_ints();
    if (std::ranges::all_of(numbers, is_zero)) return nullptr;
  }
  fail(node, "the i32 zero point '{}' must be a constant 0", zero->name);
}

void lower_quantize(Builder& b, const ir::Graph&, const ir::Node& node) {
  const bool quantizes = node.op == "QuantizeLinear";
  const ir::Value* x = node.inputs[0];
  const ir::Value* y = node.output();
  const ir::Value* quantized = quantizes ? y : x;
  const ir::Shape& shape = x->type.shape;
  ir::Dim axis_size(1), inner = element_count(shape);
  if (!ir::is_scalar(node.inputs[1])) {
    const auto parts = split(shape, ops::axis_of(node, "axis", 1, shape.size()));
    axis_size = parts[1], inner = parts[2];
  }
  const auto launch = [&](const char* kernel, auto arguments) {
    arguments.scales = b.in(node.inputs[1]);
    arguments.zero_points = zero_points(b, node);
    arguments.axis = SizeExpr{axis_size};
    arguments.inner = SizeExpr{inner};
    launch_elements(b, node, Arithmetic::quantize, "elements", b.kernel("quantize", kernel),
                    arguments, element_count(shape), b.vector_chunk())
        .why_not_faster = why_alone(node);
  };
  const std::int32_t code = type_code(quantized->type.dtype);
  const Argument from = b.in(x), to = b.out(y);
  if (quantizes) {
    kernels::Quantize<Argument> arguments;
    arguments.x = from, arguments.y = to, arguments.y_type = code;
    launch("quantize", std::move(arguments));
  } else {
    kernels::Dequantize<Argument> arguments;
    arguments.x = from, arguments.x_type = code, arguments.y = to;
    launch("dequantize", std::move(arguments));
  }
}

}  // namespace

void add_quantize(LoweringTable& table) {
  table["QuantizeLinear"] = lower_quantize;
  table["DequantizeLinear"] = lower_quantize;
}

}  // namespace bertcl::plan
