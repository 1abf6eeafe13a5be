// SPDX-License-Identifier: Apache-2.0
// Kernel variants of GEMMs with constant weights, and what tuning chose among them.
#include "plan/gemm_variants.hpp"

#include <algorithm>
#include <utility>

#include "kernels/tiles.hpp"
#include "plan/gemm_s8.hpp"
#include "support/ceil_div.hpp"

namespace bertcl::plan {

std::array<SizeExpr, 3> grid_of(const GemmVariant& variant, const ir::Dim& rows,
                                std::int64_t columns) {
  const SizeExpr tiles{ir::Dim(columns), variant.tile_columns};
  if (variant.items == 1) return {SizeExpr{rows, variant.tile_rows}, tiles, SizeExpr{}};
  // Rows along the first axis: NVIDIA takes no more than 65,535 groups along the others.
  return {SizeExpr{rows, variant.tile_rows, variant.items}, tiles, SizeExpr{}};
}

std::vector<GemmVariant> tunable_variants_of(const Target& target,
                                             std::span<const GemmVariant> variants) {
  std::vector<GemmVariant> supported;
  for (const GemmVariant& variant : variants) {
    if (variant.is_reference || target.is_disabled(variant.name) ||
        !target.why_not(variant.needs).reason.empty())
      continue;
    const GemmVariant own = target.adapt_to_device(variant);
    supported.push_back(own);
    for (const auto& tiles : variant.smaller_tiles)
      if (tiles[0] * tiles[1] < own.tile_rows * own.tile_columns)
        supported.push_back(kernels::with_tiles(own, tiles));
  }
  return supported;
}

void add_tuned_options(std::vector<GemmVariant>& supported, const Target& target,
                       std::span<const GemmVariant> variants) {
  for (const GemmVariant& variant : variants)
    if (std::ranges::find(supported, variant.name, &GemmVariant::name) != supported.end())
      for (const kernels::TileOptions& options : variant.tuned_options)
        supported.push_back(kernels::with_options(target.adapt_to_device(variant), options));
}

TunableGemm tunable_of(const std::vector<GemmVariant>& variants, std::int64_t n, std::int64_t k,
                       const std::string& default_variant) {
  TunableGemm gemm{n, k, {}, default_variant, 0};
  for (const GemmVariant& c : variants)
    gemm.variants.push_back({c.name, c.layout(), c.tiles_of, c.options_of, c.splits});
  return gemm;
}

std::vector<TunedVariant> tuned_variants(const Target& target,
                                         const std::vector<GemmVariant>& variants, const char* op,
                                         const char* type, std::int64_t n, std::int64_t k) {
  std::vector<TunedVariant> tuned;
  const TunedGemm* gemm = target.tuning.find(op, type, n, k);
  if (!gemm) return {};
  for (const TunedRows& row : gemm->by_rows) {
    const auto found =
        std::ranges::find_if(variants, [&](const GemmVariant& c) { return c.name == row.variant; });
    if (found == variants.end()) return {};
    const GemmVariant* first = tuned.empty() ? &*found : tuned.front().variant;
    if (first->panel != found->panel || first->k_group != found->k_group) return {};
    tuned.push_back({row.rows, &*found});
  }
  return tuned;
}

std::optional<GemmVariant> small_m_of(const Target& target, const GemmVariant& variant,
                                      std::int64_t n) {
  const opencl::DeviceInfo& device = target.context.info();
  if (variant.small_m_program.empty() || !kernels::gains_by_prefetch(device) ||
      target.is_disabled(variant.small_m_name()) ||
      ceil_div(n, variant.panel) < 2 * std::int64_t{device.compute_units})
    return std::nullopt;
  return variant.small_m();
}

void prepack_parts(
    Builder& b, const ir::Tensor& w, std::int32_t panel,
    const std::function<opencl::Kernel(const ir::Tensor& part, std::int32_t first)>& kernel_for) {
  std::int64_t first = 0;
  for (const ir::Tensor& part : w.parts()) {
    const std::int64_t n = part.shape()[1];
    opencl::Kernel kernel = kernel_for(part, static_cast<std::int32_t>(first));
    const std::size_t items = prepack_items(b.target().prepack_columns(), panel, n, first);
    b.make_constant(std::move(kernel), part, items);
    first += n;
  }
}

std::size_t prepacked_size(const GemmVariant& variant, std::int64_t n, std::int64_t k) {
  const std::int64_t panels = ceil_div(n, variant.panel), groups = ceil_div(k, variant.k_group);
  const std::int64_t ordered = variant.order_block ? groups + ceil_div(k, variant.order_block) : 0;
  return static_cast<std::size_t>(panels *
                                  (variant.panel * groups * variant.k_group +
                                   ordered * static_cast<std::int64_t>(sizeof(std::uint16_t))));
}

void count_operations(Step& step, const ir::Dim& rows, std::int64_t n, std::int64_t k) {
  step.operations_per_unit = 2.0 * static_cast<double>(n) * static_cast<double>(k);
  step.work_units = rows;
}

std::string activation_of(const ir::Node& node) {
  return node.has("activation") ? node.string_attribute("activation") : "";
}

}  // namespace bertcl::plan
