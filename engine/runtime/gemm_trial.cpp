// SPDX-License-Identifier: Apache-2.0
// Builds and launches a GEMM's kernel once.
#include "runtime/gemm_trial.hpp"

#include <fmt/format.h>

#include "bertcl/error.hpp"
#include "kernels/bind.hpp"
#include "opencl/queue.hpp"
#include "runtime/launch.hpp"

namespace bertcl::runtime {

std::string why_refused(const plan::Target& target, const plan::StepKernel& launch,
                        GemmArguments arguments) {
  const bool is_cpu = target.context.info().is_cpu();
  opencl::Kernel kernel = launch.kernel;  // a handle
  try {
    target.build(kernel);
  } catch (const Error& error) {
    if (is_cpu || error.code() == ErrorCode::out_of_memory) throw;
    const std::string message = error.what();
    return "the driver refuses its kernel: " + message.substr(0, message.find('\n'));
  }
  if (is_cpu) return "";
  if (std::string reason = target.why_not_in_groups(kernel, launch.local); !reason.empty())
    return reason;
  kernels::set(kernel, arguments);
  opencl::Queue& queue = target.context.queue();
  try {
    launch_or_retry(queue, kernel, launch_grid(queue, launch, {{kRows, 1}}), "GEMM");
  } catch (const opencl::LaunchError& error) {
    return fmt::format("the driver refuses its launch: {}", error.what());
  }
  queue.finish();
  arguments.a = arguments.out = arguments.row_sums = nullptr;
  kernels::set(kernel, arguments);
  return "";
}

}  // namespace bertcl::runtime
