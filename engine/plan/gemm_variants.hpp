// SPDX-License-Identifier: Apache-2.0
// GEMMs with constant weights, float and int8: the variants that a device supports, the tuned ones,
// and the prepacking of weights while planning.
#pragma once
#include <array>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/variants.hpp"
#include "plan/builder.hpp"

namespace bertcl::plan {

using kernels::GemmVariant;

/// A tile is computed by a work-item or by a whole work-group.
std::array<SizeExpr, 3> grid_of(const GemmVariant& variant, const ir::Dim& rows,
                                std::int64_t columns);

/// The variants that can run here, without the reference, and those of work-groups with smaller
/// tiles too: what a device can be tuned to.
std::vector<GemmVariant> tunable_variants_of(const Target& target,
                                             std::span<const GemmVariant> variants);

/// Adds what only tuning chooses of those that are in `supported`.
void add_tuned_options(std::vector<GemmVariant>& supported, const Target& target,
                       std::span<const GemmVariant> variants);

/// What tuning needs to know about a GEMM [k, n]; `default_variant` is its variant without tuning.
TunableGemm tunable_of(const std::vector<GemmVariant>& variants, std::int64_t n, std::int64_t k,
                       const std::string& default_variant);

/// The tuned variants for this GEMM, by rows; empty if not tuned, if one is not available here, or
/// if they do not read the same weights.
struct TunedVariant {
  std::int64_t rows;
  const GemmVariant* variant;
};
std::vector<TunedVariant> tuned_variants(const Target& target,
                                         const std::vector<GemmVariant>& variants, const char* op,
                                         const char* type, std::int64_t n, std::int64_t k);

/// The variant for up to tile_rows rows that `variant` has, where the device gains by it: on
/// Intel's CPUs under PoCL, if the panels are enough for all compute units. It has the name of the
/// variant and "_small_m", by which it is disabled.
std::optional<GemmVariant> small_m_of(const Target& target, const GemmVariant& variant,
                                      std::int64_t n);

/// Prepacks weights [K, N], part by part where they are made of such. `kernel_for` gives the kernel
/// for a part whose columns come to stand from `first` on, with all arguments but the part.
void prepack_parts(
    Builder& b, const ir::Tensor& w, std::int32_t panel,
    const std::function<opencl::Kernel(const ir::Tensor& part, std::int32_t first)>& kernel_for);

/// Elements of weights [k, n] in the panels of a variant, padding included.
std::size_t prepacked_size(const GemmVariant& variant, std::int64_t n, std::int64_t k);

/// Two operations per multiply-add: 2 * rows * n * k.
void count_operations(Step& step, const ir::Dim& rows, std::int64_t n, std::int64_t k);

/// "" where the op has none.
std::string activation_of(const ir::Node& node);

}  // namespace bertcl::plan
