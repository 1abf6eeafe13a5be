// SPDX-License-Identifier: Apache-2.0
// The tiles that a device gets, and those that are tried in their place.
#include "kernels/tiles.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "opencl/device/capabilities.hpp"
#include "tests/kernels/variant_examples.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::kernels {
namespace {

TEST(Tiles, ForTheDevice) {
  opencl::Capabilities amd;
  amd.amd_sudot4 = true;
  const opencl::DeviceInfo gpu = device_of("gpu");
  const GemmVariant dot4 = adapt_to_device(s8_variant("dot4"), gpu, amd);
  EXPECT_EQ(dot4.tile_rows, 64);
  EXPECT_EQ(dot4.defines, (opencl::Defines{{"DOT4", 4}, {"TILE_M", 64}, {"TILE_N", 128}}));
  opencl::DeviceInfo intel = gpu;
  intel.vendor = "Intel(R) Corporation";
  const auto floats = gemm_f32_variants();
  for (const GemmVariant& large :
       {s8_variant("dot4"), *std::ranges::find(floats, "group", &GemmVariant::name)}) {
    const GemmVariant variant = adapt_to_device(large, intel, {});
    EXPECT_EQ(variant.tile_rows, 64) << large.program;
    EXPECT_EQ(variant.tile_columns, 64) << large.program;
  }
}

TEST(Tiles, RowsOfAttentionForTheDevice) {
  const auto rows = [](const char* name, const char* vendor, const char* device,
                       std::int32_t head_size = 64, bool has_bias = false) {
    opencl::DeviceInfo info = device_of("gpu");
    info.vendor = vendor, info.name = device;
    const auto variants = attention_s8_variants();
    return group_rows(*std::ranges::find(variants, name, &AttentionVariant::name), head_size,
                      has_bias, info, {});
  };
  const char* amd = "Advanced Micro Devices, Inc.";
  EXPECT_EQ(rows("dot4", "a vendor", "a device"), 64);
  EXPECT_EQ(rows("dot4", "a vendor", "a device", 65), 32);
  EXPECT_EQ(rows("dot4", "a vendor", "a device", 64, true), 32);
  EXPECT_EQ(rows("dot4", "ARM", "Mali-G78"), 32);
  EXPECT_EQ(rows("dot4", "QUALCOMM", "QUALCOMM Adreno(TM) 740"), 32);
  EXPECT_EQ(rows("dot4", "Intel(R) Corporation", "Intel(R) Arc(TM) A770"), 32);
  EXPECT_EQ(rows("dot4", amd, "gfx906:sramecc+:xnack-"), 32);
  EXPECT_EQ(rows("dot4", amd, "gfx908:sramecc+:xnack-"), 32);
  EXPECT_EQ(rows("mma", amd, "gfx906"), 64);
  EXPECT_EQ(rows("dot4", amd, "gfx90a:sramecc+:xnack-"), 64);
  EXPECT_EQ(rows("dot4", amd, "gfx1030"), 64);
  opencl::Capabilities gfx11;
  gfx11.amd_sudot4 = true;
  EXPECT_EQ(group_rows(attention_f32_variants()[1], 64, false, device_of("gpu"), gfx11), 32);
}

TEST(Tiles, SmallerOfTheSameWeights) {
  opencl::Capabilities unit;
  unit.ptx_mma_s8 = unit.ptx_wgmma_s8 = true;
  const auto smaller = [&](const char* name) {
    const auto variants = gemm_s8_variants();
    const auto found = std::ranges::find(variants, name, &GemmVariant::name);
    std::string names;
    for (const GemmVariant& v : with_all_smaller_tiles(*found, device_of("gpu"), unit)) {
      EXPECT_EQ(v.layout(), found->layout());
      names += v.name + " ";
    }
    return names;
  };
  EXPECT_EQ(smaller("mma"), "mma_32x64 mma_64x64 mma_64x128 ");
  EXPECT_EQ(smaller("wgmma"), "mma_32x64 wgmma_64x64 wgmma_64x128 wgmma_128x128 ");
  unit.intel_dpas_8 = true;
  EXPECT_EQ(smaller("dpas"), "dpas_32x64 dpas_64x64 dpas_64x128 ");
}

// Intel's matrix units sum 32 values in each lane of a small tile.
TEST(Tiles, WorkGroupsOfSmallOnes) {
  opencl::Capabilities unit;
  unit.intel_dpas_16 = true;
  std::vector<std::int32_t> items;
  const GemmVariant dpas = s8_variant("dpas");
  for (const GemmVariant& v : with_all_smaller_tiles(dpas, device_of("gpu"), unit))
    items.push_back(v.items);
  EXPECT_THAT(items, ElementsAre(64, 128, 256));
  EXPECT_EQ(with_tiles(s8_variant("dot4"), {32, 64}).items, 256);
}

TEST(Tiles, OptionsThatOnlyTuningChooses) {
  const GemmVariant& mma = s8_variant("mma");
  std::vector<std::string> names, of;
  for (const TileOptions& options : mma.tuned_options) {
    const GemmVariant made = with_options(mma, options);
    names.push_back(made.name), of.push_back(made.options_of);
    EXPECT_EQ(made.layout(), mma.layout());
    EXPECT_EQ(made.tiles_of, "mma");
    EXPECT_EQ(made.defines.at("TILE_M"), made.tile_rows);
  }
  EXPECT_THAT(names, ElementsAre("mma_128x256", "mma_128x128_stages3", "mma_128x128_stages5",
                                 "mma_128x128_4x2", "mma_64x128_k64_stages3", "mma_64x128_4x2",
                                 "mma_64x64_k64", "mma_64x64_4x2"));
  EXPECT_THAT(of, ElementsAre("", "mma", "mma", "mma", "mma_64x128", "mma_64x128", "mma_64x64",
                              "mma_64x64"));
}

}  // namespace
}  // namespace bertcl::kernels
