// SPDX-License-Identifier: Apache-2.0
// The table of the model on paper, and its times (docs/gpu.md, "On paper").
#include "plan/predicted.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "support/ceil_div.hpp"

namespace bertcl::plan {
namespace {

struct Tile {
  std::string_view variant;
  std::int32_t rows, columns;
  std::int32_t cycles;  // of a compute unit, for 32 of K
};

struct Architecture {
  std::string_view name;
  std::vector<std::string_view> devices;  // parts of their names, with a space added
  std::vector<Tile> tiles;
};

// Predicted by `bench/device/gpu_roofline --tiles` on 2026-11-28, clang 15; nothing is measured.
// `gpu_roofline --check` compares.
const std::vector<Architecture>& architectures() {
  static const std::vector<Architecture> all{
      {"NVIDIA sm_90",
       {"H100", "H200", "GH200", "H800"},
       {{"wgmma", 128, 256, 256},
        {"wgmma", 128, 128, 160},
        {"wgmma", 64, 128, 112},
        {"wgmma", 64, 64, 80},
        {"mma", 128, 128, 256},
        {"mma", 64, 128, 176},
        {"mma", 64, 64, 128},
        {"mma", 32, 64, 88}}},
      {"NVIDIA sm_80",
       {"A100 ", "A100-", "A100X", "A800 ", "A800-", "NVIDIA A30"},
       {{"mma", 128, 128, 256}, {"mma", 64, 128, 176}, {"mma", 64, 64, 128}, {"mma", 32, 64, 88}}},
      {"NVIDIA sm_86 and sm_89",
       {"RTX 30", "RTX 40", "RTX A", "NVIDIA A10 ", "NVIDIA A10-", "NVIDIA A10G", "NVIDIA A40",
        "NVIDIA L4", "Ada Generation"},
       {{"mma", 128, 128, 512}, {"mma", 64, 128, 256}, {"mma", 64, 64, 128}, {"mma", 32, 64, 88}}},
      {"AMD gfx90a",
       {"gfx90a"},
       {{"mfma", 128, 128, 1024},
        {"mfma", 64, 128, 512},
        {"mfma", 64, 64, 256},
        {"mfma", 32, 64, 165}}},
      {"AMD gfx11",
       {"gfx110"},
       {{"wmma", 64, 128, 1024}, {"wmma", 64, 64, 512}, {"wmma", 32, 64, 368}}}};
  return all;
}

constexpr std::int64_t kLatency = 600;  // cycles until the first strip is there, and the epilogue
constexpr std::array<std::int64_t, 16> kRows{16,  32,   64,   96,   128,  192,  256,  384,
                                             512, 1024, 1536, 2048, 3072, 4096, 8192, 12288};

/// Waves of tiles over the compute units. Launch and memory are the same for every tile.
std::int64_t cycles_of(const Tile& tile, std::int64_t units, std::int64_t m, std::int64_t n,
                       std::int64_t k) {
  const std::int64_t tiles = ceil_div(m, tile.rows) * ceil_div(n, tile.columns);
  return ceil_div(tiles, units) * (ceil_div(k, 32) * tile.cycles + kLatency);
}

}  // namespace

Prediction predict_tiles(const opencl::DeviceInfo& device,
                         std::span<const kernels::GemmVariant> variants, std::int64_t n,
                         std::int64_t k) {
  const auto is_named = [&](std::string_view part) {
    return (device.name + " ").find(part) != std::string::npos;
  };
  const auto found = std::ranges::find_if(architectures(), [&](const Architecture& a) {
    return std::ranges::any_of(a.devices, is_named);
  });
  if (!device.is_gpu() || device.compute_units < 1 || found == architectures().end()) return {};
  const auto is_of = [](const Tile& tile, const kernels::GemmVariant& variant) {
    return tile.variant == variant.tiles_of && tile.rows == variant.tile_rows &&
           tile.columns == variant.tile_columns;
  };
  const auto is_known = [&](const kernels::GemmVariant& variant) {
    return std::ranges::any_of(found->tiles,
                               [&](const Tile& tile) { return is_of(tile, variant); });
  };
  if (variants.empty() || !is_known(variants.front())) return {};
  Prediction prediction{std::string(found->name), {}};
  for (const std::int64_t rows : kRows) {
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    std::size_t best = 0;
    for (std::size_t i = 0; i < variants.size(); ++i)
      for (const Tile& tile : found->tiles) {
        if (!is_of(tile, variants[i])) continue;
        const std::int64_t cycles = cycles_of(tile, device.compute_units, rows, n, k);
        if (cycles < least) least = cycles, best = i;
      }
    std::vector<Prediction::ForRows>& by_rows = prediction.by_rows;
    if (by_rows.empty() || by_rows.back().tile != best) by_rows.push_back({rows, best});
    by_rows.back().up_to_rows = rows;
  }
  return prediction;
}

}  // namespace bertcl::plan
