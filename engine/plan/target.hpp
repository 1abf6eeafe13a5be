// SPDX-License-Identifier: Apache-2.0
// What the choice of a variant depends on, apart from the op.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "kernels/needs.hpp"
#include "kernels/tiles.hpp"
#include "opencl/context.hpp"
#include "plan/tuning.hpp"

namespace bertcl::plan {

struct Options;

/// A device, which variants are disabled, and what the device was tuned to.
struct Target {
  opencl::Context& context;
  const Options& options;
  const Tuning& tuning;

  bool is_disabled(std::string_view variant) const;

  /// Why the device does not run a variant with these needs.
  kernels::Refusal why_not(const kernels::Needs& needs) const {
    return kernels::why_not(needs, context.info(), context.capabilities());
  }

  /// Builds a kernel, once more after a shortage that other work may have caused. Throws Error as
  /// Kernel::build(), with ErrorCode::out_of_memory only for what may pass.
  void build(const opencl::Kernel& kernel) const;

  /// Why a built kernel does not run in such work-groups; "" where it does.
  std::string why_not_in_groups(const opencl::Kernel& kernel,
                                const std::array<std::size_t, 3>& local) const;

  /// What the variant takes from the device.
  kernels::GemmVariant adapt_to_device(const kernels::GemmVariant& variant) const {
    return kernels::adapt_to_device(variant, context.info(), context.capabilities());
  }

  /// Columns that a work-item of the prepacking kernels packs; 0: a panel.
  std::int32_t prepack_columns() const { return context.info().is_cpu() ? 0 : 1; }
  opencl::Defines prepack_options() const { return {{"ITEM_COLUMNS", prepack_columns()}}; }

  /// Elements that one work-item of an elementwise kernel should take.
  std::int32_t chunk() const { return context.info().is_cpu() ? 4096 : 4; }
  /// The same of kernels that take vectors of 16, whose ends take a slower way.
  std::int32_t vector_chunk() const { return context.info().is_cpu() ? 4096 : 16; }
  /// Rows that one work-item of a row kernel should take.
  std::int32_t rows_per_item() const { return context.info().is_cpu() ? 8 : 1; }
};

}  // namespace bertcl::plan
