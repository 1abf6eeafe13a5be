// SPDX-License-Identifier: Apache-2.0
// Device time of each kernel of a plan, with its arithmetic and its traffic.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/session.hpp"

namespace bertcl::tools {

/// All launches of one kernel with the same op, type and variant, for one run of the model.
struct KernelTime {
  std::string name;  ///< file of kernels_cl/ without .cl, or CLBlast
  std::string op, variant;
  plan::Arithmetic type;
  double calls = 0.0;
  double ms = 0.0;
  double operations = 0.0;  ///< arithmetic operations; 0 where they are not counted
  double bytes = 0.0;       ///< of operands and results, each once

  double gops() const { return ms > 0.0 ? operations / ms / 1e6 : 0.0; }
  double gbps() const { return ms > 0.0 ? bytes / ms / 1e6 : 0.0; }
};

/// The launches of one kernel of one value that a plan makes, for one run of the model.
struct StepTime : KernelTime {
  const plan::Step* step = nullptr;  ///< null: a launch that is none of the plan's
  double constant_bytes = 0.0;       ///< the part of `bytes` that is weights and their like
};

/// Runs `inputs` with the queue's profile on, `runs` times.
std::vector<StepTime> profile_steps(runtime::Session& session, const runtime::Tensors& inputs,
                                    std::int64_t batch, std::int64_t seq, int runs);

/// These summed up by kernel, op, type and variant, the slowest first.
std::vector<KernelTime> sum_kernels(const std::vector<StepTime>& steps);

/// profile_steps() and sum_kernels().
std::vector<KernelTime> profile_kernels(runtime::Session& session, const runtime::Tensors& inputs,
                                        std::int64_t batch, std::int64_t seq, int runs);

/// The same as a table with shares and a sum.
std::string kernel_table(const std::vector<KernelTime>& kernels);

}  // namespace bertcl::tools
