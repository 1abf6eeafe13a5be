// SPDX-License-Identifier: Apache-2.0
// Launches of many steps: the kernel of kernels_cl/persistent/persistent.cl over functions made of
// other kernels.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "opencl/context.hpp"

namespace bertcl::opencl {

/// 64-bit words of a step, and those before its arguments.
inline constexpr size_t kStepWords = 48;
inline constexpr size_t kStepHeader = 5;
/// Bytes of its state, zeros before its first launch.
inline constexpr size_t kPersistentStateBytes = 3 * 64;

/// A step as kernels_cl/persistent/persistent.cl reads it.
struct PersistentStep {
  std::uint64_t kernel;      // its index in the persistent kernel
  std::uint64_t first_item;  // items of the steps before it in the same launch
  std::array<size_t, 3> grid;
  /// Addresses, and the bits of an int or a float; at most kStepWords - kStepHeader.
  std::vector<std::uint64_t> arguments;
};
void append_step(std::vector<std::uint64_t>& words, const PersistentStep& step);

/// The kernel `persistent`, not built yet, whose steps name one of `kernels` by its index. All of
/// them are mergeable; `defines` are tunables of kernels_cl/persistent/persistent.cl.
Kernel persistent_kernel_of(Context& context, std::span<const Kernel> kernels,
                            Defines defines = {});

/// The address of each buffer in kernels; 0 for an empty one. On a CPU device it stays valid until
/// the buffer is released, and kernels may access the buffer through it. Asked on a queue of its
/// own, so that nothing of the context's queue is waited for, unless it uses one of the buffers.
std::vector<std::uint64_t> addresses_of(Context& context, std::span<const Buffer* const> buffers);

}  // namespace bertcl::opencl
