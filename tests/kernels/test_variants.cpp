// SPDX-License-Identifier: Apache-2.0
// The tables of variants: what they name exists, and which a device gets.
#include "kernels/variants.hpp"

#include <array>
#include <set>

#include "opencl/program/sources.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::kernels {
namespace {

opencl::DeviceInfo device_of(const std::string& type) {
  opencl::DeviceInfo info;
  info.type = type, info.vendor = "a vendor";
  info.max_work_group_size = 1024, info.local_mem_bytes = 64 * 1024, info.compute_units = 8;
  return info;
}

template <typename Variants>
std::string first_for(const Variants& variants, const opencl::DeviceInfo& info,
                      const opencl::Capabilities& capabilities) {
  for (const auto& variant : variants)
    if (why_not(variant.needs, info, capabilities).reason.empty()) return variant.name;
  return "none";
}

TEST(Variants, ProgramsExist) {
  std::set<std::string> named;
  const auto add = [&](const auto& variants) {
    for (const auto& variant : variants) named.insert(variant.program);
  };
  for (const std::string& program : gemm_programs()) named.insert(program);
  add(attention_s8_variants()), add(attention_f32_variants());
  add(std::array{attention_f16_variant(), attention_bf16_variant()});
  add(position_scores_variants()), add(rotary_variants()), add(dynamic_quantize_variants());
  add(add_norm_variants()), add(embed_norm_variants()), add(pool_variants());
  add(quantize_rows_variants()), add(softmax_variants());
  add(matmul_f32_variants()), add(matmul_s32_variants());
  add(std::array{split_k_variants().reduce, split_k_variants().norm});
  const std::vector<std::string> programs = opencl::program_names();
  EXPECT_THAT(programs, IsSupersetOf(named));
  // And of these kinds none is left out.
  for (const std::string& program : programs)
    for (const char* kind : {"add_norm", "attention_", "embed_norm", "gemm_", "matmul_", "pool",
                             "position_scores_", "quantize_rows", "rotary", "softmax"})
      EXPECT_TRUE(!program.starts_with(kind) || named.contains(program)) << program;
}

TEST(Variants, TheFastestThatADeviceMeets) {
  const opencl::DeviceInfo cpu = device_of("cpu"), gpu = device_of("gpu");
  opencl::Capabilities none, some;
  EXPECT_EQ(first_for(gemm_s8_variants(), cpu, none), "portable");
  EXPECT_EQ(first_for(gemm_s8_variants(), gpu, none), "dot4");
  EXPECT_EQ(first_for(attention_s8_variants(), gpu, none), "dot4");
  EXPECT_EQ(first_for(pool_variants(), cpu, none), "rows");
  EXPECT_EQ(first_for(pool_variants(), gpu, none), "group");
  some.subgroups = some.avx2 = true;
  EXPECT_EQ(first_for(gemm_s8_variants(), cpu, some), "x86_avx2");
  EXPECT_EQ(first_for(pool_variants(), gpu, some), "subgroup");
  some.ptx_mma_s8 = some.avx512_vnni = true;
  EXPECT_EQ(first_for(gemm_s8_variants(), gpu, some), "mma");
  EXPECT_EQ(first_for(attention_s8_variants(), cpu, some), "x86_vnni");
  some.ptx_wgmma_s8 = true;
  EXPECT_EQ(first_for(gemm_s8_variants(), gpu, some), "wgmma");
  some.avx512_vnni = some.avx2 = false;
  EXPECT_EQ(first_for(attention_s8_variants(), gpu, some), "mma");
  opencl::DeviceInfo little = gpu;
  little.local_mem_bytes = 32 * 1024;
  EXPECT_EQ(first_for(attention_s8_variants(), little, some), "dot4");
}

TEST(Variants, TheReferenceRunsOnTheSmallestDevice) {
  opencl::DeviceInfo small = device_of("gpu");
  small.max_work_group_size = 1, small.local_mem_bytes = 0;
  const opencl::Capabilities none;
  EXPECT_EQ(first_for(gemm_s8_variants(), small, none), "ref");
  EXPECT_EQ(first_for(gemm_f32_variants(), small, none), "portable");
  EXPECT_EQ(first_for(attention_s8_variants(), small, none), "ref");
  EXPECT_EQ(first_for(attention_f32_variants(), small, none), "ref");
  EXPECT_EQ(first_for(pool_variants(), small, none), "rows");
}

TEST(Needs, SayWhatIsMissing) {
  const opencl::Capabilities none;
  opencl::DeviceInfo gpu = device_of("gpu");
  const Needs dpas{
      .kind = DeviceKind::gpu,
      .one_of = {&opencl::Capabilities::intel_dpas_8, &opencl::Capabilities::intel_dpas_16}};
  EXPECT_EQ(why_not(dpas, gpu, none).reason, "the device has no intel_dpas_8 or intel_dpas_16");
  EXPECT_FALSE(why_not(dpas, gpu, none).is_other_kind);
  EXPECT_EQ(why_not(dpas, device_of("cpu"), none).reason, "GPUs only");
  EXPECT_TRUE(why_not(dpas, device_of("cpu"), none).is_other_kind);
  EXPECT_EQ(why_not({.kind = DeviceKind::cpu}, gpu, none).reason, "CPUs only");
  const Needs groups{.group_items = 256, .local_bytes = 17 * 1024};
  gpu.local_mem_bytes = 16 * 1024;
  EXPECT_EQ(why_not(groups, gpu, none).reason,
            "it needs 17 KB of local memory, the device has 16 KB");
  gpu.max_work_group_size = 64;
  EXPECT_EQ(why_not(groups, gpu, none).reason, "the device does not support work-groups of 256");
  EXPECT_EQ(why_not({}, gpu, none).reason, "");
}

// A unit may be hidden while its f16 arithmetic is not.
TEST(Needs, MatrixF16WithoutAUnitIsRefused) {
  opencl::Capabilities halves;
  halves.matrix_f16 = true;
  const Needs& needs = gemm_f16_variant().needs;
  EXPECT_EQ(why_not(needs, device_of("gpu"), halves).reason, "the device has no matrix_f16");
  halves.ptx_mma_s8 = true;
  EXPECT_EQ(why_not(needs, device_of("gpu"), halves).reason, "");
}

// Other units multiply halves, too, by other fragments.
TEST(Needs, AttentionInF16IsForNvidiasUnit) {
  opencl::Capabilities amd;
  amd.matrix_f16 = amd.amd_wmma = true;
  const Needs& needs = attention_f16_variant().needs;
  EXPECT_EQ(why_not(needs, device_of("gpu"), amd).reason, "the device has no ptx_mma_s8");
  EXPECT_TRUE(why_not(needs, device_of("cpu"), amd).is_other_kind);
  opencl::Capabilities nvidia;
  nvidia.ptx_mma_s8 = true;
  EXPECT_EQ(why_not(needs, device_of("gpu"), nvidia).reason, "the device has no matrix_f16");
  nvidia.matrix_f16 = true;
  EXPECT_EQ(why_not(needs, device_of("gpu"), nvidia).reason, "");
}

const GemmVariant& s8_variant(std::string_view name) {
  return *std::ranges::find(gemm_s8_variants(), name, &GemmVariant::name);
}

TEST(Variants, TilesForTheDevice) {
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

TEST(Variants, RowsOfAttentionForTheDevice) {
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

TEST(Variants, SmallerTilesOfTheSameWeights) {
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
TEST(Variants, WorkGroupsOfSmallTiles) {
  opencl::Capabilities unit;
  unit.intel_dpas_16 = true;
  std::vector<std::int32_t> items;
  const GemmVariant dpas = s8_variant("dpas");
  for (const GemmVariant& v : with_all_smaller_tiles(dpas, device_of("gpu"), unit))
    items.push_back(v.items);
  EXPECT_THAT(items, ElementsAre(64, 128, 256));
  EXPECT_EQ(with_tiles(s8_variant("dot4"), {32, 64}).items, 256);
}

TEST(Variants, OptionsThatOnlyTuningChooses) {
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

TEST(Variants, OfSplitKHaveNames) {
  EXPECT_EQ(split_k_variants().partial_of(4), "mma_split_k_4");
  EXPECT_THAT(variant_names(), IsSupersetOf({"mma_split_k", "mma_reduce", "mma_norm"}));
  EXPECT_THAT(variant_names(), IsSupersetOf(reference_names()));
}

TEST(Variants, ReferencesAreTheLastOfEachTable) {
  EXPECT_THAT(reference_names(), ElementsAre("batched", "elements", "ref", "rows"));
}

TEST(Variants, SmallMTakesSeveralTiles) {
  const GemmVariant small_m = s8_variant("x86_vnni").small_m();
  EXPECT_EQ(small_m.name, "x86_vnni_small_m");
  EXPECT_EQ(small_m.program, "gemm_s8_x86_vnni_small_m");
  EXPECT_EQ(small_m.tile_rows, 32);
  EXPECT_EQ(small_m.panel, 48);
  EXPECT_EQ(small_m.defines.at("ITEM_TILES"), 4);
}

}  // namespace
}  // namespace bertcl::kernels
