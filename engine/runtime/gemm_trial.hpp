// SPDX-License-Identifier: Apache-2.0
// The trial of a GEMM's kernel on a device: drivers of GPUs build some that they do not launch.
#pragma once
#include <array>
#include <cstddef>
#include <string>

#include "kernels/contracts/gemm.hpp"
#include "opencl/kernel.hpp"
#include "plan/plan.hpp"
#include "plan/target.hpp"

namespace bertcl::runtime {

inline constexpr const char* kRows = "rows";  // the symbol of a GEMM's sizes

using GemmArguments = kernels::GemmS8<opencl::KernelArgument>;

/// Builds a kernel. On a GPU also launches it over the grid of one row, whose operands may hold
/// anything, and waits. Returns why the driver refuses it, "" where it does not. Throws Error if
/// memory is short, which may pass, and where a CPU's driver does not build it. The kernel keeps
/// none of a, out and row_sums.
std::string why_refused(const plan::Target& target, const plan::StepKernel& launch,
                        GemmArguments arguments);

}  // namespace bertcl::runtime
