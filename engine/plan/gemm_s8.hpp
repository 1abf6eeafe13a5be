// SPDX-License-Identifier: Apache-2.0
// An int8 GEMM with constant weights on a device: its variants by rows, and its prepacked weights.
// Shared by the planner and by GEMMs without a model (runtime/gemm.hpp).
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kernels/variants.hpp"
#include "opencl/buffer.hpp"
#include "plan/plan.hpp"
#include "plan/split_k.hpp"
#include "plan/target.hpp"

namespace bertcl::plan {

/// The variants of a GEMM [k, n], which all read the same prepacked weights.
struct GemmChoice {
  struct ForRows {
    std::int64_t up_to_rows;  // as Alternative::up_to_rows
    kernels::GemmVariant variant;
  };
  kernels::GemmVariant variant;  // where none of the others fits
  std::vector<ForRows> for_rows;
  TunableGemm tunable;
  std::string why_not_faster;
};

/// The same of an int8 GEMM, which may also use split-K.
struct GemmS8 : GemmChoice {
  SplitK split_k = {};                      // of K, for small M
  kernels::GemmVariant split_variant = {};  // that of unsplit_name(), or no name
};

/// What the device was tuned to, else the first variant that it supports. Throws bertcl::Error
/// naming `who` where all are refused.
GemmS8 choose_gemm_s8(const Target& target, const std::string& who, std::int64_t n, std::int64_t k);

/// Throws bertcl::Error naming `who` where an int32 may not hold the sum of k products.
void check_exact_sums(const std::string& who, std::int64_t k, bool weights_have_zero_points);

/// Makes a kernel of a program, which need not be built.
using MakeKernel = std::function<opencl::Kernel(const std::string& program, const char* kernel,
                                                const opencl::Defines& defines)>;

/// Completes a step that launches gemm.variant: its group size, the other variants, and what a
/// report tells of all of them.
void set_alternatives(Step& step, const GemmChoice& gemm, const ir::Dim& rows,
                      const std::function<opencl::Kernel(const kernels::GemmVariant&)>& kernel_of);

/// Gives a step, whose arguments are those of kernels::GemmS8, its kernels and grids for every
/// number of rows, and what a report tells of them. `activation` and `out_type` are codes of
/// kernels/types.hpp.
void set_variants(Step& step, const GemmS8& gemm, std::int32_t activation, std::int32_t out_type,
                  const ir::Dim& rows, const MakeKernel& make_kernel);
/// The same with kernels of `context`.
void set_variants(Step& step, const GemmS8& gemm, std::int32_t activation, std::int32_t out_type,
                  const ir::Dim& rows, opencl::Context& context);

/// Weights in the panels that the variants of a GEMM read, and the sums of their columns.
struct PrepackedS8 {
  opencl::Buffer panels, column_sums;
};

PrepackedS8 allocate_prepacked(opencl::Context& context, const GemmS8& gemm);

/// Options of prepack_s8 for the weights of a GEMM.
opencl::Defines prepack_options(const Target& target, const GemmS8& gemm);

/// Sets all arguments of prepack_s8 but the weights, which hold `columns` columns of those of the
/// GEMM from `first` on.
void bind_prepack(opencl::Kernel& kernel, const PrepackedS8& prepacked, const GemmS8& gemm,
                  std::int64_t columns, std::int64_t first);

/// Work-items of a prepacking kernel for such columns, each of which packs `item_columns`, or a
/// panel if that is 0.
std::size_t prepack_items(std::int32_t item_columns, std::int32_t panel, std::int64_t columns,
                          std::int64_t first);

}  // namespace bertcl::plan
