// SPDX-License-Identifier: Apache-2.0
// Choice of the variants of an int8 GEMM, and prepacking for them.
#include "plan/gemm_s8.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "bertcl/error.hpp"
#include "kernels/bind.hpp"
#include "kernels/choice.hpp"
#include "kernels/contracts/gemm.hpp"
#include "kernels/contracts/prepack.hpp"
#include "kernels/tiles.hpp"
#include "ops/operands.hpp"
#include "passes/quant_params.hpp"
#include "plan/gemm_variants.hpp"
#include "plan/predicted.hpp"

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

bool may_split_k(const Target& target, std::int64_t k) {
  const kernels::SplitKVariants& split_k = kernels::split_k_variants();
  if (k < 2 * kMinTunedSplitDepth) return false;
  // Tuned to divide K for all rows, a GEMM runs unsplit past those whose sums fit.
  return std::ranges::all_of(
      std::array{split_k.partial, split_k.reduce.name, split_k.unsplit_name()},
      [&](const std::string& variant) {
        return !target.is_disabled(variant) &&
               !target.options.is_refused(ops::operands::linear_q::op, variant);
      });
}

/// The whole GEMM with tiles of a part; without a name where it is not among those variants.
GemmVariant unsplit(const std::vector<GemmVariant>& tunable) {
  const auto found =
      std::ranges::find(tunable, kernels::split_k_variants().unsplit_name(), &GemmVariant::name);
  return found == tunable.end() ? GemmVariant() : *found;
}

/// Split-K variants to tune: "mma_split_k_4".
void add_split_k(std::vector<GemmVariant>& tunable, const GemmVariant& whole, std::int64_t k) {
  for (const std::int32_t splits : {2, 4, kMaxSplits}) {
    if (k / splits < kMinTunedSplitDepth) break;
    tunable.push_back(whole);
    tunable.back().name = kernels::split_k_variants().partial_of(splits);
    tunable.back().splits = splits;
  }
}

/// Takes split-K from a tuned GEMM: the one for the fewest rows, up to where its sums
/// fit, is returned; the same tiles remain.
SplitK take_split_k(GemmS8& gemm, const opencl::DeviceInfo& info) {
  SplitK taken;
  const std::int32_t first =
      gemm.for_rows.empty() ? gemm.variant.splits : gemm.for_rows.front().variant.splits;
  bool contiguous = first > 1;
  const auto take = [&](GemmVariant& variant, std::int64_t up_to_rows) {
    contiguous = contiguous && variant.splits == first;
    if (contiguous)
      taken = {std::min(up_to_rows, rows_of_partial_sums(info, gemm.tunable.n, first)), first};
    if (variant.splits > 1) variant.name = kernels::split_k_variants().unsplit_name();
    variant.splits = 1;
  };
  for (GemmS8::ForRows& part : gemm.for_rows) take(part.variant, part.up_to_rows);
  take(gemm.variant, std::numeric_limits<std::int64_t>::max());
  return taken.up_to_rows > 0 ? taken : SplitK();
}

/// The tiles of a work-group variant by rows: as predicted for the device, else the largest that
/// leaves no compute unit idle.
void add_tiles(GemmS8& gemm, const Target& target) {
  const opencl::DeviceInfo& info = target.context.info();
  std::vector<GemmVariant> smaller =
      kernels::with_all_smaller_tiles(gemm.variant, info, target.context.capabilities());
  std::erase_if(smaller, [&](const GemmVariant& v) {
    return target.is_disabled(v.tiles_of) ||
           target.options.is_refused(ops::operands::linear_q::op, v.name);
  });
  std::vector<GemmVariant> tiles{gemm.variant};
  tiles.insert(tiles.end(), smaller.rbegin(), smaller.rend());
  const Prediction predicted = predict_tiles(info, tiles, gemm.tunable.n, gemm.tunable.k);
  if (predicted.by_rows.empty()) {
    for (GemmVariant& tile : smaller) gemm.for_rows.push_back({0, std::move(tile)});
    return;
  }
  gemm.tunable.predicted_for = predicted.architecture;
  gemm.tunable.default_variant = kPredictedTiles;
  for (const auto& [up_to_rows, tile] : predicted.by_rows)
    gemm.for_rows.push_back({up_to_rows, tiles[tile]});
  gemm.variant = gemm.for_rows.back().variant;
  gemm.for_rows.pop_back();
}

