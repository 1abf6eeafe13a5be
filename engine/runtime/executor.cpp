// SPDX-License-Identifier: Apache-2.0
// Runs a plan: places its slots for the shapes of a batch, binds arguments, enqueues the steps.
#include "runtime/executor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "bertcl/error.hpp"
#include "opencl/queue.hpp"
#include "plan/memory.hpp"

namespace bertcl::runtime {
namespace {

std::int32_t as_int(std::int64_t v, const plan::Step& step) {
  if (v > std::numeric_limits<std::int32_t>::max())
    throw Error(
        fmt::format("{} '{}': a size of {} is beyond what a kernel takes (2^31 - 1); use a "
                    "smaller batch",
                    step.op, step.name, v));
  return static_cast<std::int32_t>(v);
}

}  // namespace

Executor::Executor(plan::Plan& plan, bool record) : plan_(plan), record_(record) {
  find_lifetimes();
  if (!record) return;
  for (const plan::Step& step : plan.steps)
    if (step.call)
      throw Error(fmt::format(
          "{} '{}' is computed by {}, whose launches cannot be recorded; use --gemm own, "
          "or run without --command-buffer",
          step.op, step.name, step.implementation));
  const opencl::CommandBuffer available(*plan.context);  // throws where there are none
}

void Executor::find_lifetimes() {
  const int steps = static_cast<int>(plan_.steps.size());
  lifetimes_.assign(plan_.slots.size(), {steps, -1});
  const auto touch = [&](int slot, int step) {
    auto& [first, last] = lifetimes_[static_cast<std::size_t>(root(slot))];
    first = std::min(first, step);
    last = std::max(last, step);
  };
  for (const plan::Input& in : plan_.inputs) touch(in.slot, -1);
  for (int s = 0; s < steps; ++s)
    for (const plan::Argument& a : plan_.steps[static_cast<std::size_t>(s)].arguments) {
      if (const auto* r = std::get_if<plan::Reads>(&a)) touch(r->slot, s);
      if (const auto* w = std::get_if<plan::Writes>(&a)) touch(w->slot, s);
    }
  for (const plan::Tap& tap : plan_.taps) touch(tap.slot, tap.after);
  for (const plan::Output& out : plan_.outputs)
    if (out.slot >= 0) touch(out.slot, steps);
}

ir::Sizes Executor::shape(int slot) const {
  return ir::evaluate(plan_.slots[static_cast<std::size_t>(slot)].type.shape, sizes_);
}

void Executor::bind(const ir::Bindings& sizes) {
  if (bound_ && sizes == sizes_) return;
  bound_ = false;
  recorded_.reset();
  sizes_ = sizes;
  place_slots();
  fill_tables();
  bind_arguments();
  bound_ = true;
}

void Executor::place_slots() {
  std::vector<plan::Lifetime> lifetimes(plan_.slots.size());
  for (std::size_t i = 0; i < plan_.slots.size(); ++i) {
    const plan::Slot& slot = plan_.slots[i];
    if (slot.root != static_cast<int>(i) || lifetimes_[i].second < lifetimes_[i].first) continue;
    const std::int64_t bytes = element_count(slot.type.shape).evaluate(sizes_) *
                               static_cast<std::int64_t>(ir::size_of(slot.type.dtype));
    lifetimes[i] = {bytes, lifetimes_[i].first, lifetimes_[i].second};
  }
  const std::int64_t alignment = std::max(64u, plan_.context->info().base_align_bytes);
  const plan::Placement placement = plan::place(lifetimes, alignment);
  arena_bytes_ = placement.arena_bytes;
  buffers_.clear();
  if (static_cast<std::int64_t>(arena_.size()) < arena_bytes_) {
    arena_ = {};
    arena_ = plan_.context->allocate(static_cast<std::size_t>(arena_bytes_));
  }
  for (std::size_t i = 0; i < plan_.slots.size(); ++i)
    buffers_.push_back(lifetimes[i].bytes == 0
                           ? opencl::Buffer()
                           : arena_.view(static_cast<std::size_t>(placement.offsets[i]),
                                         static_cast<std::size_t>(lifetimes[i].bytes)));
}

void Executor::fill_tables() {
  const std::size_t align = std::max(4u, plan_.context->info().base_align_bytes);
  std::vector<std::int32_t> host;
  std::vector<std::pair<std::size_t, std::size_t>> ranges;
  for (const plan::Step& step : plan_.steps)
    for (const plan::Argument& a : step.arguments)
      if (const auto* table = std::get_if<plan::Table>(&a)) {
        host.resize((host.size() * 4 + align - 1) / align * align / 4);
        ranges.emplace_back(host.size() * 4, std::max<std::size_t>(1, table->values.size()) * 4);
        for (const plan::Size& s : table->values) host.push_back(as_int(s.evaluate(sizes_), step));
        if (table->values.empty()) host.push_back(0);
      }
  table_views_.clear();
  if (host.empty()) return;
  if (tables_.size() < host.size() * 4) tables_ = plan_.context->allocate(host.size() * 4);
  tables_.upload(host);
  for (const auto& [offset, bytes] : ranges) table_views_.push_back(tables_.view(offset, bytes));
}

void Executor::bind_arguments() {
  std::size_t next_table = 0;
  globals_.clear();
  locals_.clear();
  kernels_.clear();
  calls_.clear();
  for (plan::Step& step : plan_.steps) {
    if (step.call) {
      bind_call(step);
      continue;
    }
    const auto evaluate = [&](const std::array<plan::Size, 3>& sizes) {
      std::array<std::size_t, 3> global{};
      for (std::size_t d = 0; d < 3; ++d)
        global[d] = static_cast<std::size_t>(sizes[d].evaluate(sizes_));
      return global;
    };
    const bool small = plan::takes_small_tiles(step, sizes_, plan_.context->info().compute_units);
    std::array<std::size_t, 3> global = evaluate(small ? step.small_tiles->global : step.global);
    const opencl::Kernel* built = small ? &step.small_tiles->kernel : &step.kernel;
    std::array<std::size_t, 3> local = step.local;
    if (const plan::BuildForRows* build = plan::build_for_rows(step, sizes_)) {
      global = evaluate(build->global);
      built = &build->kernel;
      local = build->local;
    }
    opencl::Kernel kernel = *built;
    const bool has_constants = with_constants_.contains(built);
    kernels_.push_back(kernel);
    locals_.push_back(local);
    for (unsigned i = 0; i < step.arguments.size(); ++i) {
      const plan::Argument& a = step.arguments[i];
      if (const auto* r = std::get_if<plan::Reads>(&a))
        kernel.set(i, buffer(r->slot));
      else if (const auto* w = std::get_if<plan::Writes>(&a))
        kernel.set(i, buffer(w->slot));
      else if (std::holds_alternative<plan::Table>(a))
        kernel.set(i, table_views_[next_table++]);
      else if (const auto* s = std::get_if<plan::Size>(&a))
        kernel.set(i, as_int(s->evaluate(sizes_), step));
      else if (has_constants)
        continue;
      else if (const auto* c = std::get_if<plan::Constant>(&a))
        kernel.set(i, plan_.constants[static_cast<std::size_t>(c->index)]);
      else if (const auto* n = std::get_if<std::int32_t>(&a))
        kernel.set(i, *n);
      else if (const auto* f = std::get_if<float>(&a))
        kernel.set(i, *f);
      else
        kernel.set(i, nullptr);
    }
    with_constants_.insert(built);
    globals_.push_back(global);
  }
}

void Executor::bind_call(plan::Step& step) {
  std::vector<opencl::Buffer*> buffers;
  for (const plan::Argument& a : step.arguments) {
    if (const auto* r = std::get_if<plan::Reads>(&a)) buffers.push_back(&buffer(r->slot));
    if (const auto* w = std::get_if<plan::Writes>(&a)) buffers.push_back(&buffer(w->slot));
    if (const auto* c = std::get_if<plan::Constant>(&a))
      buffers.push_back(&plan_.constants[static_cast<std::size_t>(c->index)]);
  }
  calls_[&step] = std::move(buffers);
  globals_.push_back({});
  locals_.push_back({});
  kernels_.emplace_back();
}

void Executor::enqueue_recorded() {
  if (!recorded_ || !recorded_->is_for(*plan_.context)) {
    recorded_ = std::make_unique<opencl::CommandBuffer>(*plan_.context);
    for (std::size_t s = 0; s < plan_.steps.size(); ++s)
      recorded_->add(kernels_[s], globals_[s], locals_[s], plan_.steps[s].name);
    recorded_->finalize();
  }
  recorded_->enqueue();
}

void Executor::enqueue(const Tap& tap) {
  opencl::Queue& queue = plan_.context->queue();
  if (record_ && !tap && !queue.profiling()) return enqueue_recorded();
  const auto run_taps = [&](int after) {
    if (!tap) return;
    for (const plan::Tap& t : plan_.taps)
      if (t.after == after)
        tap(t.name, buffer(t.slot), plan_.slots[static_cast<std::size_t>(t.slot)].type.dtype,
            shape(t.slot));
  };
  run_taps(-1);
  for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
    const plan::Step& step = plan_.steps[s];
    // CPU kernels take one work-item a group; GPU families bring their own local size with them.
    if (step.call)
      step.call(calls_.at(&step), sizes_);
    else
      queue.launch(kernels_[s], globals_[s], locals_[s], step.name);
    if (!plan_.taps.empty()) run_taps(static_cast<int>(s));
  }
}

}  // namespace bertcl::runtime
