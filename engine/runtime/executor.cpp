// SPDX-License-Identifier: Apache-2.0
// Runs a plan, which several executors may share, one run at a time: places its slots for the
// shapes of a batch, binds arguments, enqueues the steps.
#include "runtime/executor.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "bertcl/error.hpp"
#include "ir/checked.hpp"
#include "opencl/capabilities.hpp"
#include "opencl/exit_guard.hpp"
#include "opencl/queue.hpp"
#include "plan/memory.hpp"

namespace bertcl::runtime {

Executor::Executor(plan::Plan& plan, bool record, std::int64_t max_memory,
                   std::atomic<std::int64_t>& arenas)
    : plan_(plan),
      record_(record),
      most_bytes_(max_memory > 0
                      ? max_memory
                      : static_cast<std::int64_t>(plan.context->info().global_mem_bytes)),
      arenas_(arenas),
      // Steps of the persistent kernel find their values by address, in the arena.
      has_arena_(plan.context->capabilities().overlapping_views || plan.persistent_kernel) {
  find_lifetimes();
  if (plan.error_constant >= 0) {
    index_error_ = plan.context->allocate(sizeof(std::int32_t));
    index_error_.fill(0);
  }
  if (plan.persistent_kernel)
    persistent_kernel_ = std::make_unique<PersistentKernel>(plan, index_error_);
  if (!record) return;
  for (const plan::Step& step : plan.steps)
    if (step.call)
      throw Error(fmt::format(
          "{} '{}' is computed by {}, whose launches cannot be recorded; use --gemm own, "
          "or run without --command-buffer",
          step.op, step.name, step.variant));
  const opencl::CommandBuffer available(*plan.context);  // throws where there are none
}

Executor::~Executor() {
  arenas_ -= allocated_bytes();
  // What is queued reads the staged inputs, tables and steps, and finds the memory of merged steps
  // by its address: the queue keeps none of them.
  if (opencl::process_is_ending()) return;
  try {
    plan_.context->queue().finish();
  } catch (const Error&) {  // of work that nobody waited for
  }
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
  for (const plan::Output& out : plan_.outputs) {
    if (out.slot >= 0) touch(out.slot, steps);
    if (out.packed_slot >= 0) touch(out.packed_slot, steps);
  }
}

ir::Sizes Executor::shape(int slot) const {
  return ir::evaluate(plan_.slots[static_cast<std::size_t>(slot)].type.shape, sizes_);
}

void Executor::bind(const ir::Bindings& sizes) {
  // An earlier run may still read what is staged, and memory that it finds by address.
  if (!settled_) plan_.context->queue().finish();
  settled_ = true;
  if (bound_ && sizes == sizes_) return;
  bound_ = arguments_bound_ = false;
  buffers_.clear();
  buffers_.resize(plan_.slots.size());
  if (persistent_kernel_) persistent_kernel_->unbind();
  recorded_.reset();
  sizes_ = sizes;
  place_slots();
  fill_tables();
  choose_launches();
  bound_ = true;
}

std::int64_t Executor::bytes_of(std::size_t slot, const ir::Bindings& sizes) const {
  const ir::Type& type = plan_.slots[slot].type;
  return ir::product(element_count(type.shape).evaluate(sizes),
                     static_cast<std::int64_t>(ir::size_of(type.dtype)), "a value");
}

void Executor::check_memory(const std::vector<plan::Lifetime>& values, std::int64_t arena_bytes,
                            std::int64_t others) const {
  std::int64_t constants = 0;
  for (const opencl::Buffer& buffer : plan_.constants)
    constants += static_cast<std::int64_t>(buffer.size());
  const auto largest = std::ranges::max_element(values, {}, &plan::Lifetime::bytes);
  if (largest == values.end() ||
      std::max(arena_bytes, largest->bytes) <= most_bytes_ - constants - others)
    return;
  const plan::Slot& slot = plan_.slots[static_cast<std::size_t>(largest - values.begin())];
  throw Error(fmt::format("{} bytes of weights and {} of values exceed the limit of {}; the "
                          "largest value is '{}' {} with {} bytes; use a smaller batch or raise "
                          "--max-memory, up to what the device has",
                          constants, std::max(arena_bytes, largest->bytes) + others, most_bytes_,
                          slot.name, ir::str(slot.type), largest->bytes),
              ErrorCode::out_of_memory);
}

Executor::Places Executor::places_of(const ir::Bindings& sizes, std::int64_t others) const {
  std::vector<plan::Lifetime> values(plan_.slots.size());
  for (std::size_t i = 0; i < plan_.slots.size(); ++i)
    if (plan_.slots[i].root == static_cast<int>(i) && lifetimes_[i].second >= lifetimes_[i].first)
      values[i] = {bytes_of(i, sizes), lifetimes_[i].first, lifetimes_[i].second};
  check_memory(values, 0, others);  // one by one, so that their sum has 64 bits
  std::vector<plan::Lifetime> computed = values;
  for (const plan::Input& in : plan_.inputs) computed[static_cast<std::size_t>(in.slot)].bytes = 0;
  const std::int64_t alignment = std::max(64u, plan_.context->info().base_align_bytes);
  const auto aligned = [&](std::int64_t n) { return (n + alignment - 1) / alignment * alignment; };
  const plan::Placement placement = plan::place(computed, alignment);
  Places places{.offsets = placement.offsets, .inputs_begin = aligned(placement.arena_bytes)};
  places.arena_bytes = places.inputs_begin;
  for (const plan::Input& in : plan_.inputs) {
    const auto slot = static_cast<std::size_t>(in.slot);
    places.offsets[slot] = places.arena_bytes;
    places.arena_bytes += aligned(bytes_of(slot, sizes));
  }
  places.inputs_end = places.arena_bytes;
  if (!has_arena_) {
    places.shared = plan::share_buffers(values);
    places.arena_bytes = 0;
    for (const std::int64_t bytes : places.shared.bytes) places.arena_bytes += aligned(bytes);
  }
  check_memory(values, places.arena_bytes, others);
  return places;
}

void Executor::place_slots() {
  const std::int64_t before = allocated_bytes();
  Places places = places_of(sizes_, arenas_ - before);
  memory_.slot_offsets = std::move(places.offsets);
  memory_.arena_bytes = places.arena_bytes;
  inputs_begin_ = places.inputs_begin;
  staging_.resize(static_cast<std::size_t>(places.inputs_end - places.inputs_begin));
  if (!has_arena_) {
    value_of_ = std::move(places.shared.of);
    return allocate_values(places.shared.bytes);
  }
  if (before < memory_.arena_bytes) {
    memory_.arena = {};
    arenas_ -= before;
    memory_.arena = plan_.context->allocate(static_cast<std::size_t>(memory_.arena_bytes));
    arenas_ += memory_.arena_bytes;
    ++memory_.allocations;
  }
}

std::int64_t Executor::allocated_bytes() const {
  std::size_t bytes = memory_.arena.size();
  for (const opencl::Buffer& buffer : memory_.values) bytes += buffer.size();
  return static_cast<std::int64_t>(bytes);
}

void Executor::allocate_values(const std::vector<std::int64_t>& bytes) {
  memory_.values.resize(std::max(memory_.values.size(), bytes.size()));
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    opencl::Buffer& buffer = memory_.values[i];
    if (static_cast<std::int64_t>(buffer.size()) >= bytes[i]) continue;
    arenas_ -= static_cast<std::int64_t>(buffer.size());
    buffer = {};
    buffer = plan_.context->allocate(static_cast<std::size_t>(bytes[i]));
    arenas_ += bytes[i];
    ++memory_.allocations;
  }
}

