// SPDX-License-Identifier: Apache-2.0
// Tiles that the model on paper chooses.
#include "plan/predicted.hpp"

#include <gtest/gtest.h>

#include "kernels/tiles.hpp"

namespace bertcl::plan {
namespace {

opencl::DeviceInfo gpu(const std::string& name, unsigned units) {
  opencl::DeviceInfo info;
  info.type = "gpu", info.name = name, info.compute_units = units;
  return info;
}

/// Tiles of the variants with these names, largest first.
std::vector<kernels::GemmVariant> tiles_of(const std::vector<std::string>& names) {
  std::vector<kernels::GemmVariant> tiles;
  for (const kernels::GemmVariant& variant : kernels::gemm_s8_variants())
    for (const std::string& name : names) {
      if (variant.name != name) continue;
      tiles.push_back(variant);
      for (const auto& tile : variant.smaller_tiles)
        tiles.push_back(kernels::with_tiles(variant, tile));
    }
  return tiles;
}

/// The name of the tile for that many rows.
std::string tile_for(const opencl::DeviceInfo& device,
                     const std::vector<kernels::GemmVariant>& tiles, std::int64_t rows,
                     std::int64_t n, std::int64_t k) {
  const Prediction predicted = predict_tiles(device, tiles, n, k);
  for (const auto& [up_to_rows, tile] : predicted.by_rows)
    if (rows <= up_to_rows) return tiles[tile].name;
  return predicted.by_rows.empty() ? "none" : tiles[predicted.by_rows.back().tile].name;
}

// Tiles that were the fastest, or within 3 % of the fastest, where mma was measured (docs/gpu.md).
TEST(PredictedTiles, OfMmaAreThoseThatWereFastOnAnH100) {
  const opencl::DeviceInfo h100 = gpu("NVIDIA H100 80GB HBM3", 132);
  const auto mma = tiles_of({"mma"});
  EXPECT_EQ(tile_for(h100, mma, 128, 768, 768), "mma_32x64");
  EXPECT_EQ(tile_for(h100, mma, 128, 768, 3072), "mma_32x64");
  EXPECT_EQ(tile_for(h100, mma, 384, 3072, 768), "mma");
  EXPECT_EQ(tile_for(h100, mma, 1024, 768, 768), "mma_64x128");
  EXPECT_EQ(tile_for(h100, mma, 12288, 1024, 4096), "mma");
}

TEST(PredictedTiles, OfWgmmaGrowWithTheRows) {
  const opencl::DeviceInfo h100 = gpu("NVIDIA H100 80GB HBM3", 132);
  const auto tiles = tiles_of({"wgmma", "mma"});
  EXPECT_EQ(predict_tiles(h100, tiles, 768, 768).architecture, "NVIDIA sm_90");
  EXPECT_EQ(tile_for(h100, tiles, 32, 768, 768), "wgmma_64x64");
  EXPECT_EQ(tile_for(h100, tiles, 12288, 1024, 4096), "wgmma");
  const Prediction all = predict_tiles(h100, tiles, 3072, 768);
  for (std::size_t i = 1; i < all.by_rows.size(); ++i)
    EXPECT_GT(all.by_rows[i].up_to_rows, all.by_rows[i - 1].up_to_rows);
}

TEST(PredictedTiles, NoneForOtherDevicesAndVariants) {
  const auto mma = tiles_of({"mma"});
  EXPECT_TRUE(predict_tiles(gpu("Mali-G78", 24), mma, 768, 768).by_rows.empty());
  EXPECT_TRUE(predict_tiles(gpu("NVIDIA A100-SXM4-80GB", 108), tiles_of({"dot4"}), 768, 768)
                  .by_rows.empty());
  EXPECT_TRUE(predict_tiles(gpu("NVIDIA H100", 132), {}, 768, 768).by_rows.empty());
  opencl::DeviceInfo cpu = gpu("NVIDIA H100", 132);
  cpu.type = "cpu";
  EXPECT_TRUE(predict_tiles(cpu, mma, 768, 768).by_rows.empty());
}

// On gfx11 a tile of 128 x 128 spills registers; the table has smaller ones only.
TEST(PredictedTiles, NoneWhereTheTableLacksTheVariantsOwn) {
  const opencl::DeviceInfo gfx11 = gpu("gfx1100", 48);
  auto wmma = tiles_of({"wmma"});
  ASSERT_EQ(wmma.front().tile_rows, 128);
  EXPECT_TRUE(predict_tiles(gfx11, wmma, 768, 768).by_rows.empty());
  wmma.erase(wmma.begin());
  EXPECT_EQ(tile_for(gfx11, wmma, 128, 768, 768), "wmma_32x64");
  EXPECT_EQ(tile_for(gfx11, wmma, 12288, 1024, 4096), "wmma_64x128");
}

TEST(PredictedTiles, ArchitecturesByTheNamesOfDevices) {
  const auto architecture = [mma = tiles_of({"mma"})](const std::string& name) {
    return predict_tiles(gpu(name, 64), mma, 768, 768).architecture;
  };
  for (const char* name : {"NVIDIA H100 80GB HBM3", "NVIDIA H200", "NVIDIA GH200 480GB"})
    EXPECT_EQ(architecture(name), "NVIDIA sm_90") << name;
  for (const char* name :
       {"NVIDIA A100", "NVIDIA A100-SXM4-80GB", "NVIDIA A100 80GB PCIe", "NVIDIA A100X",
        "A100-PCIE-40GB", "NVIDIA A800-SXM4-80GB", "NVIDIA A800 40GB Active", "NVIDIA A30"})
    EXPECT_EQ(architecture(name), "NVIDIA sm_80") << name;
  for (const char* name : {"NVIDIA RTX A1000", "NVIDIA RTX A1000 Laptop GPU", "NVIDIA A10",
                           "NVIDIA A10G", "NVIDIA RTX A4000", "NVIDIA GeForce RTX 4090"})
    EXPECT_EQ(architecture(name), "NVIDIA sm_86 and sm_89") << name;
  // Fewer int8 operations than an H100 has; and not known.
  for (const char* name : {"NVIDIA H20", "NVIDIA H20-3e", "GRID A100DX-40C"})
    EXPECT_EQ(architecture(name), "") << name;
}

}  // namespace
}  // namespace bertcl::plan
