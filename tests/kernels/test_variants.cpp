// SPDX-License-Identifier: Apache-2.0
// The tables of variants: what they name exists, and which a device gets.
#include "kernels/variants.hpp"

#include <array>
#include <set>

#include "opencl/program/sources.hpp"
#include "tests/kernels/variant_examples.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::kernels {
namespace {

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