opencl::Buffer& Executor::buffer(int slot) {
  const auto r = static_cast<std::size_t>(root(slot));
  opencl::Buffer& view = buffers_[r];
  if (!view && lifetimes_[r].second >= lifetimes_[r].first)
    if (const std::int64_t bytes = bytes_of(r); bytes > 0)
      view = has_arena_ ? memory_.arena.view(static_cast<std::size_t>(memory_.slot_offsets[r]),
                                             static_cast<std::size_t>(bytes))
                        : memory_.values[value_of_[r]].front(static_cast<std::size_t>(bytes));
  return view;
}

std::span<std::byte> Executor::staging(int slot) {
  const auto i = static_cast<std::size_t>(slot);
  return std::span(staging_).subspan(
      static_cast<std::size_t>(memory_.slot_offsets[i] - inputs_begin_),
      static_cast<std::size_t>(bytes_of(i)));
}

void Executor::upload() {
  settled_ = false;
  if (has_arena_)
    memory_.arena.write_async(staging_, static_cast<std::size_t>(inputs_begin_));
  else
    for (const plan::Input& in : plan_.inputs) buffer(in.slot).write_async(staging(in.slot));
}

void Executor::wait() {
  opencl::Queue& queue = plan_.context->queue();
  queue.wait(queue.mark());
  settled_ = true;
}

