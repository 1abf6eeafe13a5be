// SPDX-License-Identifier: Apache-2.0
// The programs of a plan: collected from all nodes first, then built.
#include "plan/programs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "opencl/launch/persistent_kernel.hpp"
#include "opencl/queue.hpp"
#include "plan/options.hpp"
#include "support/stopwatch.hpp"

namespace bertcl::plan {

opencl::Kernel Programs::kernel(std::string_view program, std::string_view name,
                                const opencl::Defines& defines, const ir::Node* node) {
  opencl::Kernel kernel = plan_.context->unbuilt_kernel(program, name, defines);
  if (known_.emplace(program, defines).second) programs_.push_back({kernel, node});
  return kernel;
}

void Programs::mark_prepacking(const opencl::Kernel& kernel) {
  for (Program& program : programs_)
    if (key_of(program.kernel) == key_of(kernel)) program.use = Use::prepacking;
}

void Programs::merge(std::span<const opencl::Kernel> kernels) {
  plan_.persistent_kernel = opencl::persistent_kernel_of(*plan_.context, kernels);
  std::set<Key> alone;  // programs of launches of their own
  for (const Step& step : plan_.steps)
    for_each_kernel(step, [&](const StepKernel& launch) {
      if (launch.kernel && launch.persistent_index < 0) alone.insert(key_of(launch.kernel));
    });
  for (Program& program : programs_)
    if (program.use == Use::steps && !alone.contains(key_of(program.kernel)))
      program.use = Use::merged_steps;
  programs_.push_back({plan_.persistent_kernel, nullptr});
}

void Programs::build_others(const Target& target) {
  build(Use::steps, target);
  if (!plan_.persistent_kernel) build(Use::merged_steps, target);
  check_group_sizes(target);
}

void Programs::build(Use use, const Target& target) {
  const Stopwatch clock;
  const auto is_built = [&](const Program& program) {
    return program.use != Use::merged_steps || !plan_.why_no_persistent_kernel.empty();
  };
  for (const Program& program : programs_) {
    if (program.use != use) continue;
    if (target.options.on_program)
      target.options.on_program(built_, std::ranges::count_if(programs_, is_built));
    try {
      target.build(program.kernel);
    } catch (const Error& error) {
      const std::string message = error.what(), line = message.substr(0, message.find('\n'));
      if (!program.node) {
        give_up_persistent_kernel(line);
      } else {
        const Error placed(fmt::format("{}: {}", program.node->describe(), message), error.code());
        const bool may_pass = error.code() == ErrorCode::out_of_memory;
        if (may_pass || !refuse(program.kernel, "the driver refuses its kernel: " + line, placed))
          throw placed;
      }
    }
    ++built_;
  }
  plan_.program_ms += clock.milliseconds();
}

bool Programs::refuse(opencl::Kernel kernel, const std::string& reason, const Error& error) {
  opencl::Context& context = *plan_.context;
  if (context.info().is_cpu()) return false;
  const auto is_same = [&](const opencl::Kernel& other) {
    return other && key_of(other) == key_of(kernel);
  };
  for (const Step& step : plan_.steps) {
    if (!is_same(step.kernel)) continue;
    context.queue().finish();  // prepacking reads tensors that go with this attempt
    throw VariantUnsupported(step, reason, error);
  }
  std::size_t dropped = 0;
  for (Step& step : plan_.steps)
    dropped += std::erase_if(step.alternatives,
                             [&](const Alternative& other) { return is_same(other.kernel); });
  return dropped > 0;
}

void Programs::check_group_sizes(const Target& target) {
  if (target.context.info().is_cpu()) return;
  const auto check = [&](const StepKernel& launch) {
    const std::string reason = target.why_not_in_groups(launch.kernel, launch.local);
    if (reason.empty()) return true;
    refuse(launch.kernel, reason, Error(reason, ErrorCode::device));
    return false;
  };
  for (Step& step : plan_.steps) {
    if (step.call) continue;
    for (std::size_t a = 0; a < step.alternatives.size();) a += check(step.alternatives[a]);
    check(step);
  }
}

void Programs::give_up_persistent_kernel(const std::string& reason) {
  plan_.persistent_kernel = {};
  plan_.why_no_persistent_kernel = reason;
  for (Step& step : plan_.steps)
    for_each_kernel(step, [](StepKernel& launch) { launch.persistent_index = -1; });
}

}  // namespace bertcl::plan
