// SPDX-License-Identifier: Apache-2.0
// Row-wise kernels: a work-item per row on CPUs, a work-group per row on GPUs.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "kernels/variants.hpp"
#include "plan/builder.hpp"

namespace bertcl::plan {

/// The columns of a row, as far as a work-group holds them in registers.
struct RowColumns {
  ir::Dim count{1};
  bool kept = true;  ///< false: the kernel reads its row as often as it needs, of any size
  std::int32_t rows_per_item = 0;  ///< of a work-item; 0: as many as suit the device
};

/// Work-items of a row's group, and the options of its program.
struct RowGroup {
  int items = 0;
  opencl::Defines defines;
};

using RowVariants = std::span<const kernels::KernelVariant>;

/// The group in which launch_rows() runs a node; none where it runs in work-items.
std::optional<RowGroup> row_group_of(Builder& b, const ir::Node& node, RowVariants variants,
                                     const RowColumns& columns);

Step& launch_row_kernel(Builder& b, const ir::Node& node, Arithmetic type, RowVariants variants,
                        const char* kernel, std::vector<Argument> arguments, const ir::Dim& rows,
                        const RowColumns& columns);

/// Launches `kernel` of the variant that suits the device.
template <template <class> class Contract>
Step& launch_rows(Builder& b, const ir::Node& node, Arithmetic type, RowVariants variants,
                  const char* kernel, const Contract<Argument>& arguments, const ir::Dim& rows,
                  const RowColumns& columns) {
  kernels::check_kernel(kernel, kernels::parameters_of<Contract>.data());
  return launch_row_kernel(b, node, type, variants, kernel, kernels::in_order(arguments), rows,
                           columns);
}

}  // namespace bertcl::plan
