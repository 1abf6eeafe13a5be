// SPDX-License-Identifier: Apache-2.0
// Which kernels the persistent kernel can run as steps.
#pragma once
#include <span>
#include <string_view>

namespace bertcl::kernels {

struct MergeableKernel {
  std::string_view program, kernel;
  /// True if it is in every persistent kernel, used or not: one that is quick to compile and that
  /// most models use. So models that differ in these alone have one program, which is compiled
  /// once.
  bool always = false;
};

/// Those whose source says MERGEABLE(kernel, ...) (kernels_cl/persistent/place.clh), in
/// alphabetical order.
std::span<const MergeableKernel> mergeable_kernels();

bool is_mergeable(std::string_view program, std::string_view kernel);

}  // namespace bertcl::kernels
