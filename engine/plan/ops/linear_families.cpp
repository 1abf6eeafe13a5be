// SPDX-License-Identifier: Apache-2.0
// Kernel families of products with constant weights, and what tuning chose among them.
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

std::string few_name_of(const ProductRung& rung) { return rung.name + "_few"; }

}  // namespace

std::array<Size, 3> grid_of(const ProductRung& rung, const ir::Dim& rows, std::int64_t columns) {
  const Size tiles{ir::Dim(columns), rung.tile_columns};
  if (rung.items == 1) return {Size{rows, rung.tile_rows}, tiles, Size{}};
  return {Size{ir::Dim(rung.items)}, Size{rows, rung.tile_rows}, tiles};
}

ProductRung with_tiles(ProductRung rung, std::int32_t rows, std::int32_t columns) {
  rung.defines["TILE_M"] = rung.tile_rows = rows;
  rung.defines["TILE_N"] = rung.tile_columns = columns;
  return rung;
}

ProductRung tiles_of(ProductRung rung, Builder& b) {
  const opencl::Capabilities& device = b.context().capabilities();
  const std::string_view program = rung.program ? rung.program : "";
  if (program.ends_with("_matrix")) {
    rung.defines["MATRIX_UNIT"] = opencl::matrix_unit_of(device)->code;
    rung.defines["MATRIX_EMULATED"] = 0;
    if (device.ptx_cp_async) rung.defines["COPY_ASYNC"] = 2;
    return device.amd_wmma ? with_tiles(rung, 64, 128) : rung;
  }
  if (program == "gemm_f32_x86") rung.defines["PREFETCH"] = gains_by_prefetch(b);
  if (rung.name != "dot4") return rung;
  rung.defines["DOT4"] = opencl::dot4_of(device).code;
  return device.amd_sudot4 ? with_tiles(rung, 64, 128) : rung;
}

std::vector<ProductRung> candidates_of(Builder& b, const std::vector<ProductRung>& ladder) {
  std::vector<ProductRung> candidates;
  for (const ProductRung& rung : ladder) {
    if (rung.name == "ref" || b.is_disabled(rung.name) || !rung.why_not(b).empty()) continue;
    candidates.push_back(tiles_of(rung, b));
    if (rung.name != "dot4") continue;
    for (const auto& [rows, columns] : {std::pair{64, 128}, {64, 64}, {32, 64}}) {
      candidates.push_back(with_tiles(tiles_of(rung, b), rows, columns));
      candidates.back().name += fmt::format("_{}x{}", rows, columns);
    }
  }
  return candidates;
}

TunableProduct tunable_of(const std::vector<ProductRung>& candidates, std::int64_t n,
                          std::int64_t k, const std::string& otherwise) {
  TunableProduct product{n, k, {}, otherwise, 0};
  for (const ProductRung& c : candidates) {
    const std::string rung = c.name.starts_with("dot4") ? "dot4" : c.name;
    product.candidates.push_back(
        {c.name, c.items > 1 ? fmt::format("{}x{}", c.panel, c.k_group) : c.name, rung});
  }
  return product;
}

std::vector<TunedRung> tuned_rungs(Builder& b, const std::vector<ProductRung>& candidates,
                                   const char* op, const char* type, std::int64_t n,
                                   std::int64_t k) {
  std::vector<TunedRung> tuned;
  const TunedProduct* product = b.tuning().find(op, type, n, k);
  if (!product) return {};
  for (const TunedRows& row : product->by_rows) {
    const auto found =
        std::find_if(candidates.begin(), candidates.end(),
                     [&](const ProductRung& c) { return c.name == row.implementation; });
    if (found == candidates.end()) return {};
    const ProductRung* first = tuned.empty() ? &*found : tuned.front().rung;
    if (first->panel != found->panel || first->k_group != found->k_group) return {};
    tuned.push_back({row.rows, &*found});
  }
  return tuned;
}

std::optional<BuildForRows> build_for_few_rows(Builder& b, const ProductRung& rung,
                                               const char* kernel, opencl::Defines defines,
                                               const ir::Dim& rows, std::int64_t n) {
  // Of 1 to 16 tiles 4 and more are as fast (Xeon model 207, 2026-11-22, 16 and 32 rows).
  constexpr std::int32_t kItemTiles = 4;
  ProductRung few = rung;
  few.name = few_name_of(rung);
  if (!rung.few_program || !gains_by_prefetch(b) || b.is_disabled(few.name) ||
      ceil_div(n, rung.panel) < 2 * std::int64_t{b.context().info().compute_units})
    return std::nullopt;
  few.tile_rows *= kItemTiles;
  defines["ITEM_TILES"] = kItemTiles;
  return BuildForRows{few.tile_rows, few.name, b.kernel(rung.few_program, kernel, defines),
                      grid_of(few, rows, n)};
}

void add_product_names(const std::vector<ProductRung>& ladder, std::vector<std::string>& names) {
  for (const ProductRung& rung : ladder) {
    names.push_back(rung.name);
    if (rung.few_program) names.push_back(few_name_of(rung));
  }
}

void pack_parts(
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

std::size_t packed_size(const ProductRung& rung, std::int64_t n, std::int64_t k) {
  return static_cast<std::size_t>(ceil_div(n, rung.panel) * rung.panel * ceil_div(k, rung.k_group) *
                                  rung.k_group);
}

void count_operations(Step& step, const ir::Dim& rows, std::int64_t n, std::int64_t k) {
  step.operations_per_unit = 2.0 * static_cast<double>(n) * static_cast<double>(k);
  step.unit = rows;
}

std::string activation_of(const ir::Node& node) {
  return node.has("activation") ? node.string_attribute("activation") : "";
}

}  // namespace bertcl::plan
