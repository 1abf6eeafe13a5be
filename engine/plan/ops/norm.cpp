// SPDX-License-Identifier: Apache-2.0
// Launch steps of embed_norm and add_norm: one pass over the rows, with quantization at the end.
#include "passes/operands.hpp"
#include "plan/ops/ops.hpp"
#include "plan/types.hpp"

namespace bertcl::plan {
namespace {

Argument columns(Builder& b, std::vector<float> values) {
  const auto count = static_cast<std::int64_t>(values.size());
  return b.constant(ir::Tensor::of({count}, std::move(values)));
}

/// Arguments out, then type, inverse scale and zero point of each quantized result behind it.
void add_results(Builder& b, const ir::Graph& graph, const ir::Node& node, std::size_t out_scale,
                 std::int64_t hidden, std::vector<Argument>& arguments) {
  arguments.push_back(b.out_if_used(node.output(), graph));
  for (std::size_t i = 1; i < 3; ++i, out_scale += 2) {
    if (i >= node.outputs.size()) {
      arguments.insert(arguments.end(), {nullptr, 0, nullptr, nullptr});
      continue;
    }
    std::vector<float> inverse = per_column(node.input(out_scale), hidden, 1);
    for (float& s : inverse) s = 1.0f / s;
    arguments.insert(arguments.end(),
                     {b.out(node.outputs[i]), type_code(node.outputs[i]->type.dtype),
                      columns(b, std::move(inverse)),
                      columns(b, per_column(node.input(out_scale + 1), hidden, 0))});
  }
}

void lower_add_norm(Builder& b, const ir::Graph& graph, const ir::Node& node) {
  namespace o = passes::add_norm;
  const std::int64_t hidden = node.inputs[o::gamma]->constant->size();
  std::vector<Argument> arguments;
  for (const o::Term& term : o::terms) {
    const ir::Value* v = node.input(term.value);
    const ir::Value* scale = node.input(term.scale);
    const ir::Value* zero_point = node.input(term.zero_point);
    arguments.push_back(b.in(v));
    arguments.push_back(v ? type_code(v->type.dtype) : 0);
    arguments.push_back(scale ? columns(b, per_column(scale, hidden, 1)) : Argument(nullptr));
    arguments.push_back(scale ? columns(b, per_column(zero_point, hidden, 0)) : Argument(nullptr));
  }
  arguments.push_back(nullptr);  // the bias of the product stays in its epilogue
  arguments.push_back(b.in(node.inputs[o::gamma]));
  arguments.push_back(b.in(node.inputs[o::beta]));
  arguments.push_back(static_cast<float>(node.float_attribute("epsilon")));
  add_results(b, graph, node, o::out_scale, hidden, arguments);
  const ir::Shape& shape = node.output()->type.shape;
  const ir::Dim rows = row_count(shape);
  arguments.push_back(Size{rows});
  arguments.push_back(Size{shape.back()});
  arguments.push_back(b.rows_per_item());
  const char* type = node.outputs.size() > 1 ? "fp32 > int8" : "fp32";
  b.launch(node, type, "rows", b.kernel("add_norm", "add_norm"), arguments,
           {Size{rows, b.rows_per_item()}, Size{}, Size{}});
}

void lower_embed_norm(Builder& b, const ir::Graph& graph, const ir::Node& node) {
  namespace o = passes::embed_norm;
  const auto rows_of = [&](std::size_t table) {
    const ir::Value* v = node.input(table);
    return v ? static_cast<std::int32_t>(v->type.shape[0].constant()) : 0;
  };
  const ir::Value* positions = node.input(o::positions);
  if (!positions || !positions->producer || positions->producer->op != "pack_inputs")
    throw Error(
        fmt::format("{}: an embedding outside of packed tokens; kernels take files with one "
                    "encoder, and need the pass pack_tokens",
                    node.describe()));
  const ir::Shape& shape = node.output()->type.shape;
  const std::int64_t hidden = node.inputs[o::gamma]->constant->size();
  const ir::Dim tokens = row_count(shape);
  std::vector<Argument> arguments{b.in(node.inputs[o::ids]),
                                  b.in(positions),
                                  b.in(node.input(o::types)),
                                  b.in(node.inputs[o::word]),
                                  rows_of(o::word),
                                  b.in(node.inputs[o::position]),
                                  rows_of(o::position),
                                  b.in(node.input(o::type)),
                                  rows_of(o::type),
                                  type_code(node.inputs[o::word]->type.dtype),
                                  b.in(node.inputs[o::gamma]),
                                  b.in(node.input(o::beta)),
                                  static_cast<float>(node.float_attribute("epsilon"))};
  add_results(b, graph, node, o::out_scale, hidden, arguments);
  arguments.push_back(b.error_flag());
  arguments.push_back(Size{tokens});
  arguments.push_back(Size{shape.back()});
  arguments.push_back(b.rows_per_item());
  const char* type = node.outputs.size() > 1 ? "fp32 > int8" : "fp32";
  b.launch(node, type, "rows", b.kernel("embed_norm", "embed_norm"), arguments,
           {Size{tokens, b.rows_per_item()}, Size{}, Size{}});
  if (!positions->producer->input(passes::pack_inputs::positions))
    b.plan().max_positions = rows_of(o::position);
}

}  // namespace

void add_norm(LoweringTable& table) {
  table["add_norm"] = lower_add_norm;
  table["embed_norm"] = lower_embed_norm;
}

}  // namespace bertcl::plan
