// SPDX-License-Identifier: Apache-2.0
// Launch steps of linear: float GEMMs with weights that are prepacked once, while planning.
#include <utility>

#include "kernels/bind.hpp"
#include "kernels/contracts/gemm.hpp"
#include "kernels/contracts/prepack.hpp"
#include "opencl/capabilities.hpp"
#include "ops/operands.hpp"
#include "plan/ops/linear.hpp"
#include "plan/ops/ops.hpp"
#include "plan/precision.hpp"
#include "plan/types.hpp"
#include "plan/variants.hpp"

namespace bertcl::plan {
namespace {

/// Panels of a work-item of gemm_bf16_x86.cl: with more, A in f32 is rounded less often; with
/// fewer, there is work for more cores.
std::int32_t bf16_item_panels(Builder& b) { return b.context().info().compute_units <= 8 ? 4 : 2; }

/// In fp32 and fp16, what is asked for stands first.
std::vector<GemmVariant> float_variants_of(const Builder& b, const ir::Node& node) {
  const std::string precision = precision_of(node);
  if (precision == "bf16") return {kernels::gemm_bf16_variant()};
  std::vector<GemmVariant> variants;
  if (b.options().gemm == "clblast") variants.push_back(kernels::clblast_variant());
  if (precision == "fp16") variants.push_back(kernels::gemm_f16_variant());
  const auto own = kernels::gemm_f32_variants();
  variants.insert(variants.end(), own.begin(), own.end());
  return variants;
}

/// With weights in half CLBlast computes in half too; of the own kernels only matrix_f16 does.
kernels::Refusal why_not_float(Builder& b, const ir::Node& node, const GemmVariant& variant) {
  if (variant.program.empty() && precision_of(node) == "fp16" && !b.context().capabilities().fp16)
    return {"fp16 weights need fp16 arithmetic, which the device does not support"};
  return why_not(b, variant.needs);
}

void lower_linear(Builder& b, const ir::Graph&, const ir::Node& node) {
  namespace o = ops::operands::linear;
  const ir::Value* w = node.inputs[o::w];
  if (!w->is_constant())
    fail(node, "its weight is still quantized; float GEMMs need the pass fold_dequantize");
  const bool bf16 = precision_of(node) == "bf16";
  const int half = precision_of(node) == "fp16";
  const std::vector<GemmVariant> variants = float_variants_of(b, node);
  const auto refusal = [&](const GemmVariant& variant) { return why_not_float(b, node, variant); };
  const auto choice = choose(b, node, variants, refusal);
  const std::int64_t k = w->constant->shape()[0], n = w->constant->shape()[1];
  // Which library and which precision multiplies may have been asked for; tuning has the rest.
  const bool is_free = b.options().gemm == "auto" && !bf16;
  std::vector<GemmVariant> supported;
  if (is_free) {
    supported = tunable_variants_of(b.target(), variants);
    std::erase_if(supported, [&](const GemmVariant& variant) {
      return !b.options().why_refused(node.op, variant.name).empty();
    });
    const GemmVariant& clblast = kernels::clblast_variant();
    if (!b.is_disabled(clblast.name) && refusal(clblast).reason.empty())
      supported.push_back(clblast);
  }
  const char* key = half ? "fp16" : "fp32";
  const std::vector<TunedVariant> tuned =
      tuned_variants(b.target(), supported, "linear", key, n, k);
  const GemmVariant variant =
      tuned.empty() ? b.target().for_device(*choice.variant) : *tuned.back().variant;
  TunableGemm tunable = tunable_of(supported, n, k, choice.variant->name);
  if (!tuned.empty()) tunable.gain = b.tuning().find("linear", key, n, k)->gain();
  if (variant.program.empty()) return lower_clblast(b, node, std::move(tunable));
  const bool pairs = variant.k_group == 2;

  opencl::Buffer prepacked =
      b.context().allocate(prepacked_size(variant, n, k) * (half || pairs ? 2 : 4));
  prepack_parts(b, *w->constant, variant.panel, [&](const ir::Tensor& part, std::int32_t first) {
    opencl::Defines stored = b.target().prepack_options();
    stored["W_HALF"] = part.dtype() == ir::DType::f16, stored["B_HALF"] = bf16 ? 0 : half;
    const char* program = pairs ? "prepack_pairs" : "prepack_f32";
    opencl::Kernel kernel = b.kernel(program, program, stored);
    kernels::set(kernel, kernels::PrepackFloat<opencl::KernelArgument>{
                             .packed = prepacked,
                             .n = static_cast<std::int32_t>(part.shape()[1]),
                             .K = static_cast<std::int32_t>(k),
                             .panel = variant.panel,
                             .first = first,
                             .N = static_cast<std::int32_t>(n)});
    return kernel;
  });

  opencl::Defines defines = variant.defines;
  const std::int32_t item_panels = bf16 ? bf16_item_panels(b) : 1;
  if (bf16)
    defines["ITEM_PANELS"] = item_panels;
  else if (!pairs)
    defines["B_HALF"] = half;
  const ir::Dim rows = row_count(node.output()->type.shape);
  const ir::Value* bias = node.input(o::bias);
  const auto fill = [&](auto arguments) {
    arguments.a = b.in(node.inputs[o::x]);
    arguments.b = b.constant(std::move(prepacked));
    arguments.bias = b.in(bias);
    arguments.out = b.out(node.output());
    arguments.M = Size{rows};
    arguments.N = static_cast<std::int32_t>(n);
    arguments.K = static_cast<std::int32_t>(k);
    arguments.has_bias = static_cast<std::int32_t>(bias != nullptr);
    arguments.activation = activation_code(activation_of(node));
    return arguments;
  };
  const char* type = bf16 ? "bf16" : pairs ? "fp16" : half ? "fp16w" : "fp32";
  std::array<Size, 3> grid{Size{rows, variant.tile_rows},
                           Size{ir::Dim(n), variant.tile_columns * item_panels}, Size{}};
  if (variant.items > 1) grid = grid_of(variant, rows, n);
  const char* kernel = bf16 ? "gemm_bf16" : "gemm_f32";
  const auto launch = [&](const auto& arguments) -> Step& {
    return b.launch(node, type, variant.name, b.kernel(variant.program, kernel, defines), arguments,
                    grid);
  };
  kernels::GemmBf16<Argument> of_bf16;
  of_bf16.a_type = type_code(node.inputs[o::x]->type.dtype);
  of_bf16.out_type = type_code(node.output()->type.dtype);
  Step& step = bf16 ? launch(fill(of_bf16)) : launch(fill(kernels::GemmF32<Argument>()));
  step.local[0] = static_cast<std::size_t>(variant.items);
  if (tuned.empty() && variant.name == "group") {
    for (const GemmVariant& smaller :
         kernels::with_all_smaller_tiles(variant, b.context().info(), b.context().capabilities())) {
      opencl::Defines options = smaller.defines;
      options.merge(defines);
      step.alternatives.push_back({0,
                                   smaller.name,
                                   b.kernel(smaller.program, kernel, options),
                                   grid_of(smaller, rows, n),
                                   {static_cast<std::size_t>(smaller.items), 1, 1}});
    }
  } else if (tuned.empty())
    if (auto small_m = small_m_of(b.target(), variant, n)) {
      small_m->defines.merge(defines);
      step.alternatives.push_back({small_m->tile_rows, small_m->name,
                                   b.kernel(small_m->program, kernel, small_m->defines),
                                   grid_of(*small_m, rows, n)});
    }
  step.why_not_faster = why_not_faster(node, choice.why_not_faster);
  step.tunable = std::move(tunable);
  count_operations(step, rows, n, k);
}

}  // namespace

void add_linear(LoweringTable& table) { table["linear"] = lower_linear; }

}  // namespace bertcl::plan
