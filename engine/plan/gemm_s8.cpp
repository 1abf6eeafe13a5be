// SPDX-License-Identifier: Apache-2.0
// Choice of the variants of an int8 GEMM, and prepacking for them.
#include "plan/gemm_s8.hpp"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "bertcl/error.hpp"
#include "kernels/bind.hpp"
#include "kernels/choice.hpp"
#include "kernels/contracts/gemm.hpp"
#include "kernels/contracts/prepack.hpp"
#include "passes/quant_params.hpp"
#include "plan/ops/linear.hpp"

namespace bertcl::plan {
namespace {

/// Of a tuned GEMM, those for fewer rows than the last one.
std::vector<GemmS8::ForRows> by_measured_rows(const std::vector<TunedVariant>& tuned) {
  std::vector<GemmS8::ForRows> list;
  for (std::size_t i = 0; i + 1 < tuned.size(); ++i) {
    // Between two measured numbers of rows their geometric mean parts them.
    const double border =
        std::sqrt(static_cast<double>(tuned[i].rows) * static_cast<double>(tuned[i + 1].rows));
    list.push_back({static_cast<std::int64_t>(border), *tuned[i].variant});
  }
  return list;
}

}  // namespace

GemmS8 choose_gemm_s8(const Target& target, const std::string& who, std::int64_t n,
                      std::int64_t k) {
  const auto all = kernels::gemm_s8_variants();
  const auto choice = kernels::choose(
      who, all, [&](const std::string& variant) { return target.is_disabled(variant); },
      [&](const GemmVariant& variant) {
        const std::string reason = target.options.why_refused("linear_q", variant.name);
        return reason.empty() ? target.why_not(variant.needs) : kernels::Refusal{reason};
      });
  std::vector<GemmVariant> tunable = tunable_variants_of(target, all);
  std::erase_if(tunable, [&](const GemmVariant& variant) {
    return !target.options.why_refused("linear_q", variant.name).empty();
  });
  const std::vector<TunedVariant> tuned = tuned_variants(target, tunable, "linear_q", "int8", n, k);
  GemmS8 gemm;
  gemm.why_not_faster = choice.why_not_faster;
  gemm.tunable = tunable_of(tunable, n, k, choice.variant->name);
  if (!tuned.empty()) {
    gemm.variant = *tuned.back().variant;
    gemm.for_rows = by_measured_rows(tuned);
    gemm.tunable.gain = target.tuning.find("linear_q", "int8", n, k)->gain();
    return gemm;
  }
  gemm.variant = target.for_device(*choice.variant);
  if (gemm.variant.items > 1) {
    for (GemmVariant& smaller : kernels::with_all_smaller_tiles(gemm.variant, target.context.info(),
                                                                target.context.capabilities()))
      gemm.for_rows.push_back({0, std::move(smaller)});
  } else if (auto small_m = small_m_of(target, gemm.variant, n)) {
    gemm.for_rows.push_back({small_m->tile_rows, std::move(*small_m)});
  }
  return gemm;
}

void check_exact_sums(const std::string& who, std::int64_t k, bool weights_have_zero_points) {
  if (const auto most = passes::max_exact_products(weights_have_zero_points); k > most)
    throw Error(
        fmt::format("{}: it sums {} products, an int32 holds the sum of up to {}", who, k, most));
}

void set_variants(Step& step, const GemmS8& gemm, std::int32_t activation, std::int32_t out_type,
                  const ir::Dim& rows, const MakeKernel& make_kernel) {
  const auto kernel_of = [&](const GemmVariant& v) {
    opencl::Defines defines = v.defines;
    if (v.takes_epilogue) defines["ACTIVATION"] = activation, defines["OUT_TYPE"] = out_type;
    return make_kernel(v.program, "gemm_s8", defines);
  };
  const auto local_of = [](const GemmVariant& v) {
    return std::array<std::size_t, 3>{static_cast<std::size_t>(v.items), 1, 1};
  };
  const std::int64_t n = gemm.tunable.n;
  step.variant = gemm.variant.name;
  step.kernel = kernel_of(gemm.variant);
  kernels::check_kernel(step.kernel.name(), kernels::parameters_of<kernels::GemmS8>.data());
  step.global = grid_of(gemm.variant, rows, n);
  step.local = local_of(gemm.variant);
  for (const auto& [up_to_rows, variant] : gemm.for_rows)
    step.alternatives.push_back({up_to_rows, variant.name, kernel_of(variant),
                                 grid_of(variant, rows, n), local_of(variant)});
  step.tunable = gemm.tunable;
  step.why_not_faster = gemm.why_not_faster;
  count_operations(step, rows, n, gemm.tunable.k);
}

PrepackedS8 allocate_prepacked(opencl::Context& context, const GemmS8& gemm) {
  const auto& [n, k] = std::pair(gemm.tunable.n, gemm.tunable.k);
  return {context.allocate(prepacked_size(gemm.variant, n, k)),
          context.allocate(static_cast<std::size_t>(n) * sizeof(std::int32_t))};
}

void bind_prepack(opencl::Kernel& kernel, const PrepackedS8& prepacked, const GemmS8& gemm,
                  std::int64_t columns, std::int64_t first) {
  kernels::set(kernel, kernels::PrepackS8<opencl::KernelArgument>{
                           .packed = prepacked.panels,
                           .colsum = prepacked.column_sums,
                           .n = static_cast<std::int32_t>(columns),
                           .K = static_cast<std::int32_t>(gemm.tunable.k),
                           .panel = gemm.variant.panel,
                           .group = gemm.variant.k_group,
                           .first = static_cast<std::int32_t>(first),
                           .N = static_cast<std::int32_t>(gemm.tunable.n)});
}

std::size_t prepack_items(const opencl::Defines& defines, std::int32_t panel, std::int64_t columns,
                          std::int64_t first) {
  if (columns == 0) return 0;
  const auto width = defines.find("ITEM_COLUMNS");
  const std::int64_t parts =
      width == defines.end() || width->second == 0 ? 1 : panel / width->second;
  return static_cast<std::size_t>(((first + columns - 1) / panel - first / panel + 1) * parts);
}

}  // namespace bertcl::plan
