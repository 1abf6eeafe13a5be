// SPDX-License-Identifier: Apache-2.0
// Which steps of a plan run, in which variant and in which arithmetic.
#include "plan/plan.hpp"

#include <algorithm>
#include <iterator>
#include <limits>

namespace bertcl::plan {
namespace {

bool leaves_units_idle(const StepKernel& launch, const ir::Bindings& sizes,
                       const opencl::DeviceInfo& device) {
  std::size_t groups = 1, items = 1;
  for (std::size_t d = 0; d < 3; ++d) {
    groups *= static_cast<std::size_t>(launch.global[d].evaluate(sizes)) / launch.local[d];
    items *= launch.local[d];
  }
  return groups * device.units_of_group(items) < device.compute_units;
}

}  // namespace

bool runs(const Step& step, const ir::Bindings& sizes) {
  if (step.above_rows < 0 && step.up_to_rows == std::numeric_limits<std::int64_t>::max())
    return true;
  const std::int64_t rows = step.work_units.evaluate(sizes);
  return rows > step.above_rows && rows <= step.up_to_rows;
}

const StepKernel& chosen_kernel(const Step& step, const ir::Bindings& sizes,
                                const opencl::DeviceInfo& device) {
  const auto end = step.alternatives.end();
  const auto fits = [&](auto other) {
    if (other->up_to_rows > 0) return step.work_units.evaluate(sizes) <= other->up_to_rows;
    const auto next = std::next(other);
    const StepKernel& larger = next == end ? static_cast<const StepKernel&>(step) : *next;
    return leaves_units_idle(larger, sizes, device);
  };
  for (auto other = step.alternatives.begin(); other != end; ++other)
    if (fits(other)) return *other;
  return step;
}

bool computes_in(const Plan& plan, Arithmetic::Kind kind) {
  return std::ranges::any_of(plan.steps, [kind](const Step& step) {
    return step.type.kind() == kind && step.operations_per_unit > 0;
  });
}

bool Plan::depends_on_batch() const {
  return std::ranges::any_of(steps,
                             [](const Step& step) { return step.op == "DynamicQuantizeLinear"; });
}

std::vector<std::string> why_not_int8(const Plan& plan) {
  if (!plan.notes.empty() || computes_in(plan, Arithmetic::Kind::int8)) return plan.notes;
  return {
      "the model has no quantized MatMul: it is a float model (quantize it with `bertcl "
      "quantize`)"};
}

}  // namespace bertcl::plan
