// SPDX-License-Identifier: Apache-2.0
// Device time of each kernel of a plan, with its arithmetic and its traffic.
#include "tools/measure/kernel_profile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "opencl/queue.hpp"
#include "ops/symbols.hpp"
#include "plan/report.hpp"
#include "tools/terminal/output.hpp"

namespace bertcl::tools {
std::vector<StepTime> profile_steps(runtime::Session& session, const runtime::Tensors& inputs,
                                    std::int64_t batch, std::int64_t seq, int runs) {
  opencl::Queue& queue = session.context().queue();
  queue.enable_profiling(true);
  session.run(inputs);
  queue.clear_profile();
  for (int i = 0; i < runs; ++i) session.run(inputs);
  const std::vector<opencl::ProfileEntry> profile = queue.profile();
  queue.enable_profiling(false);

  const plan::Plan& plan = session.plan();
  ir::Bindings sizes = plan::sizes_of_batch(plan, batch, seq);
  sizes[ops::symbols::tokens] = session.statistics().tokens;
  // Launches bear the name of their step; an op may have several with different kernels.
  std::map<std::pair<std::string, std::string>, std::vector<const plan::Step*>> steps;
  for (const plan::Step& step : plan.steps)
    steps[{step.name, plan::launched_by(plan, step, sizes).kernel}].push_back(&step);

  std::vector<StepTime> times;
  for (const opencl::ProfileEntry& entry : profile) {
    const auto found = steps.find({entry.label, entry.kernel});
    StepTime& time = times.emplace_back();
    time.calls = static_cast<double>(entry.calls) / runs;
    time.ms = static_cast<double>(entry.ns) / 1e6 / runs;
    time.name = entry.kernel;
    if (found == steps.end()) continue;
    time.step = found->second.front();
    const plan::Launched launched = plan::launched_by(plan, *time.step, sizes);
    time.name = launched.program;
    time.op = time.step->op;
    time.type = time.step->type;
    time.variant = launched.variant;
    for (const plan::Step* step : found->second) {
      const plan::StepCost cost = plan::cost_of(plan, *step, sizes);
      const double calls = time.calls / static_cast<double>(found->second.size());
      time.operations += calls * cost.operations;
      time.bytes += calls * (cost.weight_bytes + cost.activation_bytes);
      time.constant_bytes += calls * cost.weight_bytes;
    }
  }
  return times;
}

std::vector<KernelTime> profile_kernels(runtime::Session& session, const runtime::Tensors& inputs,
                                        std::int64_t batch, std::int64_t seq, int runs) {
  return sum_kernels(profile_steps(session, inputs, batch, seq, runs));
}

std::vector<KernelTime> sum_kernels(const std::vector<StepTime>& steps) {
  std::map<std::tuple<std::string, std::string, std::string, std::string>, KernelTime> sums;
  for (const StepTime& time : steps) {
    const auto [place, is_new] =
        sums.emplace(std::tuple(time.name, time.op, time.type.str(), time.variant), time);
    if (is_new) continue;
    KernelTime& sum = place->second;
    sum.calls += time.calls;
    sum.ms += time.ms;
    sum.operations += time.operations;
    sum.bytes += time.bytes;
  }
  std::vector<KernelTime> kernels;
  for (auto& [key, sum] : sums) kernels.push_back(std::move(sum));
  std::ranges::sort(kernels, [](const KernelTime& a, const KernelTime& b) { return a.ms > b.ms; });
  return kernels;
}

std::string kernel_table(const std::vector<KernelTime>& kernels) {
  double all = 0.0, calls = 0.0;
  for (const KernelTime& kernel : kernels) {
    all += kernel.ms;
    calls += kernel.calls;
  }
  const auto figure = [](double value) {
    return value > 0.0 ? fmt::format("{:.1f}", value) : std::string();
  };
  Table table({"kernel", "op", "type", "variant", ">calls", ">ms", ">share", ">GOP/s", ">GB/s"});
  for (const KernelTime& kernel : kernels) {
    table.add({kernel.name, kernel.op, kernel.type.str(), kernel.variant,
               fmt::format("{:g}", kernel.calls), fmt::format("{:.3f}", kernel.ms),
               fmt::format("{:.1f} %", all > 0.0 ? 100.0 * kernel.ms / all : 0.0),
               figure(kernel.gops()), figure(kernel.gbps())});
  }
  table.add(
      {"all", "", "", "", fmt::format("{:g}", calls), fmt::format("{:.3f}", all), "", "", ""});
  return table.str();
}

}  // namespace bertcl::tools
