// SPDX-License-Identifier: Apache-2.0
// Collects the kernels of a plan that the persistent kernel can run.
#include "plan/persistent_kernel.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "opencl/device/capabilities.hpp"
#include "opencl/launch/persistent_kernel.hpp"
#include "opencl/program/sources.hpp"
#include "plan/builder.hpp"

namespace bertcl::plan {
namespace {

// Fewer launches than these cost less time than a program of their kernels takes to build.
constexpr int kFewestSteps = 16;

/// In an order of their own, so that plans with the same kernels have the same program.
using Key = std::tuple<std::string, std::string, opencl::Defines>;

Key key_of(const opencl::Kernel& kernel) {
  return {kernel.program_name(), kernel.name(), kernel.defines()};
}

constexpr std::array<std::size_t, 3> kOneItem{1, 1, 1};

bool is_mergeable(const opencl::Kernel& kernel) {
  return std::ranges::any_of(
      opencl::mergeable_kernels(), [&](const opencl::MergeableKernel& entry) {
        return entry.program == kernel.program_name() && entry.kernel == kernel.name();
      });
}

bool fits(const Step& step) {
  return !step.call && opencl::kStepHeader + step.arguments.size() <= opencl::kStepWords;
}

}  // namespace

void add_persistent_kernel(Builder& b) {
  if (!b.options().merge_launches || b.is_disabled("persistent")) return;
  const opencl::Capabilities& device = b.context().capabilities();
  if (!device.in_process_cpu) return;
  if (!device.persistent_kernel) {
    b.plan().why_no_persistent_kernel = device.notes.at("persistent_kernel");
    return;
  }
  std::set<Key> seen;
  std::map<Key, opencl::Kernel> offered;
  const auto collect = [&](const StepKernel& launch) {
    const opencl::Kernel& kernel = launch.kernel;
    if (launch.local == kOneItem && seen.insert(key_of(kernel)).second && is_mergeable(kernel))
      offered.emplace(key_of(kernel), kernel);
  };
  for (const Step& step : b.plan().steps)
    if (fits(step)) for_each_kernel(step, collect);
  for (const opencl::MergeableKernel& entry : opencl::mergeable_kernels()) {
    if (!entry.always) continue;
    const opencl::Kernel kernel = b.context().unbuilt_kernel(entry.program, entry.kernel);
    offered.emplace(key_of(kernel), kernel);
  }
  const auto number = [&](StepKernel& launch) {
    const auto found = offered.find(key_of(launch.kernel));
    if (found != offered.end() && launch.local == kOneItem)
      launch.persistent_index = static_cast<int>(std::distance(offered.begin(), found));
  };
  int merged = 0;
  for (Step& step : b.plan().steps) {
    if (!fits(step)) continue;
    for_each_kernel(step, number);
    merged += step.persistent_index >= 0;
  }
  if (merged < kFewestSteps) return;
  std::vector<opencl::Kernel> kernels;
  for (const auto& [key, kernel] : offered) kernels.push_back(kernel);
  b.merge(kernels);
}

int merged_steps(const Plan& plan) {
  if (!plan.persistent_kernel) return 0;
  return static_cast<int>(
      std::ranges::count_if(plan.steps, [](const Step& s) { return s.persistent_index >= 0; }));
}

}  // namespace bertcl::plan
