// SPDX-License-Identifier: Apache-2.0
// The variants of row kernels, and the work-group of a row.
#include "plan/row_kernels.hpp"

#include <fmt/format.h>

#include "plan/variants.hpp"
#include "support/ceil_div.hpp"

namespace bertcl::plan {
namespace {

/// Kept by a group: eight vectors of each of 256 items.
constexpr std::int64_t kMaxRowColumns = 8192;

/// Why no work-group keeps such rows; "" if one does.
std::string why_not_kept(const RowColumns& columns) {
  if (!columns.kept) return "";
  if (!columns.count.is_constant()) return "its row size is known at run time only";
  const std::int64_t count = columns.count.constant();
  if (count <= kMaxRowColumns) return "";
  return fmt::format("its rows have {} columns, a work-group holds at most {}", count,
                     kMaxRowColumns);
}

/// Work-items for a row: as few as hold it in four vectors of four columns each, since what crosses
/// sub-groups goes through local memory.
int items_for(std::int64_t columns) { return columns <= 1024 ? 64 : columns <= 2048 ? 128 : 256; }

auto choose_variant(Builder& b, const ir::Node& node, RowVariants variants,
                    const RowColumns& columns) {
  return choose(b, node, variants, [&](const kernels::KernelVariant& variant) {
    const kernels::Refusal of_device = b.target().why_not(variant.needs);
    if (!of_device.reason.empty() || !variant.divides) return of_device;
    return kernels::Refusal{why_not_kept(columns)};
  });
}

RowGroup group_of(const kernels::KernelVariant& variant, const RowColumns& columns) {
  const std::int64_t size = columns.kept ? columns.count.constant() : 1;
  const int items = items_for(size);
  return {items,
          {{"ITEMS", items},
           {"VECTORS", static_cast<int>(ceil_div(size, 4 * items))},
           {"SUBGROUPS", variant.subgroups ? 1 : 0}}};
}

}  // namespace

std::optional<RowGroup> row_group_of(Builder& b, const ir::Node& node, RowVariants variants,
                                     const RowColumns& columns) {
  const kernels::KernelVariant& variant = *choose_variant(b, node, variants, columns).variant;
  if (!variant.divides) return std::nullopt;
  return group_of(variant, columns);
}

Step& launch_row_kernel(Builder& b, const ir::Node& node, Arithmetic type, RowVariants variants,
                        const char* kernel, std::vector<Argument> arguments, const ir::Dim& rows,
                        const RowColumns& columns) {
  const auto choice = choose_variant(b, node, variants, columns);
  const kernels::KernelVariant& variant = *choice.variant;
  if (!variant.divides) {
    const std::int32_t rows_per_item =
        columns.rows_per_item > 0 ? columns.rows_per_item : b.rows_per_item();
    Step& step =
        b.launch(node, type, variant.name, b.kernel(variant.program, kernel), std::move(arguments),
                 {SizeExpr{rows, rows_per_item}, SizeExpr{}, SizeExpr{}});
    step.why_not_faster = choice.why_not_faster;
    return step;
  }
  const auto [items, defines] = group_of(variant, columns);
  // Along the first axis: NVIDIA takes no more than 65,535 groups along the others.
  Step& step =
      b.launch(node, type, variant.name, b.kernel(variant.program, kernel, defines),
               std::move(arguments), {SizeExpr{rows * ir::Dim(items)}, SizeExpr{}, SizeExpr{}});
  step.local[0] = static_cast<std::size_t>(items);
  step.why_not_faster = choice.why_not_faster;
  return step;
}

}  // namespace bertcl::plan
