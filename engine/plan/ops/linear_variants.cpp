// SPDX-License-Identifier: Apache-2.0
// Kernel variants of products with constant weights, and what tuning chose among them.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "opencl/capabilities.hpp"
#include "plan/ops/linear.hpp"

namespace bertcl::plan {
namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// Weights fetched ahead of their use: Intel's CPUs gain by it, AMD's do not (docs/performance.md;
/// the vendor as PoCL names it).
bool gains_by_prefetch(Builder& b) { return b.context().info().vendor == "GenuineIntel"; }

std::string small_m_name_of(const GemmVariant& variant) { return variant.name + "_small_m"; }

}  // namespace

std::array<Size, 3> grid_of(const GemmVariant& variant, const ir::Dim& rows, std::int64_t columns) {
  const Size tiles{ir::Dim(columns), variant.tile_columns};
  if (variant.items == 1) return {Size{rows, variant.tile_rows}, tiles, Size{}};
  return {Size{ir::Dim(variant.items)}, Size{rows, variant.tile_rows}, tiles};
}

GemmVariant with_tiles(GemmVariant variant, std::int32_t rows, std::int32_t columns) {
  variant.defines["TILE_M"] = variant.tile_rows = rows;
  variant.defines["TILE_N"] = variant.tile_columns = columns;
  return variant;
}

GemmVariant tiles_of(GemmVariant variant, Builder& b) {
  const opencl::Capabilities& device = b.context().capabilities();
  const std::string_view program = variant.program ? variant.program : "";
  if (program.ends_with("_matrix")) {
    variant.defines["MATRIX_UNIT"] = opencl::matrix_unit_of(device)->code;
    variant.defines["MATRIX_EMULATED"] = 0;
    if (device.ptx_cp_async) variant.defines["COPY_ASYNC"] = 2;
    return device.amd_wmma ? with_tiles(variant, 64, 128) : variant;
  }
  if (program == "gemm_f32_x86") variant.defines["PREFETCH"] = gains_by_prefetch(b);
  if (variant.name != "dot4") return variant;
  variant.defines["DOT4"] = opencl::dot4_of(device).code;
  return device.amd_sudot4 ? with_tiles(variant, 64, 128) : variant;
}

std::vector<GemmVariant> tunable_variants_of(Builder& b, const std::vector<GemmVariant>& variants) {
  std::vector<GemmVariant> supported;
  for (const GemmVariant& variant : variants) {
    if (variant.name == "ref" || b.is_disabled(variant.name) || !variant.why_not(b).empty())
      continue;
    supported.push_back(tiles_of(variant, b));
    if (variant.name != "dot4") continue;
    for (const auto& [rows, columns] : {std::pair{64, 128}, {64, 64}, {32, 64}}) {
      supported.push_back(with_tiles(tiles_of(variant, b), rows, columns));
      supported.back().name += fmt::format("_{}x{}", rows, columns);
    }
  }
  return supported;
}

TunableGemm tunable_of(const std::vector<GemmVariant>& variants, std::int64_t n, std::int64_t k,
                       const std::string& otherwise) {
  TunableGemm product{n, k, {}, otherwise, 0};
  for (const GemmVariant& c : variants) {
    const std::string variant = c.name.starts_with("dot4") ? "dot4" : c.name;
    product.variants.push_back(
        {c.name, c.items > 1 ? fmt::format("{}x{}", c.panel, c.k_group) : c.name, variant});
  }
  return product;
}

std::vector<TunedVariant> tuned_variants(Builder& b, const std::vector<GemmVariant>& variants,
                                         const char* op, const char* type, std::int64_t n,
                                         std::int64_t k) {
  std::vector<TunedVariant> tuned;
  const TunedGemm* product = b.tuning().find(op, type, n, k);
  if (!product) return {};
  for (const TunedRows& row : product->by_rows) {
    const auto found = std::find_if(variants.begin(), variants.end(),
                                    [&](const GemmVariant& c) { return c.name == row.variant; });
    if (found == variants.end()) return {};
    const GemmVariant* first = tuned.empty() ? &*found : tuned.front().variant;
    if (first->panel != found->panel || first->k_group != found->k_group) return {};
    tuned.push_back({row.rows, &*found});
  }
  return tuned;
}

std::optional<VariantForRows> small_m_variant(Builder& b, const GemmVariant& variant,
                                              const char* kernel, opencl::Defines defines,
                                              const ir::Dim& rows, std::int64_t n) {
  // Of 1 to 16 tiles 4 and more are as fast (Xeon model 207, 2026-11-22, 16 and 32 rows).
  constexpr std::int32_t kItemTiles = 4;
  GemmVariant few = variant;
  few.name = small_m_name_of(variant);
  if (!variant.small_m_program || !gains_by_prefetch(b) || b.is_disabled(few.name) ||
      ceil_div(n, variant.panel) < 2 * std::int64_t{b.context().info().compute_units})
    return std::nullopt;
  few.tile_rows *= kItemTiles;
  defines["ITEM_TILES"] = kItemTiles;
  return VariantForRows{few.tile_rows, few.name, b.kernel(variant.small_m_program, kernel, defines),
                        grid_of(few, rows, n)};
}

void add_gemm_names(const std::vector<GemmVariant>& variants, std::vector<std::string>& names) {
  for (const GemmVariant& variant : variants) {
    names.push_back(variant.name);
    if (variant.small_m_program) names.push_back(small_m_name_of(variant));
  }
}

void prepack_parts(
    Builder& b, const ir::Tensor& w, std::int32_t panel,
    const std::function<opencl::Kernel(const ir::Tensor& part, std::int32_t first)>& kernel_for) {
  std::int64_t first = 0;
  for (const ir::Tensor& part : w.parts()) {
    const std::int64_t n = part.shape()[1];
    const std::int64_t panels = n == 0 ? 0 : (first + n - 1) / panel - first / panel + 1;
    b.make_constant(kernel_for(part, static_cast<std::int32_t>(first)), part,
                    static_cast<std::size_t>(panels));
    first += n;
  }
}

std::size_t prepacked_size(const GemmVariant& variant, std::int64_t n, std::int64_t k) {
  return static_cast<std::size_t>(ceil_div(n, variant.panel) * variant.panel *
                                  ceil_div(k, variant.k_group) * variant.k_group);
}

void count_operations(Step& step, const ir::Dim& rows, std::int64_t n, std::int64_t k) {
  step.operations_per_unit = 2.0 * static_cast<double>(n) * static_cast<double>(k);
  step.unit = rows;
}

std::string activation_of(const ir::Node& node) {
  return node.has("activation") ? node.string_attribute("activation") : "";
}

}  // namespace bertcl::plan