/// The fastest variant that the device supports.
auto choose_default(const Target& target, const std::string& who) {
  return kernels::choose(
      who, kernels::gemm_s8_variants(),
      [&](const std::string& variant) { return target.is_disabled(variant); },
      [&](const GemmVariant& variant) {
        const std::string reason =
            target.options.why_refused(ops::operands::linear_q::op, variant.name);
        return reason.empty() ? target.why_not(variant.needs) : kernels::Refusal{reason};
      });
}

/// What tuning may choose from. `unsplit_variant` becomes the whole GEMM of those with split-K.
std::vector<GemmVariant> list_tunable(const Target& target, std::int64_t k,
                                      GemmVariant& unsplit_variant) {
  const auto all = kernels::gemm_s8_variants();
  std::vector<GemmVariant> tunable = tunable_variants_of(target, all);
  const auto erase_refused = [&] {
    std::erase_if(tunable, [&](const GemmVariant& variant) {
      return target.options.is_refused(ops::operands::linear_q::op, variant.name);
    });
  };
  erase_refused();
  if (may_split_k(target, k)) unsplit_variant = unsplit(tunable);
  if (!unsplit_variant.name.empty()) add_split_k(tunable, unsplit_variant, k);
  add_tuned_options(tunable, target, all);  // last: tuning stops at its time limit
  erase_refused();
  return tunable;
}

/// The variants by rows that were measured on the device.
void take_tuned(GemmS8& gemm, const Target& target, const std::vector<TunedVariant>& tuned) {
  if (gemm.variant.items > 1) add_tiles(gemm, target);  // names what it was compared with
  gemm.tunable.predicted_for = "";
  gemm.variant = *tuned.back().variant;
  gemm.for_rows = by_measured_rows(tuned);
  const TunableGemm& of = gemm.tunable;
  gemm.tunable.gain = target.tuning.find(ops::operands::linear_q::op, "int8", of.n, of.k)->gain();
  gemm.split_k = take_split_k(gemm, target.context.info());
}

/// The variants by rows on a device that was not tuned to this GEMM.
void take_untuned(GemmS8& gemm, const Target& target) {
  const TunableGemm& of = gemm.tunable;
  if (!gemm.split_variant.name.empty() && gemm.variant.layout() == gemm.split_variant.layout())
    gemm.split_k = split_k_of(of.n, of.k, target.context.info().compute_units);
  if (gemm.variant.items > 1) {
    add_tiles(gemm, target);
  } else if (auto small_m = small_m_of(target, gemm.variant, of.n)) {
    gemm.for_rows.push_back({small_m->tile_rows, std::move(*small_m)});
  }
}

}  // namespace

GemmS8 choose_gemm_s8(const Target& target, const std::string& who, std::int64_t n,
                      std::int64_t k) {
  const auto choice = choose_default(target, who);
  GemmS8 gemm;
  const std::vector<GemmVariant> tunable = list_tunable(target, k, gemm.split_variant);
  const std::vector<TunedVariant> tuned =
      tuned_variants(target, tunable, ops::operands::linear_q::op, "int8", n, k);
  gemm.why_not_faster = choice.why_not_faster;
  gemm.tunable = tunable_of(tunable, n, k, choice.variant->name);
  gemm.variant = target.adapt_to_device(*choice.variant);
  if (tuned.empty())
    take_untuned(gemm, target);
  else
    take_tuned(gemm, target, tuned);
  return gemm;
}