void Executor::fill_tables() {
  const std::size_t align = std::max(4u, plan_.context->info().base_align_bytes);
  std::vector<std::int32_t>& host = tables_;
  host.clear();
  std::vector<std::pair<std::size_t, std::size_t>> ranges;
  for (const plan::Step& step : plan_.steps)
    for (const plan::Argument& a : step.arguments)
      if (const auto* table = std::get_if<plan::Table>(&a)) {
        host.resize((host.size() * 4 + align - 1) / align * align / 4);
        ranges.emplace_back(host.size() * 4, std::max<std::size_t>(1, table->values.size()) * 4);
        for (const plan::Size& s : table->values) host.push_back(as_int(s.evaluate(sizes_), step));
        if (table->values.empty()) host.push_back(0);
      }
  memory_.table_offsets.clear();
  if (!has_arena_) return fill_tables(ranges);
  table_views_.clear();
  if (host.empty()) return;
  opencl::Buffer& tables = memory_.tables;
  if (tables.size() < host.size() * 4) {
    tables = plan_.context->allocate(host.size() * 4);
    ++memory_.allocations;
  }
  settled_ = false;
  tables.write_async(std::as_bytes(std::span(host)));
  for (const auto& [offset, bytes] : ranges) {
    table_views_.push_back(tables.view(offset, bytes));
    memory_.table_offsets.push_back(offset);
  }
}

void Executor::fill_tables(const std::vector<std::pair<std::size_t, std::size_t>>& ranges) {
  table_views_.resize(ranges.size());
  settled_ = ranges.empty() && settled_;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const auto [offset, bytes] = ranges[i];
    opencl::Buffer& table = table_views_[i];
    if (table.size() < bytes) table = plan_.context->allocate(bytes);
    table.write_async(std::as_bytes(std::span(tables_)).subspan(offset, bytes));
  }
}

opencl::Kernel& Executor::own(const opencl::Kernel& kernel) {
  opencl::Kernel& mine = kernels_[&kernel];
  if (!mine) mine = kernel.duplicate();
  return mine;
}

opencl::Buffer& Executor::constant(int index) {
  return index == plan_.error_constant ? index_error_
                                       : plan_.constants[static_cast<std::size_t>(index)];
}

void Executor::choose_launches() {
  launches_.clear();
  std::size_t tables = 0;
  for (const plan::Step& step : plan_.steps) {
    Launch& launch = launches_.emplace_back();
    launch.first_table = tables;
    for (const plan::Argument& a : step.arguments) tables += std::holds_alternative<plan::Table>(a);
    if (step.call) continue;
    const auto take = [&](const opencl::Kernel& kernel, int persistent_index,
                          const std::array<plan::Size, 3>& global,
                          const std::array<std::size_t, 3>& local) {
      launch.kernel = &own(kernel);
      launch.persistent_index = persistent_index;
      for (std::size_t d = 0; d < 3 && plan::runs(step, sizes_); ++d)
        launch.grid.global[d] = static_cast<std::size_t>(global[d].evaluate(sizes_));
      launch.grid.local = local;
      plan_.context->queue().group_items(kernel, launch.grid);
    };
    if (const plan::Alternative* other =
            plan::alternative_for(step, sizes_, plan_.context->info().compute_units))
      take(other->kernel, other->persistent_index, other->global, other->local);
    else
      take(step.kernel, step.persistent_index, step.global, step.local);
  }
}

