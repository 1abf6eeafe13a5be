// SPDX-License-Identifier: Apache-2.0
// The variants of each kernel that has several, fastest first and the reference last: the first
// whose requirements the device meets is used. All of them are in variants.cpp.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/needs.hpp"
#include "opencl/kernel.hpp"

namespace bertcl::kernels {

/// The multiply instruction of a work-group kernel, chosen at build time.
enum class Unit { none, dot4, matrix, wgmma };

/// A tile with build options of its own; 0: the default of the program.
struct TileOptions {
  std::array<std::int32_t, 2> tile;  // rows, columns
  std::int32_t cells_k = 0;          // how deep the strips are along K
  std::int32_t stages = 0;           // how many of them are in flight
  std::int32_t subs_n = 0;           // sub-groups across a tile
};

/// GEMMs with constant weights. A work-item makes a tile of tile_rows x tile_columns, or all of
/// a work-group do.
struct GemmVariant {
  std::string name;
  std::string program;  // "" for CLBlast
  std::int32_t tile_rows = 1, panel = 1;
  std::int32_t k_group = 1;  // rows of the weights that lie together in a panel
  Needs needs = {};
  opencl::Defines defines = {};
  std::int32_t items = 1;  // of a work-group
  /// Sums of a work-item in tiles of less than 128 rows, from which the size of their work-groups
  /// follows; 0: all have `items`.
  std::int32_t small_tile_sums = 0;
  std::int32_t tile_columns = panel;
  Unit unit = Unit::none;
  bool is_reference = false;
  /// Rows of the weights in which prepack_s8 orders groups of 4, written after the panels; 0: none.
  std::int32_t order_block = 0;
  bool takes_prefetch = false;       // has the option PREFETCH
  bool takes_epilogue = false;       // has the options ACTIVATION and OUT_TYPE
  std::string small_m_program = "";  // small-M, on the same panels, on CPUs; "": none
  /// Smaller tiles, rows and columns, largest first, for launches of which larger ones leave
  /// compute units idle; a device can be tuned to them, too.
  std::vector<std::array<std::int32_t, 2>> smaller_tiles = {};
  /// What only tuning chooses: other options of these tiles, and tiles larger than its own.
  std::vector<TileOptions> tuned_options = {};
  std::string options_of = "";  // the variant with the same tile and no options; "": itself
  std::string tiles_of = name;  // the variant whose tiles this one makes smaller, or itself
  std::int32_t splits = 1;      // of K, among work-groups, where the partial sums fit

  /// What variants with the same prepacked weights have in common.
  std::string layout() const;
  std::string small_m_name() const { return name + "_small_m"; }
  /// The variant of small_m_program. Throws std::logic_error where there is none.
  GemmVariant small_m() const;
};

std::span<const GemmVariant> gemm_s8_variants();
/// All but CLBlast, which is not one of bertcl's kernels.
std::span<const GemmVariant> gemm_f32_variants();
const GemmVariant& clblast_variant();
/// The variants whose operands are rounded to half or bf16, where that is asked for.
const GemmVariant& gemm_f16_variant();
const GemmVariant& gemm_bf16_variant();

/// The programs of all of them, sorted.
std::vector<std::string> gemm_programs();

/// The steps of an int8 GEMM whose K is divided among work-groups: of the variant `of`, with small
/// tiles.
struct SplitKVariants {
  struct Sum {
    std::string name;
    std::string program;
  };
  std::string of;
  std::array<std::int32_t, 2> tile;  // rows, columns
  std::string partial;               // sums over each part of K
  Sum reduce;                        // adds them
  Sum norm;                          // of add_norm: adds them, too

  /// `partial` with `splits` parts, as tuning names it: "mma_split_k_4".
  std::string partial_of(std::int32_t splits) const;
  /// The name of the whole GEMM with the same tiles: "mma_32x64".
  std::string unsplit_name() const;
};

const SplitKVariants& split_k_variants();

/// Vertically adjacent tiles that a work-item of `small_m_program` computes. From 1 to 16, 4 or
/// more are equally fast (Xeon model 207, 2026-11-22, 16 and 32 rows).
inline constexpr std::int32_t kSmallMTiles = 4;

struct AttentionVariant {
  std::string name;
  std::string program;
  Needs needs = {};
  bool takes_blocks = false;      // a work-item gains from many query rows
  bool uses_work_groups = false;  // a work-group makes a tile of rows, for heads of up to HEAD_MAX
  Unit unit = Unit::none;         // matrix: with 2 work-items a row
  std::int32_t biased_columns = 0;  // of a head with a bias or a window, at most
  bool takes_lanes = false;         // has the option LANES
  /// 64 rows take more than 128 registers, of which gfx906 and gfx908 have 256 for two waves.
  bool takes_over_128_registers = false;

  /// Work-items of a group that makes that many rows.
  std::int32_t items_of(std::int32_t rows) const { return unit == Unit::matrix ? 2 * rows : 256; }
};

std::span<const AttentionVariant> attention_s8_variants();
std::span<const AttentionVariant> attention_f32_variants();
/// The variants of operands rounded to half or in bf16, where that is asked for.
const AttentionVariant& attention_f16_variant();
const AttentionVariant& attention_bf16_variant();

/// What relative positions add to the scores of attention.
struct PositionScoresVariant {
  std::string name;
  std::string program;
  Needs needs = {};
  bool takes_blocks = false;       // a work-item takes several tokens
  std::int32_t max_positions = 0;  // 0: any number
  std::int32_t tile = 0;           // rows, and keys, of a work-group of 256; 0: none
  bool takes_bytes = false;        // tokens and positions are bytes, else it takes floats, too

  const char* kernel() const { return takes_bytes ? "position_scores_s8" : "position_scores"; }
};

std::span<const PositionScoresVariant> position_scores_variants();

/// Kernels that have two programs: a work-item alone, or several for the same part of the result.
struct KernelVariant {
  std::string name;
  std::string program;
  Needs needs = {};
  bool divides = false;    // several work-items share a part
  bool subgroups = false;  // a work-group reduces by sub-groups
};

// By rows of a matrix.
std::span<const KernelVariant> add_norm_variants();
std::span<const KernelVariant> embed_norm_variants();
std::span<const KernelVariant> pool_variants();
std::span<const KernelVariant> quantize_rows_variants();
std::span<const KernelVariant> softmax_variants();

std::span<const KernelVariant> rotary_variants();
std::span<const KernelVariant> dynamic_quantize_variants();

// MatMul of two computed operands, by tiles.
std::span<const KernelVariant> matmul_f32_variants();
std::span<const KernelVariant> matmul_s32_variants();

/// Names of the variants of these tables, small-M ones included; sorted and unique.
std::vector<std::string> variant_names();

/// The name of the reference, the last variant, of each table; sorted and unique.
std::vector<std::string> reference_names();

}  // namespace bertcl::kernels