void check_exact_sums(const std::string& who, std::int64_t k, bool weights_have_zero_points) {
  if (const auto most = passes::max_exact_products(weights_have_zero_points); k > most)
    throw Error(
        fmt::format("{}: K = {} can overflow the int32 accumulator (at most {})", who, k, most));
}

void set_alternatives(Step& step, const GemmChoice& gemm, const ir::Dim& rows,
                      const std::function<opencl::Kernel(const GemmVariant&)>& kernel_of) {
  const auto local_of = [](const GemmVariant& v) {
    return std::array<std::size_t, 3>{static_cast<std::size_t>(v.items), 1, 1};
  };
  const std::int64_t n = gemm.tunable.n;
  step.local = local_of(gemm.variant);
  for (const auto& [up_to_rows, variant] : gemm.for_rows)
    step.alternatives.push_back(
        {{variant.name, kernel_of(variant), grid_of(variant, rows, n), local_of(variant)},
         up_to_rows});
  step.tunable = gemm.tunable;
  step.why_not_faster = gemm.why_not_faster;
  count_operations(step, rows, n, gemm.tunable.k);
}

void set_variants(Step& step, const GemmS8& gemm, std::int32_t activation, std::int32_t out_type,
                  const ir::Dim& rows, const MakeKernel& make_kernel) {
  const auto kernel_of = [&](const GemmVariant& v) {
    opencl::Defines defines = v.defines;
    if (v.takes_epilogue) defines["ACTIVATION"] = activation, defines["OUT_TYPE"] = out_type;
    return make_kernel(v.program, "gemm_s8", defines);
  };
  step.variant = gemm.variant.name;
  step.kernel = kernel_of(gemm.variant);
  kernels::check_kernel(step.kernel.name(), kernels::parameters_of<kernels::GemmS8>.data());
  step.global = grid_of(gemm.variant, rows, gemm.tunable.n);
  set_alternatives(step, gemm, rows, kernel_of);
}

void set_variants(Step& step, const GemmS8& gemm, std::int32_t activation, std::int32_t out_type,
                  const ir::Dim& rows, opencl::Context& context) {
  set_variants(step, gemm, activation, out_type, rows,
               [&](const std::string& program, const char* kernel, const opencl::Defines& defines) {
                 return context.unbuilt_kernel(program, kernel, defines);
               });
}

PrepackedS8 allocate_prepacked(opencl::Context& context, const GemmS8& gemm) {
  const std::int64_t n = gemm.tunable.n, k = gemm.tunable.k;
  return {context.allocate(prepacked_size(gemm.variant, n, k)),
          context.allocate(static_cast<std::size_t>(n) * sizeof(std::int32_t))};
}

opencl::Defines prepack_options(const Target& target, const GemmS8& gemm) {
  opencl::Defines options = target.prepack_options();
  if (gemm.variant.order_block) options["ORDER_BLOCK"] = gemm.variant.order_block;
  return options;
}

void bind_prepack(opencl::Kernel& kernel, const PrepackedS8& prepacked, const GemmS8& gemm,
                  std::int64_t columns, std::int64_t first) {
  kernels::set(kernel, kernels::PrepackS8<opencl::KernelArgument>{
                           .panels = prepacked.panels,
                           .column_sums = prepacked.column_sums,
                           .n = static_cast<std::int32_t>(columns),
                           .K = static_cast<std::int32_t>(gemm.tunable.k),
                           .panel = gemm.variant.panel,
                           .group = gemm.variant.k_group,
                           .first = static_cast<std::int32_t>(first),
                           .N = static_cast<std::int32_t>(gemm.tunable.n)});
}

std::size_t prepack_items(std::int32_t item_columns, std::int32_t panel, std::int64_t columns,
                          std::int64_t first) {
  if (columns == 0) return 0;
  const std::int64_t items_per_panel = item_columns == 0 ? 1 : panel / item_columns;
  return static_cast<std::size_t>(((first + columns - 1) / panel - first / panel + 1) *
                                  items_per_panel);
}

}  // namespace bertcl::plan