void Executor::bind_arguments() {
  calls_.clear();
  for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
    const plan::Step& step = plan_.steps[s];
    if (step.call) {
      bind_call(step);
      continue;
    }
    const opencl::Kernel* built = launches_[s].kernel;
    opencl::Kernel kernel = *built;
    std::size_t table = launches_[s].first_table;
    const bool has_constants = with_constants_.contains(built);
    for (unsigned i = 0; i < step.arguments.size(); ++i) {
      const plan::Argument& a = step.arguments[i];
      if (const auto* r = std::get_if<plan::Reads>(&a))
        kernel.set(i, buffer(r->slot));
      else if (const auto* w = std::get_if<plan::Writes>(&a))
        kernel.set(i, buffer(w->slot));
      else if (std::holds_alternative<plan::Table>(a))
        kernel.set(i, table_views_[table++]);
      else if (const auto* size = std::get_if<plan::Size>(&a))
        kernel.set(i, as_int(size->evaluate(sizes_), step));
      else if (has_constants)
        continue;
      else if (const auto* c = std::get_if<plan::Constant>(&a))
        kernel.set(i, constant(c->index));
      else if (const auto* n = std::get_if<std::int32_t>(&a))
        kernel.set(i, *n);
      else if (const auto* f = std::get_if<float>(&a))
        kernel.set(i, *f);
      else
        kernel.set(i, nullptr);
    }
    with_constants_.insert(built);
  }
  arguments_bound_ = true;
}

void Executor::bind_call(const plan::Step& step) {
  std::vector<opencl::Buffer*> buffers;
  for (const plan::Argument& a : step.arguments) {
    if (const auto* r = std::get_if<plan::Reads>(&a)) buffers.push_back(&buffer(r->slot));
    if (const auto* w = std::get_if<plan::Writes>(&a)) buffers.push_back(&buffer(w->slot));
    if (const auto* c = std::get_if<plan::Constant>(&a)) buffers.push_back(&constant(c->index));
  }
  calls_[&step] = std::move(buffers);
}

void Executor::enqueue_recorded() {
  if (!arguments_bound_) bind_arguments();
  if (!recorded_ || !recorded_->is_for(*plan_.context)) {
    auto recording = std::make_unique<opencl::CommandBuffer>(*plan_.context);
    for (std::size_t s = 0; s < plan_.steps.size(); ++s)
      recording->add(*launches_[s].kernel, launches_[s].grid.global, launches_[s].grid.local,
                     plan_.steps[s].name);
    recording->finalize();
    recorded_ = std::move(recording);
  }
  recorded_->enqueue();
}

void Executor::launch(std::size_t s) {
  if (!arguments_bound_) bind_arguments();
  const plan::Step& step = plan_.steps[s];
  const Launch& l = launches_[s];
  if (step.call)
    step.call(calls_.at(&step), sizes_);
  else
    plan_.context->queue().launch(*l.kernel, l.grid.global, l.grid.local, step.name);
}

void Executor::enqueue_segments() {
  prepare();
  for (std::size_t s = 0; s < plan_.steps.size();) {
    const std::size_t steps = persistent_kernel_->enqueue(s);
    if (steps == 0) launch(s);
    s += std::max<std::size_t>(1, steps);
  }
}

void Executor::enqueue(const Tap& tap) {
  // Other sessions of the context queue their runs before or after this one.
  const auto held = plan_.context->queue().hold();
  const bool by_step = tap || plan_.context->queue().profiling();
  if (record_ && !by_step) return enqueue_recorded();
  if (persistent_kernel_ && !by_step) return enqueue_segments();
  const auto run_taps = [&](int after) {
    if (!tap) return;
    for (const plan::Tap& t : plan_.taps)
      if (t.after == after)
        tap(t.name, buffer(t.slot), plan_.slots[static_cast<std::size_t>(t.slot)].type.dtype,
            shape(t.slot));
  };
  run_taps(-1);
  for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
    launch(s);
    if (!plan_.taps.empty()) run_taps(static_cast<int>(s));
  }
}

}  // namespace bertcl::runtime
