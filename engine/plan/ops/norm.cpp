// SPDX-License-Identifier: Apache-2.0
// Launch steps of embed_norm and add_norm: one pass over the rows, with quantization at the end.
#include <array>
#include <optional>

#include "kernels/contracts/rows.hpp"
#include "kernels/same_arguments.hpp"
#include "ops/norm.hpp"
#include "ops/operands.hpp"
#include "plan/lowering_table.hpp"
#include "plan/row_kernels.hpp"
#include "plan/split_k.hpp"
#include "plan/types.hpp"

namespace bertcl::plan {
namespace {

/// The results of a norm: out, and q and r, which are quantized. q may be the same in bf16.
void add_results(Builder& b, const ir::Graph& graph, const ir::Node& node, std::size_t out_scale,
                 std::int64_t hidden, auto& arguments) {
  arguments.out = b.out_if_used(node.output(), graph);
  const std::size_t first = ops::first_quantized_result(node);
  const auto add = [&](std::size_t i, Argument& to, Argument& type, Argument& inv_scale,
                       Argument& zero_point) {
    type = 0;
    if (i >= node.outputs.size()) return;
    to = b.out(node.outputs[i]);
    type = type_code(node.outputs[i]->type.dtype);
    const std::size_t operand = out_scale + 2 * (i - first);
    const OutColumns of = out_columns(b, node.input(operand), node.input(operand + 1), hidden);
    inv_scale = of.inv_scale, zero_point = of.zero_point;
  };
  add(first, arguments.q, arguments.q_type, arguments.q_inv_scale, arguments.q_zero_point);
  add(first + 1, arguments.r, arguments.r_type, arguments.r_inv_scale, arguments.r_zero_point);
}

/// What a norm computes in, and what it writes for linears beside that or instead of it.
Arithmetic type_of(const ir::Node& node, bool adds_partials = false) {
  const std::size_t first = ops::first_quantized_result(node);
  const bool is_alone = node.outputs.size() == first;
  return Arithmetic::fp32_to(is_alone ? ir::DType::f32 : node.outputs[first]->type.dtype,
                             adds_partials);
}

/// add_norm where one of its terms is a GEMM whose K is divided: the terms and their quantization
/// are those of `norm`, whose arguments name the GEMM as its x.
void add_norm_of_partials(Builder& b, const ir::Node& node, const PartialGemm& gemm,
                          const RowGroup& group, const kernels::AddNorm<Argument>& norm,
                          std::int64_t hidden) {
  const kernels::GemmS8Reduce<Argument>& of = gemm.arguments;
  auto arguments =
      kernels::with_same_arguments(kernels::AddNormSplitK<Argument>{.partials = of.partials,
                                                                    .column_sums = of.column_sums,
                                                                    .scale = of.scale,
                                                                    .bias = of.bias,
                                                                    .zero_point = of.zero_point,
                                                                    .a_signed = of.a_signed,
                                                                    .splits = of.splits},
                                   norm);
  arguments.hidden = static_cast<std::int32_t>(hidden);
  const auto& variant = kernels::split_k_variants().norm;
  Step& step = b.launch(node, type_of(node, true), variant.name,
                        b.kernel(variant.program, "add_norm_split_k", group.defines), arguments,
                        {SizeExpr{gemm.rows * ir::Dim(group.items)}, SizeExpr{}, SizeExpr{}});
  step.local[0] = static_cast<std::size_t>(group.items);
  step.work_units = gemm.rows;
  step.up_to_rows = gemm.up_to_rows;
  step.partial_sums_per_unit = partial_sum_bytes_per_row(hidden, std::get<std::int32_t>(of.splits));
}

void lower_add_norm(Builder& b, const ir::Graph& graph, const ir::Node& node) {
  namespace o = ops::operands::add_norm;
  const std::int64_t hidden = node.inputs[o::gamma]->constant->size();
  kernels::AddNorm<Argument> arguments;
  const auto add_term = [&](const o::Term& term, Argument& value, Argument& type, Argument& scales,
                            Argument& zero_points) {
    const ir::Value* v = node.input(term.value);
    value = b.in(v);
    type = v ? type_code(v->type.dtype) : 0;
    const ir::Value* scale = node.input(term.scale);
    if (!scale) return;
    scales = column_constants(b, per_column(scale, hidden, 1));
    zero_points = column_constants(b, per_column(node.input(term.zero_point), hidden, 0));
  };
  add_term(o::terms[0], arguments.x, arguments.x_type, arguments.x_scale, arguments.x_zero_point);
  add_term(o::terms[1], arguments.residual, arguments.residual_type, arguments.residual_scale,
           arguments.residual_zero_point);
  arguments.gamma = b.in(node.inputs[o::gamma]);
  arguments.beta = b.in(node.input(o::beta));
  arguments.eps = static_cast<float>(node.float_attribute("epsilon"));
  arguments.rms = static_cast<std::int32_t>(node.int_attribute("rms", 0));
  if (ops::first_quantized_result(node) > 1) arguments.sum = b.out(node.outputs[1]);
  add_results(b, graph, node, o::out_scale, hidden, arguments);
  const ir::Shape& shape = node.output()->type.shape;
  const ir::Dim rows = row_count(shape);
  arguments.rows = SizeExpr{rows};
  arguments.hidden = SizeExpr{shape.back()};
  arguments.rows_per_item = b.rows_per_item();
  const RowColumns columns_of_row{shape.back()};
  std::optional<PartialGemm> gemm = b.take_partial(node.inputs[o::x]);
  const bool is_residual = !gemm && (gemm = b.take_partial(node.input(o::residual)));
  std::optional<RowGroup> group;
  if (gemm && !(group = row_group_of(b, node, kernels::add_norm_variants(), columns_of_row)))
    gemm->reduce();
  Step& step = launch_rows(b, node, type_of(node), kernels::add_norm_variants(), "add_norm",
                           arguments, rows, columns_of_row);
  if (!group) return;
  step.work_units = rows;
  step.above_rows = gemm->up_to_rows;
  if (is_residual) {  // a sum's terms may change places
    arguments.residual = arguments.x;
    arguments.residual_type = arguments.x_type;
    arguments.residual_scale = arguments.x_scale;
    arguments.residual_zero_point = arguments.x_zero_point;
  }
  add_norm_of_partials(b, node, *gemm, *group, arguments, hidden);
}

/// The table in half, where it is stored so or is small and loses nothing.
std::optional<ir::Tensor> in_half(const ir::Tensor& table) {
  constexpr std::int64_t small = 1 << 20;
  const std::vector<ir::Tensor> parts = table.parts();
  if (parts.size() == 1 && parts[0].dtype() == ir::DType::f16) return parts[0];
  if (table.size() > small) return std::nullopt;
  ir::Tensor half = table.converted(ir::DType::f16);
  if (!(half.converted(ir::DType::f32) == table)) return std::nullopt;
  return half;
}

/// Word, position and type table as the kernel reads them: in half if all can be.
std::array<std::optional<ir::Tensor>, 3> stored_tables(const ir::Node& node) {
  namespace o = ops::operands::embed_norm;
  std::array<std::optional<ir::Tensor>, 3> real, half;
  bool all = true;
  for (std::size_t i = 0; i < 3; ++i) {
    const ir::Value* v = node.input(std::array{o::word, o::position, o::type}[i]);
    if (!v) continue;
    real[i] = *v->constant;
    if (all) half[i] = in_half(*v->constant);
    all = all && half[i].has_value();
  }
  return all ? half : real;
}

void lower_embed_norm(Builder& b, const ir::Graph& graph, const ir::Node& node) {
  namespace o = ops::operands::embed_norm;
  const auto rows_of = [&](std::size_t table) {
    const ir::Value* v = node.input(table);
    return v ? static_cast<std::int32_t>(v->type.shape[0].constant()) : 0;
  };
  const ir::Value* positions = node.input(o::positions);
  if (!positions || !positions->producer ||
      positions->producer->op != ops::operands::pack_inputs::op)
    fail(node,
         "an embedding needs packed tokens; keep the pass pack_tokens enabled, and use a file with "
         "one encoder");
  const ir::Shape& shape = node.output()->type.shape;
  const std::int64_t hidden = node.inputs[o::gamma]->constant->size();
  const ir::Dim tokens = row_count(shape);
  const auto tables = stored_tables(node);
  // The kernels of work-groups load whole vectors, which lie at any address in the mapped file.
  const bool in_place = !b.is_disabled("rows");
  const auto table = [&](const std::optional<ir::Tensor>& stored) {
    if (!stored) return Argument(nullptr);
    return in_place ? b.constant_in_place(*stored) : b.constant(*stored);
  };
  kernels::EmbedNorm<Argument> arguments;
  arguments.input_ids = b.in(node.inputs[o::ids]);
  arguments.position_ids = b.in(positions);
  arguments.token_type_ids = b.in(node.input(o::types));
  arguments.word_table = table(tables[0]);
  arguments.word_rows = rows_of(o::word);
  arguments.position_table = table(tables[1]);
  arguments.position_rows = rows_of(o::position);
  arguments.type_table = table(tables[2]);
  arguments.type_rows = rows_of(o::type);
  arguments.table_type = type_code(tables[0]->dtype());
  arguments.gamma = b.in(node.inputs[o::gamma]);
  arguments.beta = b.in(node.input(o::beta));
  arguments.eps = static_cast<float>(node.float_attribute("epsilon"));
  add_results(b, graph, node, o::out_scale, hidden, arguments);
  arguments.error = b.error_flag();
  arguments.tokens = SizeExpr{tokens};
  arguments.hidden = SizeExpr{shape.back()};
  arguments.rows_per_item = b.rows_per_item();
  launch_rows(b, node, type_of(node), kernels::embed_norm_variants(), "embed_norm", arguments,
              tokens, {shape.back()});
  b.plan().word_rows = rows_of(o::word);
  if (!positions->producer->input(ops::operands::pack_inputs::positions))
    b.plan().max_positions = rows_of(o::position);
}

}  // namespace

void add_norm(LoweringTable& table) {
  table[ops::operands::add_norm::op] = lower_add_norm;
  table[ops::operands::embed_norm::op] = lower_embed_norm;
}

}  // namespace bertcl::plan
