// SPDX-License-Identifier: Apache-2.0
// Tiles of variants for the registers and the instructions of a device.
#include "kernels/tiles.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "opencl/device/capabilities.hpp"
#include "opencl/device/device.hpp"

namespace bertcl::kernels {
namespace {

/// Tiles of other sizes are an option of the kernels of work-groups.
void set_tiles(GemmVariant& variant, std::int32_t tile_rows, std::int32_t tile_columns) {
  variant.defines["TILE_M"] = variant.tile_rows = tile_rows;
  variant.defines["TILE_N"] = variant.tile_columns = tile_columns;
  if (variant.small_tile_sums > 0 && tile_rows < 128)
    variant.items = tile_rows * tile_columns / variant.small_tile_sums;
}

/// Mali has 64 registers a work-item and Adreno not many more: a tile of 128 x 128 alone keeps 64
/// sums.
bool has_few_registers(const opencl::DeviceInfo& info) {
  const auto names = [&](const char* name) {
    return info.vendor.find(name) != std::string::npos || info.name.find(name) != std::string::npos;
  };
  return names("ARM") || names("Mali") || names("QUALCOMM") || names("Adreno");
}

}  // namespace

std::int32_t group_rows(const AttentionVariant& variant, std::int32_t head_size, bool has_bias,
                        const opencl::DeviceInfo& info, const opencl::Capabilities& capabilities) {
  const bool leaves_one_wave =
      variant.takes_over_128_registers && (info.name.find("gfx906") != std::string::npos ||
                                           info.name.find("gfx908") != std::string::npos);
  const bool fewer = head_size > 64 || has_bias || capabilities.amd_sudot4 || info.is_intel_gpu() ||
                     has_few_registers(info) || leaves_one_wave;
  return fewer ? 32 : 64;
}

GemmVariant adapt_to_device(GemmVariant variant, const opencl::DeviceInfo& info,
                            const opencl::Capabilities& capabilities) {
  if (variant.takes_prefetch) variant.defines["PREFETCH"] = gains_by_prefetch(info);
  const bool has_unit = variant.unit == Unit::matrix || variant.unit == Unit::wgmma;
  if (has_unit) {
    variant.defines["MATRIX_EMULATED"] = 0;
    if (capabilities.ptx_cp_async) variant.defines["COPY_ASYNC"] = 2;
  }
  if (variant.unit == Unit::matrix) {
    variant.defines["MATRIX_UNIT"] = opencl::matrix_unit_of(capabilities)->code;
    if (capabilities.amd_wmma) set_tiles(variant, 64, 128);
  }
  if (variant.unit == Unit::dot4) {
    variant.defines["DOT4"] = opencl::dot4_of(capabilities).code;
    // From gfx11 on AMD's compiler spills registers at 128 x 128.
    if (capabilities.amd_sudot4) set_tiles(variant, 64, 128);
  }
  // Intel's compiler spills registers in larger tiles.
  if (variant.items > 1 && !has_unit && info.is_intel_gpu()) set_tiles(variant, 64, 64);
  if (variant.items > 1 && !has_unit && has_few_registers(info)) set_tiles(variant, 32, 64);
  return variant;
}

GemmVariant with_tiles(GemmVariant variant, std::array<std::int32_t, 2> tiles) {
  variant.name += fmt::format("_{}x{}", tiles[0], tiles[1]);
  set_tiles(variant, tiles[0], tiles[1]);
  return variant;
}

GemmVariant with_options(const GemmVariant& variant, const TileOptions& options) {
  const auto& [rows, columns] = options.tile;
  GemmVariant made = with_tiles(variant, options.tile);
  const bool is_own = rows == variant.tile_rows && columns == variant.tile_columns;
  const std::string without_options = is_own ? variant.name : made.name;
  const auto set = [&](const char* define, std::int32_t value, const std::string& suffix) {
    made.options_of = without_options;
    made.defines[define] = value;
    made.name += suffix;
  };
  if (const std::int32_t n = options.cells_k) set("CELLS_K", n, fmt::format("_k{}", 16 * n));
  if (const std::int32_t n = options.stages) set("STAGES", n, fmt::format("_stages{}", n));
  if (const std::int32_t n = options.subs_n) set("SUBS_N", n, fmt::format("_{}x{}", 8 / n, n));
  return made;
}

std::vector<GemmVariant> with_all_smaller_tiles(const GemmVariant& variant,
                                                const opencl::DeviceInfo& info,
                                                const opencl::Capabilities& capabilities) {
  std::vector<GemmVariant> smaller;
  const auto add = [&](const GemmVariant& of, const std::array<std::int32_t, 2>& tiles) {
    const bool is_new = std::ranges::none_of(smaller, [&](const GemmVariant& other) {
      return other.tile_rows == tiles[0] && other.tile_columns == tiles[1];
    });
    if (is_new && tiles[0] * tiles[1] < variant.tile_rows * variant.tile_columns)
      smaller.push_back(with_tiles(adapt_to_device(of, info, capabilities), tiles));
  };
  for (const std::span<const GemmVariant> table : {gemm_s8_variants(), gemm_f32_variants()}) {
    auto of = std::ranges::find(table, variant.tiles_of, &GemmVariant::name);
    if (of == table.end() || of->program != variant.program) continue;
    for (; of != table.end(); ++of)  // its own tiles, then those of slower ones
      if (of->layout() == variant.layout() && why_not(of->needs, info, capabilities).reason.empty())
        for (const auto& tiles : of->smaller_tiles) add(*of, tiles);
  }
  std::ranges::reverse(smaller);
  return smaller;
}

bool gains_by_prefetch(const opencl::DeviceInfo& info) {
  return info.vendor == "GenuineIntel";  // as PoCL names it
}

}  // namespace bertcl::kernels
