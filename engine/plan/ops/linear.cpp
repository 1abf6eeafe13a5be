// SPDX-License-Identifier: Apache-2.0
// Launch steps of linear: float GEMMs with weights that are prepacked once, while planning.
#include <utility>

#include "kernels/bind.hpp"
#include "kernels/contracts/gemm.hpp"
#include "kernels/contracts/prepack.hpp"
#include "kernels/tiles.hpp"
#include "opencl/device/capabilities.hpp"
#include "ops/operands.hpp"
#include "ops/precision.hpp"
#include "plan/gemm_s8.hpp"
#include "plan/gemm_variants.hpp"
#include "plan/linear_clblast.hpp"
#include "plan/lowering_table.hpp"
#include "plan/precision.hpp"
#include "plan/types.hpp"
#include "plan/variants.hpp"

namespace bertcl::plan {
namespace {

/// Panels of a work-item of gemm_bf16_x86.cl: with more, A in f32 is rounded less often; with
/// fewer, there is work for more cores.
std::int32_t bf16_item_panels(Builder& b) { return b.context().info().compute_units <= 8 ? 4 : 2; }

std::vector<GemmVariant> float_variants_of(const Builder& b, const ir::Node& node) {
  std::vector<GemmVariant> variants =
      variants_by_precision(node, kernels::gemm_f16_variant(), kernels::gemm_bf16_variant(),
                            kernels::gemm_f32_variants());
  if (b.options().gemm == GemmLibrary::clblast && ops::precision_of(node) != ir::DType::bf16)
    variants.insert(variants.begin(), kernels::clblast_variant());
  return variants;
}

/// With weights in half CLBlast computes in half too; of the own kernels only matrix_f16 does.
kernels::Refusal why_not_float(Builder& b, const ir::Node& node, const GemmVariant& variant) {
  if (variant.program.empty() && ops::precision_of(node) == ir::DType::f16 &&
      !b.context().capabilities().fp16)
    return {"fp16 weights need fp16 arithmetic, which the device does not support"};
  return b.target().why_not(variant.needs);
}

GemmChoice choose_float(Builder& b, const ir::Node& node, std::int64_t n, std::int64_t k) {
  const std::vector<GemmVariant> variants = float_variants_of(b, node);
  const auto refusal = [&](const GemmVariant& variant) { return why_not_float(b, node, variant); };
  const auto choice = choose(b, node, variants, refusal);
  const ir::DType precision = ops::precision_of(node);
  // Which library and which precision multiplies may have been asked for; tuning has the rest.
  std::vector<GemmVariant> supported;
  if (b.options().gemm == GemmLibrary::automatic && precision != ir::DType::bf16) {
    supported = tunable_variants_of(b.target(), variants);
    std::erase_if(supported, [&](const GemmVariant& variant) {
      return b.options().is_refused(node.op, variant.name);
    });
    const GemmVariant& clblast = kernels::clblast_variant();
    if (!b.is_disabled(clblast.name) && refusal(clblast).reason.empty())
      supported.push_back(clblast);
  }
  const char* key = precision == ir::DType::f16 ? "fp16" : "fp32";
  const std::vector<TunedVariant> tuned =
      tuned_variants(b.target(), supported, ops::operands::linear::op, key, n, k);
  GemmChoice gemm;
  gemm.variant =
      tuned.empty() ? b.target().adapt_to_device(*choice.variant) : *tuned.back().variant;
  gemm.tunable = tunable_of(supported, n, k, choice.variant->name);
  gemm.why_not_faster = why_not_faster(node, choice.why_not_faster);
  if (!tuned.empty()) {
    gemm.tunable.gain = b.tuning().find(ops::operands::linear::op, key, n, k)->gain();
  } else if (precision == ir::DType::bf16) {
    const std::int32_t panels = bf16_item_panels(b);
    gemm.variant.defines["ITEM_PANELS"] = panels;
    gemm.variant.tile_columns *= panels;
  } else if (!gemm.variant.smaller_tiles.empty()) {
    for (GemmVariant& smaller : kernels::with_all_smaller_tiles(gemm.variant, b.context().info(),
                                                                b.context().capabilities()))
      gemm.for_rows.push_back({0, std::move(smaller)});
  } else if (auto small_m = small_m_of(b.target(), gemm.variant, n)) {
    gemm.for_rows.push_back({small_m->tile_rows, std::move(*small_m)});
  }
  return gemm;
}

/// What depends on the precision and variant of a GEMM.
struct FloatKind {
  Arithmetic type;
  const char *kernel, *prepack;
  opencl::Defines options, stored;  // of the kernel, and of the one that prepacks
  std::size_t weight_bytes;         // prepacked
};

FloatKind kind_of(ir::DType precision, const GemmVariant& variant) {
  const opencl::Defines half{{"B_HALF", precision == ir::DType::f16}};
  if (precision == ir::DType::bf16)
    return {Arithmetic::bf16, "gemm_bf16", "prepack_pairs", {}, half, 2};
  if (variant.k_group == 2) return {Arithmetic::fp16, "gemm_f32", "prepack_pairs", {}, half, 2};
  if (precision == ir::DType::f16)
    return {Arithmetic::fp16_weights, "gemm_f32", "prepack_f32", half, half, 2};
  return {Arithmetic::fp32, "gemm_f32", "prepack_f32", half, half, 4};
}

opencl::Buffer prepack_float(Builder& b, const ir::Tensor& w, const GemmVariant& variant,
                             const FloatKind& kind) {
  const std::int64_t k = w.shape()[0], n = w.shape()[1];
  opencl::Buffer prepacked =
      b.context().allocate(prepacked_size(variant, n, k) * kind.weight_bytes);
  prepack_parts(b, w, variant.panel, [&](const ir::Tensor& part, std::int32_t first) {
    opencl::Defines stored = b.target().prepack_options();
    stored["W_HALF"] = part.dtype() == ir::DType::f16;
    stored.insert(kind.stored.begin(), kind.stored.end());
    opencl::Kernel kernel = b.kernel(kind.prepack, kind.prepack, stored);
    kernels::set(kernel, kernels::PrepackFloat<opencl::KernelArgument>{
                             .panels = prepacked,
                             .n = static_cast<std::int32_t>(part.shape()[1]),
                             .K = static_cast<std::int32_t>(k),
                             .panel = variant.panel,
                             .first = first,
                             .N = static_cast<std::int32_t>(n)});
    return kernel;
  });
  return prepacked;
}

void lower_linear(Builder& b, const ir::Graph&, const ir::Node& node) {
  namespace o = ops::operands::linear;
  const ir::Value* w = node.inputs[o::w];
  if (!w->is_constant())
    fail(node, "its weight is still quantized; float GEMMs need the pass fold_dequantize");
  const std::int64_t k = w->constant->shape()[0], n = w->constant->shape()[1];
  GemmChoice gemm = choose_float(b, node, n, k);
  if (gemm.variant.program.empty()) return lower_clblast(b, node, std::move(gemm.tunable));
  const ir::DType precision = ops::precision_of(node);
  const FloatKind kind = kind_of(precision, gemm.variant);
  opencl::Buffer prepacked = prepack_float(b, *w->constant, gemm.variant, kind);
  const auto kernel_of = [&](const GemmVariant& variant) {
    opencl::Defines defines = variant.defines;
    defines.insert(kind.options.begin(), kind.options.end());
    return b.kernel(variant.program, kind.kernel, defines);
  };
  const ir::Dim rows = row_count(node.output()->type.shape);
  const auto launch = [&](auto arguments) -> Step& {
    const ir::Value* bias = node.input(o::bias);
    arguments.a = b.in(node.inputs[o::x]);
    arguments.b = b.constant(std::move(prepacked));
    arguments.bias = b.in(bias);
    arguments.out = b.out(node.output());
    arguments.M = SizeExpr{rows};
    arguments.N = static_cast<std::int32_t>(n);
    arguments.K = static_cast<std::int32_t>(k);
    arguments.has_bias = static_cast<std::int32_t>(bias != nullptr);
    arguments.activation = activation_code(activation_of(node));
    return b.launch(node, kind.type, gemm.variant.name, kernel_of(gemm.variant), arguments,
                    grid_of(gemm.variant, rows, n));
  };
  kernels::GemmBf16<Argument> of_bf16;
  of_bf16.a_type = type_code(node.inputs[o::x]->type.dtype);
  of_bf16.out_type = type_code(node.output()->type.dtype);
  Step& step =
      precision == ir::DType::bf16 ? launch(of_bf16) : launch(kernels::GemmF32<Argument>());
  set_alternatives(step, gemm, rows, kernel_of);
}

}  // namespace

void add_linear(LoweringTable& table) { table[ops::operands::linear::op] = lower_linear; }

}  // namespace bertcl::plan
