// SPDX-License-Identifier: Apache-2.0
// All variants of all kernels, as one table.
#include "kernels/variants.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "bertcl/error.hpp"

namespace bertcl::kernels {
namespace {

using opencl::Capabilities;
using enum DeviceKind;

constexpr std::size_t kKiB = 1024;

const Needs nothing;  // named, because GCC 12 takes a default for uninitialized
const Needs cpu_only{.kind = cpu};
const Needs avx2{.kind = cpu, .one_of = {&Capabilities::avx2}};
const Needs avx512{.kind = cpu, .one_of = {&Capabilities::avx512}};
const Needs avx512_vnni{.kind = cpu, .one_of = {&Capabilities::avx512_vnni}};
const Needs avx_vnni{.kind = cpu, .one_of = {&Capabilities::avx_vnni}};
const Needs arm_sdot{.kind = cpu, .one_of = {&Capabilities::arm_sdot}};
const Needs avx512_bf16{.kind = cpu, .one_of = {&Capabilities::avx512_bf16}};
const Needs mma{.kind = gpu, .one_of = {&Capabilities::ptx_mma_s8}};
const Needs wgmma{.kind = gpu,
                  .one_of = {&Capabilities::ptx_wgmma_s8},
                  .group_items = 256,
                  .local_bytes = 48 * kKiB};
const Needs dpas{.kind = gpu,
                 .one_of = {&Capabilities::intel_dpas_8, &Capabilities::intel_dpas_16}};
const Needs mfma{.kind = gpu, .one_of = {&Capabilities::amd_mfma_k16, &Capabilities::amd_mfma_k32}};
const Needs wmma{.kind = gpu, .one_of = {&Capabilities::amd_wmma, &Capabilities::amd_wmma_gfx12}};
const Needs matrix_f16{.kind = gpu, .one_of = {&Capabilities::matrix_f16}, .matrix_unit = true};
const Needs mma_attention{.kind = gpu,
                          .one_of = {&Capabilities::ptx_mma_s8},
                          .group_items = 128,
                          .local_bytes = 38 * kKiB};
const Needs mma_attention_f16{.kind = gpu,
                              .one_of = {&Capabilities::matrix_f16},
                              .also = &Capabilities::ptx_mma_s8,
                              .group_items = 128,
                              .local_bytes = 33 * kKiB};
const Needs groups{.group_items = 256, .local_bytes = 17 * kKiB};
const Needs gpu_groups{.kind = gpu, .group_items = 256, .local_bytes = 17 * kKiB};
const Needs large_groups{.group_items = 256, .local_bytes = 32 * kKiB};
const Needs subgroups{
    .one_of = {&Capabilities::subgroups}, .group_items = 256, .local_bytes = 17 * kKiB};

// No registers are spilled in any (tests/layout/check_gpu_kernels).
const std::vector<TileOptions> kWgmmaOptions{{.tile = {128, 128}, .cells_k = 4},
                                             {.tile = {64, 256}},
                                             {.tile = {64, 128}, .cells_k = 2},
                                             {.tile = {64, 64}, .cells_k = 2}};
const std::vector<TileOptions> kMmaOptions{{.tile = {128, 256}},
                                           {.tile = {128, 128}, .stages = 3},
                                           {.tile = {128, 128}, .stages = 5},
                                           {.tile = {128, 128}, .subs_n = 2},
                                           {.tile = {64, 128}, .cells_k = 4, .stages = 3},
                                           {.tile = {64, 128}, .subs_n = 2},
                                           {.tile = {64, 64}, .cells_k = 4},
                                           {.tile = {64, 64}, .subs_n = 2}};

const std::vector<std::array<std::int32_t, 2>> kWgmmaTiles{{128, 128}, {64, 128}, {64, 64}};
const std::vector<std::array<std::int32_t, 2>> kGroupTiles{{64, 128}, {64, 64}, {32, 64}};

// clang-format off
const std::vector<GemmVariant> kGemmS8{
    {.name = "wgmma", .program = "gemm_s8_wgmma", .tile_rows = 128, .panel = 64, .k_group = 16,
     .needs = wgmma, .items = 256, .tile_columns = 256, .unit = Unit::wgmma,
     .takes_epilogue = true, .smaller_tiles = kWgmmaTiles, .tuned_options = kWgmmaOptions},
    {.name = "mma", .program = "gemm_s8_mma", .tile_rows = 128, .panel = 64, .k_group = 16,
     .needs = mma, .items = 256, .tile_columns = 128, .unit = Unit::matrix,
     .takes_epilogue = true, .smaller_tiles = kGroupTiles, .tuned_options = kMmaOptions},
    {.name = "dpas", .program = "gemm_s8_matrix", .tile_rows = 128, .panel = 64, .k_group = 4,
     .needs = dpas, .items = 256, .small_tile_sums = 32, .tile_columns = 128, .unit = Unit::matrix,
     .takes_epilogue = true, .smaller_tiles = kGroupTiles},
    {.name = "mfma", .program = "gemm_s8_matrix", .tile_rows = 128, .panel = 64, .k_group = 4,
     .needs = mfma, .items = 256, .tile_columns = 128, .unit = Unit::matrix,
     .takes_epilogue = true, .smaller_tiles = kGroupTiles},
    {.name = "wmma", .program = "gemm_s8_matrix", .tile_rows = 128, .panel = 64, .k_group = 4,
     .needs = wmma, .items = 256, .tile_columns = 128, .unit = Unit::matrix,
     .takes_epilogue = true, .smaller_tiles = kGroupTiles},
    {.name = "x86_vnni", .program = "gemm_s8_x86_vnni", .tile_rows = 8, .panel = 48, .k_group = 4,
     .needs = avx512_vnni, .small_m_program = "gemm_s8_x86_vnni_small_m"},
    {.name = "x86_avx_vnni", .program = "gemm_s8_x86_avx_vnni", .tile_rows = 6, .panel = 16,
     .k_group = 4, .needs = avx_vnni},
    {.name = "x86_avx2", .program = "gemm_s8_x86_avx2", .tile_rows = 6, .panel = 16, .k_group = 4,
     .needs = avx2, .tile_columns = 64, .order_block = 768},
    {.name = "arm_sdot", .program = "gemm_s8_arm_sdot", .tile_rows = 6, .panel = 16, .k_group = 4,
     .needs = arm_sdot},
    {.name = "portable", .program = "gemm_s8_portable", .tile_rows = 6, .panel = 64,
     .needs = cpu_only},
    {.name = "dot4", .program = "gemm_s8_dot4", .tile_rows = 128, .panel = 64, .k_group = 4,
     .needs = groups, .items = 256, .tile_columns = 128, .unit = Unit::dot4,
     .takes_epilogue = true, .smaller_tiles = kGroupTiles},
    {.name = "ref", .program = "gemm_s8_ref", .needs = nothing, .is_reference = true}};

const std::vector<GemmVariant> kGemmF32{
    {.name = "x86_avx512", .program = "gemm_f32_x86", .tile_rows = 8, .panel = 48,
     .needs = avx512, .defines = {{"LANES", 16}}, .takes_prefetch = true,
     .small_m_program = "gemm_f32_x86_small_m"},
    {.name = "x86_avx2", .program = "gemm_f32_x86", .tile_rows = 6, .panel = 16,
     .needs = avx2, .defines = {{"LANES", 8}}, .takes_prefetch = true,
     .small_m_program = "gemm_f32_x86_small_m"},
    {.name = "group", .program = "gemm_f32_group", .tile_rows = 128, .panel = 64,
     .needs = gpu_groups, .items = 256, .tile_columns = 128, .smaller_tiles = kGroupTiles},
    {.name = "portable", .program = "gemm_f32_portable", .tile_rows = 6, .panel = 16,
     .needs = nothing},
    {.name = "ref", .program = "gemm_f32_ref", .needs = nothing, .is_reference = true}};

const GemmVariant kClblast{.name = "clblast", .program = "", .needs = nothing};
const GemmVariant kGemmF16{
    .name = "matrix_f16", .program = "gemm_f16_matrix", .tile_rows = 128, .panel = 64, .k_group = 2,
    .needs = matrix_f16, .items = 256, .tile_columns = 128, .unit = Unit::matrix};
const GemmVariant kGemmBf16{
    .name = "x86_bf16", .program = "gemm_bf16_x86", .tile_rows = 8, .panel = 48, .k_group = 2,
    .needs = avx512_bf16};

const SplitKVariants kSplitK{
    .of = "mma", .tile = {32, 64}, .partial = "mma_split_k",
    .reduce = {"mma_reduce", "gemm_s8_reduce"}, .norm = {"mma_norm", "add_norm_split_k_group"}};

const std::vector<AttentionVariant> kAttentionS8{
    {.name = "x86_vnni", .program = "attention_s8_x86_vnni", .needs = avx512_vnni,
     .takes_blocks = true, .biased_columns = 256},
    {.name = "x86_avx2", .program = "attention_s8_x86_avx2", .needs = avx2,
     .takes_blocks = true, .biased_columns = 256, .takes_lanes = true},
    {.name = "portable", .program = "attention_s8_portable", .needs = cpu_only,
     .takes_blocks = true, .biased_columns = 256, .takes_lanes = true},
    {.name = "mma", .program = "attention_s8_mma", .needs = mma_attention,
     .uses_work_groups = true, .unit = Unit::matrix, .biased_columns = 256},
    // Of registers on gfx906 and gfx908 157 and 166 for 64 rows, 123 and 124 for 32.
    {.name = "dot4", .program = "attention_s8_dot4", .needs = large_groups,
     .uses_work_groups = true, .biased_columns = 256, .takes_over_128_registers = true},
    {.name = "ref", .program = "attention_s8_ref", .biased_columns = 256}};

const std::vector<AttentionVariant> kAttentionF32{
    {.name = "x86", .program = "attention_f32_x86", .needs = cpu_only,
     .takes_blocks = true, .biased_columns = 256, .takes_lanes = true},
    {.name = "group", .program = "attention_f32_group", .needs = large_groups,
     .uses_work_groups = true, .biased_columns = 256},
    {.name = "ref", .program = "attention_f32_ref", .biased_columns = 256}};

const AttentionVariant kAttentionF16{
    .name = "mma_f16", .program = "attention_f16_mma", .needs = mma_attention_f16,
    .uses_work_groups = true, .unit = Unit::matrix, .biased_columns = 128};
const AttentionVariant kAttentionBf16{
    .name = "x86_bf16", .program = "attention_bf16_x86", .needs = avx512_bf16,
    .takes_blocks = true};

const std::vector<PositionScoresVariant> kPositionScores{
    {.name = "x86_vnni", .program = "position_scores_s8_x86_vnni", .needs = avx512_vnni,
     .takes_blocks = true, .max_positions = 4096, .takes_bytes = true},
    {.name = "x86", .program = "position_scores_f32_x86", .needs = cpu_only,
     .takes_blocks = true, .max_positions = 4096},
    {.name = "group", .program = "position_scores_f32_group", .needs = gpu_groups, .tile = 64},
    {.name = "ref", .program = "position_scores_f32_ref"}};

// On CPUs a row for a work-item comes first: its vectors need no reduction across work-items.
std::vector<KernelVariant> row_kernels(const char* items, const char* work_groups) {
  return {{.name = "rows", .program = items, .needs = cpu_only},
          {.name = "subgroup", .program = work_groups, .needs = subgroups,
           .divides = true, .subgroups = true},
          {.name = "group", .program = work_groups, .needs = groups, .divides = true},
          {.name = "rows", .program = items}};
}
const auto kAddNorm = row_kernels("add_norm", "add_norm_group");
const auto kEmbedNorm = row_kernels("embed_norm", "embed_norm_group");
const auto kPool = row_kernels("pool", "pool_group");
const auto kQuantizeRows = row_kernels("quantize_rows", "quantize_rows_group");
const auto kSoftmax = row_kernels("softmax", "softmax_group");
const std::vector<KernelVariant> kRotary{
    {.name = "columns", .program = "rotary_columns", .needs = {.kind = gpu}, .divides = true},
    {.name = "rows", .program = "rotary"}};
const std::vector<KernelVariant> kDynamicQuantize{
    {.name = "group", .program = "dynamic_quantize_group", .needs = gpu_groups, .divides = true},
    {.name = "elements", .program = "dynamic_quantize"}};
const std::vector<KernelVariant> kMatMulF32{
    {.name = "group", .program = "matmul_f32_group", .needs = gpu_groups,
     .divides = true},
    {.name = "batched", .program = "matmul_f32_batched"}};
const std::vector<KernelVariant> kMatMulS32{
    {.name = "group", .program = "matmul_s32_group", .needs = gpu_groups,
     .divides = true},
    {.name = "batched", .program = "matmul_s32_batched"}};
// clang-format on

}  // namespace

std::string GemmVariant::layout() const {
  return items > 1 ? fmt::format("{}x{}", panel, k_group) : name;
}

GemmVariant GemmVariant::small_m() const {
  if (small_m_program.empty()) throw std::logic_error(name + " has no small_m_program");
  GemmVariant made = *this;
  made.name = small_m_name();
  made.program = small_m_program;
  made.tile_rows *= kSmallMTiles;
  made.defines["ITEM_TILES"] = kSmallMTiles;
  return made;
}

std::string SplitKVariants::partial_of(std::int32_t splits) const {
  return fmt::format("{}_{}", partial, splits);
}

std::string SplitKVariants::unsplit_name() const {
  return fmt::format("{}_{}x{}", of, tile[0], tile[1]);
}

std::span<const GemmVariant> gemm_s8_variants() { return kGemmS8; }
std::span<const GemmVariant> gemm_f32_variants() { return kGemmF32; }
const GemmVariant& clblast_variant() { return kClblast; }
const GemmVariant& gemm_f16_variant() { return kGemmF16; }
const GemmVariant& gemm_bf16_variant() { return kGemmBf16; }
const SplitKVariants& split_k_variants() { return kSplitK; }
std::span<const AttentionVariant> attention_s8_variants() { return kAttentionS8; }
std::span<const AttentionVariant> attention_f32_variants() { return kAttentionF32; }
const AttentionVariant& attention_f16_variant() { return kAttentionF16; }
const AttentionVariant& attention_bf16_variant() { return kAttentionBf16; }
std::span<const PositionScoresVariant> position_scores_variants() { return kPositionScores; }
std::span<const KernelVariant> add_norm_variants() { return kAddNorm; }
std::span<const KernelVariant> embed_norm_variants() { return kEmbedNorm; }
std::span<const KernelVariant> pool_variants() { return kPool; }
std::span<const KernelVariant> quantize_rows_variants() { return kQuantizeRows; }
std::span<const KernelVariant> softmax_variants() { return kSoftmax; }
std::span<const KernelVariant> rotary_variants() { return kRotary; }
std::span<const KernelVariant> dynamic_quantize_variants() { return kDynamicQuantize; }
std::span<const KernelVariant> matmul_f32_variants() { return kMatMulF32; }
std::span<const KernelVariant> matmul_s32_variants() { return kMatMulS32; }

namespace {

void sort_unique(std::vector<std::string>& names) {
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
}

/// All tables of GEMMs as one list.
std::vector<GemmVariant> all_gemms() {
  std::vector<GemmVariant> all{kClblast, kGemmF16, kGemmBf16};
  all.insert(all.end(), kGemmS8.begin(), kGemmS8.end());
  all.insert(all.end(), kGemmF32.begin(), kGemmF32.end());
  return all;
}

/// Calls `visit` with each table of variants, of which the last is the reference.
void for_each_table(const auto& visit) {
  for (const auto* gemms : {&kGemmS8, &kGemmF32}) visit(*gemms);
  for (const auto* attentions : {&kAttentionS8, &kAttentionF32}) visit(*attentions);
  visit(kPositionScores);
  for (const auto* others : {&kAddNorm, &kEmbedNorm, &kPool, &kQuantizeRows, &kSoftmax, &kRotary,
                             &kDynamicQuantize, &kMatMulF32, &kMatMulS32})
    visit(*others);
}

}  // namespace

std::vector<std::string> gemm_programs() {
  std::vector<std::string> programs;
  for (const GemmVariant& variant : all_gemms())
    for (const std::string& program : {variant.program, variant.small_m_program})
      if (!program.empty()) programs.push_back(program);
  sort_unique(programs);
  return programs;
}

std::vector<std::string> variant_names() {
  std::vector<std::string> names;
  for_each_table([&](const auto& variants) {
    for (const auto& variant : variants) names.push_back(variant.name);
  });
  for (const GemmVariant& variant : all_gemms())
    if (!variant.small_m_program.empty()) names.push_back(variant.small_m_name());
  for (const std::string& name :
       {kClblast.name, kGemmF16.name, kGemmBf16.name, kAttentionF16.name, kAttentionBf16.name,
        kSplitK.partial, kSplitK.reduce.name, kSplitK.norm.name})
    names.push_back(name);
  sort_unique(names);
  return names;
}

std::vector<std::string> reference_names() {
  std::vector<std::string> names;
  for_each_table([&](const auto& variants) { names.push_back(variants.back().name); });
  sort_unique(names);
  return names;
}

}  // namespace bertcl::kernels
