// SPDX-License-Identifier: Apache-2.0
// Steps of the persistent kernel as words in device memory.
#include "runtime/persistent_kernel.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "opencl/launch/persistent_kernel.hpp"
#include "opencl/queue.hpp"

namespace bertcl::runtime {
namespace {

// Arithmetic of a launch: some milliseconds on two cores. A work-group that left, because its core
// had other work, is back at the next launch, whose cost is nothing compared with this.
constexpr double kMaxOperations = 4e9;
constexpr std::size_t kMaxItems = std::numeric_limits<std::int32_t>::max();

std::size_t items_of(const Launch& launch) {
  const auto& size = launch.grid.global;
  return size[0] * size[1] * size[2];
}

}  // namespace

PersistentKernel::PersistentKernel(const plan::Plan& plan, const opencl::Buffer& index_error)
    : plan_(plan),
      constants_(plan.constant_addresses),
      state_(plan.context->allocate(opencl::kPersistentStateBytes)),
      steps_(
          plan.context->allocate(plan.steps.size() * opencl::kStepWords * sizeof(std::uint64_t))) {
  if (plan.error_constant >= 0)
    constants_[static_cast<std::size_t>(plan.error_constant)] =
        opencl::addresses_of(*plan.context, std::array{&index_error})[0];
}

void PersistentKernel::find_segments(std::span<const Launch> launches, const ir::Bindings& sizes) {
  segments_.clear();
  double operations = 0;  // of the last segment, as its items
  std::size_t items = 0;
  for (std::size_t s = 0; s < launches.size(); ++s) {
    const Launch& launch = launches[s];
    const std::size_t of_launch = items_of(launch);
    if (launch.persistent_index < 0 || of_launch > kMaxItems) continue;
    const plan::Step& step = plan_.steps[s];
    const double of_step =
        step.operations_per_unit == 0
            ? 0
            : step.operations_per_unit * static_cast<double>(step.work_units.evaluate(sizes));
    const bool goes_on = !segments_.empty() &&
                         segments_.back().first + segments_.back().steps == s &&
                         operations + of_step <= kMaxOperations && items + of_launch <= kMaxItems;
    if (!goes_on) {
      segments_.push_back({s, 0, 0, 1});
      operations = 0;
      items = 0;
    }
    Segment& segment = segments_.back();
    ++segment.steps;
    segment.groups = std::max(segment.groups, of_launch);
    operations += of_step;
    items += of_launch;
  }
  const std::size_t units = std::max<std::size_t>(1, plan_.context->info().compute_units);
  for (Segment& segment : segments_) segment.groups = std::min(segment.groups, units);
}

void PersistentKernel::bind(std::span<const Launch> launches, const ValueMemory& memory,
                            const SizeTables& tables, const ir::Bindings& sizes) {
  find_segments(launches, sizes);
  std::size_t table = 0;  // the next of the step's
  const auto word_of = [&](const plan::Step& step, const plan::Argument& a) -> std::uint64_t {
    if (const auto* r = std::get_if<plan::Reads>(&a)) return memory.address(r->slot);
    if (const auto* w = std::get_if<plan::Writes>(&a)) return memory.address(w->slot);
    if (const auto* c = std::get_if<plan::Constant>(&a)) return constants_[c->index];
    if (std::holds_alternative<plan::SizeTable>(a)) return tables.address(table++);
    if (const auto* size = std::get_if<plan::SizeExpr>(&a))
      return static_cast<std::uint32_t>(as_int(size->evaluate(sizes), step));
    if (const auto* n = std::get_if<std::int32_t>(&a)) return static_cast<std::uint32_t>(*n);
    if (const auto* f = std::get_if<float>(&a)) return std::bit_cast<std::uint32_t>(*f);
    return 0;
  };
  words_.clear();
  for (Segment& segment : segments_) {
    segment.first_in_words = words_.size() / opencl::kStepWords;
    std::uint64_t items = 0;  // of the steps before
    for (std::size_t s = segment.first; s < segment.first + segment.steps; ++s) {
      const Launch& launch = launches[s];
      opencl::PersistentStep step{
          static_cast<std::uint64_t>(launch.persistent_index), items, launch.grid.global, {}};
      table = launch.first_table;
      for (const plan::Argument& a : plan_.steps[s].arguments)
        step.arguments.push_back(word_of(plan_.steps[s], a));
      opencl::append_step(words_, step);
      items += items_of(launch);
    }
  }
  steps_.write_async(std::as_bytes(std::span(words_)));
  state_.fill(0);  // as launches leave it, but one that failed
}

std::size_t PersistentKernel::enqueue(std::size_t first, const opencl::Buffer& arena) {
  const auto segment =
      std::ranges::find_if(segments_, [&](const Segment& l) { return l.first == first; });
  if (segment == segments_.end()) return 0;
  opencl::Kernel kernel = plan_.persistent_kernel;
  kernel.args(steps_, state_, arena, static_cast<std::int32_t>(segment->first_in_words),
              static_cast<std::int32_t>(segment->steps));
  try {
    plan_.context->queue().launch(kernel, {segment->groups, 1, 1}, {1, 1, 1}, "persistent");
  } catch (...) {
    kernel.set(2, nullptr);
    throw;
  }
  kernel.set(2, nullptr);  // which would keep the arena of a request that is gone
  return segment->steps;
}

}  // namespace bertcl::runtime
