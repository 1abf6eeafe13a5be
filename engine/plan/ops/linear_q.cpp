// SPDX-License-Identifier: Apache-2.0
// Launch steps of linear_q: int8 GEMMs with weights that are prepacked once, while planning.
#include <algorithm>
#include <utility>

#include "kernels/contracts/gemm.hpp"
#include "kernels/same_arguments.hpp"
#include "ops/operands.hpp"
#include "plan/gemm_s8.hpp"
#include "plan/gemm_variants.hpp"
#include "plan/lowering_table.hpp"
#include "plan/split_k.hpp"
#include "plan/types.hpp"

namespace bertcl::plan {
namespace {

PrepackedS8 prepack_weights(Builder& b, const ir::Tensor& w, const GemmS8& gemm) {
  PrepackedS8 prepacked = allocate_prepacked(b.context(), gemm);
  prepack_parts(b, w, gemm.variant.panel, [&](const ir::Tensor& part, std::int32_t first) {
    opencl::Kernel kernel = b.kernel("prepack_s8", "prepack_s8", prepack_options(b.target(), gemm));
    bind_prepack(kernel, prepacked, gemm, part.shape()[1], first);
    return kernel;
  });
  return prepacked;
}

/// Whether the next step is an add_norm that alone reads the result and can add up partial sums
/// itself (AddNormSplitK).
bool norm_adds_partials(const Builder& b, const ir::Graph& graph, const ir::Node& node,
                        const kernels::GemmS8<Argument>& of) {
  const std::string& norm = kernels::split_k_variants().norm.name;
  if (b.is_disabled(norm) || b.options().is_refused(ops::operands::add_norm::op, norm))
    return false;
  const ir::Value* out = node.output();
  if (out->type.dtype != ir::DType::f32 || !activation_of(node).empty()) return false;
  const auto is_given = [](const Argument& a) {
    return !std::holds_alternative<std::nullptr_t>(a);
  };
  if (is_given(of.x_scale) || is_given(of.x_zero_point) || is_given(of.row_sums) ||
      is_given(of.w_zero_point) || is_given(of.row_scale))
    return false;
  if (out->users.size() != 1 || graph.is_output(out) ||
      out->users[0]->op != ops::operands::add_norm::op)
    return false;
  // Another GEMM between the two would overwrite the sums.
  const auto& nodes = graph.nodes();
  const auto here = std::ranges::find(nodes, &node, [](const auto& n) { return &*n; });
  return std::next(here) != nodes.end() && &**std::next(here) == out->users[0];
}

/// The same GEMM for small M: partial sums over K, and the step that adds them, unless a norm
/// does.
void add_partial_gemm(Builder& b, const ir::Graph& graph, const ir::Node& node, const GemmS8& gemm,
                      const kernels::GemmS8<Argument>& of, const ir::Dim& rows) {
  const kernels::SplitKVariants& names = kernels::split_k_variants();
  const kernels::GemmVariant& variant = gemm.split_variant;
  const std::int32_t n = std::get<std::int32_t>(of.N), items = variant.items;
  const SplitK& split_k = gemm.split_k;
  opencl::Defines defines = variant.defines;
  defines["PARTIAL"] = 1;
  const auto limit = [n, rows, split_k](Step& step) {
    step.work_units = rows;
    step.up_to_rows = split_k.up_to_rows;
    step.partial_sums_per_unit = partial_sum_bytes_per_row(n, split_k.splits);
  };
  const Argument sums = b.partial_sums();
  Step& partial = b.launch(
      node, Arithmetic::int8, names.partial, b.kernel(variant.program, "gemm_s8_partial", defines),
      kernels::with_same_arguments(
          kernels::GemmS8Partial<Argument>{.partials = sums, .splits = split_k.splits}, of),
      {SizeExpr{rows, names.tile[0], items}, SizeExpr{ir::Dim(n), names.tile[1]},
       SizeExpr{ir::Dim(split_k.splits)}});
  partial.local[0] = static_cast<std::size_t>(items);
  count_operations(partial, rows, n, gemm.tunable.k);
  partial.splits = split_k.splits;
  limit(partial);
  const opencl::Defines known{{"ACTIVATION", std::get<std::int32_t>(of.activation)},
                              {"OUT_TYPE", std::get<std::int32_t>(of.out_type)}};
  const auto rest = kernels::with_same_arguments(
      kernels::GemmS8Reduce<Argument>{.partials = sums, .splits = split_k.splits}, of);
  const auto reduce = [=, &b, &node, &names] {
    limit(b.launch(node, Arithmetic::int8, names.reduce.name,
                   b.kernel(names.reduce.program, "gemm_s8_reduce", known), rest,
                   {SizeExpr{ir::Dim(n), 4}, SizeExpr{rows}, SizeExpr{}}));
  };
  if (norm_adds_partials(b, graph, node, of))
    b.defer({node.output(), rest, split_k.up_to_rows, rows, reduce});
  else
    reduce();
}

/// Scale and zero point of x as far as they are known. What an earlier step measures is read on the
/// device: one of all of x, or a scale for each row.
struct InputQuantization {
  float scale = 1;
  std::int32_t zero_point = 0;
  const ir::Value *measured_scale = nullptr, *measured_zero_point = nullptr, *row_scale = nullptr;
};

InputQuantization input_quantization(const ir::Node& node) {
  namespace o = ops::operands::linear_q;
  InputQuantization found;
  const ir::Value* scale = node.inputs[o::x_scale];
  if (scale->is_constant())
    found.scale = scalar_or(scale, 1);
  else if (element_count(scale->type.shape) == ir::Dim(1))
    found.measured_scale = scale;
  else
    found.row_scale = scale;
  const ir::Value* zero_point = node.input(o::x_zero_point);
  if (!zero_point || zero_point->is_constant())
    found.zero_point = zero_point_or_0(zero_point);
  else
    found.measured_zero_point = zero_point;
  return found;
}

/// Launches the step that sums the rows of x, which zero points of weights multiply; returns the
/// sums.
Argument sum_rows(Builder& b, const ir::Node& node, const InputQuantization& input, std::int64_t k,
                  const ir::Dim& rows) {
  const ir::Value* x = node.inputs[ops::operands::linear_q::x];
  const Argument sums = b.scratch_out(node.output()->name + ".row_sums", {ir::DType::i32, {rows}});
  b.launch(node, Arithmetic::int8, "rows", b.kernel("row_sums", "row_sums"),
           kernels::RowSums<Argument>{.a = b.in(x),
                                      .a_type = type_code(x->type.dtype),
                                      .zero_point = input.zero_point,
                                      .x_zero_point = b.in(input.measured_zero_point),
                                      .sums = sums,
                                      .M = SizeExpr{rows},
                                      .K = static_cast<std::int32_t>(k),
                                      .rows_per_item = b.rows_per_item()},
           {SizeExpr{rows, b.rows_per_item()}, SizeExpr{}, SizeExpr{}});
  return Builder::read(sums);
}

void lower_linear_q(Builder& b, const ir::Graph& graph, const ir::Node& node) {
  namespace o = ops::operands::linear_q;
  const ir::Tensor& w = *node.inputs[o::w]->constant;
  const std::int64_t k = w.shape()[0], n = w.shape()[1];
  const GemmS8 gemm = choose_gemm_s8(b.target(), node.describe(), n, k);
  check_exact_sums(node.describe(), k, node.input(o::w_zero_point));
  PrepackedS8 prepacked = prepack_weights(b, w, gemm);

  const InputQuantization input = input_quantization(node);
  std::vector<float> scale = per_column(node.inputs[o::w_scale], n, 1);
  for (float& s : scale) s *= input.scale;
  const OutColumns out = out_columns(b, node.input(o::out_scale), node.input(o::out_zero_point), n);
  const ir::Value* x = node.inputs[o::x];
  const ir::Value* bias = node.input(o::bias);
  const ir::Dim rows = row_count(node.output()->type.shape);
  Argument w_zero_point = nullptr, row_sums = nullptr;
  if (const ir::Value* z = node.input(o::w_zero_point)) {
    w_zero_point = b.constant(ir::Tensor::of({n}, per_column(z, n, 0)).converted(ir::DType::i32));
    row_sums = sum_rows(b, node, input, k, rows);
  }
  const std::int32_t activation = activation_code(activation_of(node));
  const std::int32_t out_type = type_code(node.output()->type.dtype);
  kernels::GemmS8<Argument> arguments{
      .a = b.in(x),
      .b = b.constant(std::move(prepacked.panels)),
      .column_sums = b.constant(std::move(prepacked.column_sums)),
      .scale = b.constant(ir::Tensor::of({n}, std::move(scale))),
      .bias = b.in(bias),
      .out_inv_scale = out.inv_scale,
      .out_zero_point = out.zero_point,
      .out = b.out(node.output()),
      .M = SizeExpr{rows},
      .N = static_cast<std::int32_t>(n),
      .K = static_cast<std::int32_t>(k),
      .zero_point = input.zero_point,
      .a_signed = static_cast<std::int32_t>(x->type.dtype == ir::DType::i8),
      .has_bias = static_cast<std::int32_t>(bias != nullptr),
      .activation = activation,
      .out_type = out_type,
      .x_scale = b.in(input.measured_scale),
      .x_zero_point = b.in(input.measured_zero_point),
      .row_sums = row_sums,
      .w_zero_point = w_zero_point,
      .row_scale = b.in(input.row_scale)};
  Step& step =
      b.launch(node, Arithmetic::int8, gemm.variant.name, {}, kernels::in_order(arguments), {});
  set_variants(step, gemm, activation, out_type, rows,
               [&](const std::string& program, const char* kernel, const opencl::Defines& defines) {
                 return b.kernel(program, kernel, defines);
               });
  if (gemm.split_k.splits == 1) return;
  step.above_rows = gemm.split_k.up_to_rows;
  add_partial_gemm(b, graph, node, gemm, arguments, rows);
}

}  // namespace

void add_linear_q(LoweringTable& table) { table[ops::operands::linear_q::op] = lower_linear_q; }

}  // namespace bertcl::plan
