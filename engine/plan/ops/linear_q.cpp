// SPDX-License-Identifier: Apache-2.0
// Launch steps of linear_q: int8 GEMMs with weights that are prepacked once, while planning.
#include <cmath>
#include <utility>

#include "kernels/bind.hpp"
#include "kernels/contracts/gemm.hpp"
#include "kernels/contracts/prepack.hpp"
#include "ops/operands.hpp"
#include "passes/quant_params.hpp"
#include "plan/ops/linear.hpp"
#include "plan/ops/ops.hpp"
#include "plan/types.hpp"
#include "plan/variants.hpp"

namespace bertcl::plan {
namespace {

struct PrepackedWeights {
  opencl::Buffer panels, column_sums;
};

PrepackedWeights prepack_weights(Builder& b, const ir::Tensor& w, const GemmVariant& variant) {
  const std::int64_t k = w.shape()[0], n = w.shape()[1];
  PrepackedWeights prepacked{
      b.context().allocate(prepacked_size(variant, n, k)),
      b.context().allocate(static_cast<std::size_t>(n) * sizeof(std::int32_t))};
  prepack_parts(b, w, variant.panel, [&](const ir::Tensor& part, std::int32_t first) {
    opencl::Kernel kernel = b.kernel("prepack_s8", "prepack_s8");
    kernels::set(kernel, kernels::PrepackS8<opencl::KernelArgument>{
                             .packed = prepacked.panels,
                             .colsum = prepacked.column_sums,
                             .n = static_cast<std::int32_t>(part.shape()[1]),
                             .K = static_cast<std::int32_t>(k),
                             .panel = variant.panel,
                             .group = variant.k_group,
                             .first = first,
                             .N = static_cast<std::int32_t>(n)});
    return kernel;
  });
  return prepacked;
}

/// The variants of a tuned step for fewer rows than its own.
void add_builds(Step& step, const std::vector<TunedVariant>& tuned, const ir::Dim& rows,
                std::int64_t n, const auto& kernel_of) {
  for (std::size_t i = 0; i + 1 < tuned.size(); ++i) {
    const GemmVariant& r = *tuned[i].variant;
    // Between two measured numbers of rows their geometric mean parts them.
    const double border =
        std::sqrt(static_cast<double>(tuned[i].rows) * static_cast<double>(tuned[i + 1].rows));
    step.alternatives.push_back({static_cast<std::int64_t>(border),
                                 r.name,
                                 kernel_of(r),
                                 grid_of(r, rows, n),
                                 {static_cast<std::size_t>(r.items), 1, 1}});
  }
}

void lower_integer(Builder& b, const ir::Graph&, const ir::Node& node) {
  namespace o = ops::operands::linear_q;
  const auto choice = choose(b, node, kernels::gemm_s8_variants());
  const ir::Tensor& w = *node.inputs[o::w]->constant;
  const std::int64_t k = w.shape()[0], n = w.shape()[1];
  const std::vector<GemmVariant> variants = tunable_variants_of(b, kernels::gemm_s8_variants());
  const std::vector<TunedVariant> tuned = tuned_variants(b, variants, "linear_q", "int8", n, k);
  const GemmVariant variant =
      tuned.empty() ? for_device(*choice.variant, b) : *tuned.back().variant;
  if (const auto most = passes::max_exact_products(node.input(o::w_zero_point)); k > most)
    throw Error(fmt::format("{}: it sums {} products, an int32 holds the sum of at most {}",
                            node.describe(), k, most));
  PrepackedWeights prepacked = prepack_weights(b, w, variant);

  // Scale and zero point of x may be measured by an earlier step; they are read on the device then.
  const ir::Value* x_scale = node.inputs[o::x_scale];
  const ir::Value* x_zero = node.input(o::x_zero_point);
  const ir::Value* measured_scale = x_scale->is_constant() ? nullptr : x_scale;
  const ir::Value* row_scale = nullptr;
  if (measured_scale && element_count(measured_scale->type.shape) != ir::Dim(1))
    std::swap(measured_scale, row_scale);
  const ir::Value* measured_zero = !x_zero || x_zero->is_constant() ? nullptr : x_zero;
  const float static_scale = x_scale->is_constant() ? scalar_or(x_scale, 1) : 1;
  const std::int32_t static_zero = measured_zero ? 0 : zero_point_or_0(x_zero);
  std::vector<float> scale = per_column(node.inputs[o::w_scale], n, 1);
  for (float& s : scale) s *= static_scale;
  Argument inv_scale = nullptr, zero_point = nullptr;
  if (const ir::Value* out_scale = node.input(o::out_scale)) {
    std::vector<float> inverse = per_column(out_scale, n, 1);
    for (float& s : inverse) s = 1.0f / s;
    inv_scale = b.constant(ir::Tensor::of({n}, std::move(inverse)));
    zero_point = b.constant(ir::Tensor::of({n}, per_column(node.input(o::out_zero_point), n, 0)));
  }
  const ir::Value* x = node.inputs[o::x];
  const ir::Value* bias = node.input(o::bias);
  const ir::Dim rows = row_count(node.output()->type.shape);
  Argument w_zero = nullptr, row_sums = nullptr;
  if (const ir::Value* z = node.input(o::w_zero_point)) {
    w_zero = b.constant(ir::Tensor::of({n}, per_column(z, n, 0)).converted(ir::DType::i32));
    const Argument sums =
        b.scratch_out(node.output()->name + ".row_sums", {ir::DType::i32, {rows}});
    b.launch(node, "int8", "rows", b.kernel("row_sums", "row_sums"),
             kernels::RowSums<Argument>{.a = b.in(x),
                                        .a_type = type_code(x->type.dtype),
                                        .zero_point = static_zero,
                                        .x_zero_point = b.in(measured_zero),
                                        .sums = sums,
                                        .M = Size{rows},
                                        .K = static_cast<std::int32_t>(k),
                                        .rows_per_item = b.rows_per_item()},
             {Size{rows, b.rows_per_item()}, Size{}, Size{}});
    row_sums = Builder::read(sums);
  }
  const std::int32_t activation = activation_code(activation_of(node));
  const std::int32_t out_type = type_code(node.output()->type.dtype);
  const auto kernel_of = [&](const GemmVariant& v) {
    opencl::Defines defines = v.defines;
    if (v.takes_epilogue) defines["ACTIVATION"] = activation, defines["OUT_TYPE"] = out_type;
    return b.kernel(v.program, "gemm_s8", defines);
  };
  Step& step = b.launch(node, "int8", variant.name, kernel_of(variant),
                        kernels::GemmS8<Argument>{
                            .a = b.in(x),
                            .b = b.constant(std::move(prepacked.panels)),
                            .colsum = b.constant(std::move(prepacked.column_sums)),
                            .scale = b.constant(ir::Tensor::of({n}, std::move(scale))),
                            .bias = b.in(bias),
                            .out_inv_scale = inv_scale,
                            .out_zero_point = zero_point,
                            .out = b.out(node.output()),
                            .M = Size{rows},
                            .N = static_cast<std::int32_t>(n),
                            .K = static_cast<std::int32_t>(k),
                            .zero_point = static_zero,
                            .a_signed = static_cast<std::int32_t>(x->type.dtype == ir::DType::i8),
                            .has_bias = static_cast<std::int32_t>(bias != nullptr),
                            .activation = activation,
                            .out_type = out_type,
                            .x_scale = b.in(measured_scale),
                            .x_zero_point = b.in(measured_zero),
                            .row_sums = row_sums,
                            .w_zero_point = w_zero,
                            .row_scale = b.in(row_scale)},
                        grid_of(variant, rows, n));
  step.local[0] = static_cast<std::size_t>(variant.items);
  step.tunable = tunable_of(variants, n, k, choice.variant->name);
  if (!tuned.empty()) {
    step.tunable->gain = b.tuning().find("linear_q", "int8", n, k)->gain();
    add_builds(step, tuned, rows, n, kernel_of);
  } else if (variant.items > 1) {
    for (const GemmVariant& few :
         kernels::with_all_smaller_tiles(variant, b.context().info(), b.context().capabilities()))
      step.alternatives.push_back({0, few.name, kernel_of(few), grid_of(few, rows, n), step.local});
  } else if (auto few = small_m_variant(b, variant, "gemm_s8", variant.defines, rows, n)) {
    step.alternatives.push_back(std::move(*few));
  }
  step.why_not_faster = choice.why_not_faster;
  count_operations(step, rows, n, k);
}

}  // namespace

void add_linear_q(LoweringTable& table) { table["linear_q"] = lower_integer; }

}  // namespace bertcl::plan
