// SPDX-License-Identifier: Apache-2.0
// Runs a plan, which several executors may share, one run at a time: places its slots for the
// shapes of a batch, binds arguments, enqueues the steps.
#include "runtime/executor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "bertcl/error.hpp"
#include "ir/checked.hpp"
#include "opencl/capabilities.hpp"
#include "opencl/exit_guard.hpp"
#include "opencl/persistent_kernel.hpp"
#include "opencl/queue.hpp"
#include "support/ceil_div.hpp"
#include "support/option_name.hpp"

namespace bertcl::runtime {

Executor::Executor(plan::Plan& plan, bool record, std::int64_t max_memory, Arenas& arenas)
    : plan_(plan),
      record_(record),
      max_bytes_(max_memory > 0 ? max_memory
                                : static_cast<std::int64_t>(plan.context->info().global_mem_bytes)),
      arenas_(arenas),
      // Steps of the persistent kernel find their values by address, in the arena.
      has_views_(plan.context->capabilities().overlapping_views || plan.persistent_kernel) {
  find_lifetimes();
  if (plan.error_constant >= 0) index_error_ = plan.context->allocate(sizeof(std::int32_t));
  if (plan.persistent_kernel)
    persistent_kernel_ = std::make_unique<PersistentKernel>(plan, index_error_);
  index_error_.fill(0);
  if (!record) return;
  for (const plan::Step& step : plan.steps)
    if (step.call)
      throw Error(fmt::format(
          "{} '{}' is computed by {}, which a command buffer cannot record; use {}, or omit {}",
          step.op, step.name, step.variant, option_name("gemm", "own"),
          option_name("command-buffer")));
  const opencl::CommandBuffer available(*plan.context);  // throws where there are none
}

Executor::~Executor() {
  if (opencl::process_is_ending()) return;
  // What is queued reads the staged inputs, tables and steps, and finds the memory of merged steps
  // by its address: the queue keeps none of them.
  if (!settled_) try {
      plan_.context->queue().finish();
    } catch (const Error&) {  // of work that nobody waited for
    }
  buffers_.clear();
  memory_ = {};
  arenas_.bytes -= held_;
}

void Executor::find_lifetimes() {
  const int steps = static_cast<int>(plan_.steps.size());
  lifetimes_.assign(plan_.slots.size(), {steps, -1});
  const auto touch = [&](int slot, int step) {
    auto& [first, last] = lifetimes_[root(slot)];
    first = std::min(first, step);
    last = std::max(last, step);
  };
  for (const plan::Input& in : plan_.inputs) touch(in.slot, -1);
  for (int s = 0; s < steps; ++s)
    for (const plan::Argument& a : plan_.steps[s].arguments) {
      if (const auto* r = std::get_if<plan::Reads>(&a)) touch(r->slot, s);
      if (const auto* w = std::get_if<plan::Writes>(&a)) touch(w->slot, s);
    }
  for (const plan::TapPoint& tap : plan_.taps) touch(tap.slot, tap.after);
  for (const plan::Output& out : plan_.outputs) {
    if (out.slot >= 0) touch(out.slot, steps);
    if (out.packed_slot >= 0) touch(out.packed_slot, steps);
  }
}

ir::Sizes Executor::shape(int slot) const {
  return ir::evaluate(plan_.slots[slot].type.shape, sizes_);
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
  const ValueLayout layout = layout_of(sizes_);
  try {
    place_slots(layout);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::out_of_memory || !arenas_.free_idle) throw;
    arenas_.free_idle();
    place_slots(layout);
  }
  fill_tables();
  choose_launches();
  bound_ = true;
}

std::int64_t Executor::bytes_of(std::size_t slot, const ir::Bindings& sizes) const {
  const ir::Type& type = plan_.slots[slot].type;
  return ir::product(element_count(type.shape).evaluate(sizes),
                     static_cast<std::int64_t>(ir::size_of(type.dtype)), "a value");
}

std::int64_t Executor::constant_bytes() const {
  std::int64_t bytes = 0;
  for (const opencl::Buffer& buffer : plan_.constants) bytes += std::ssize(buffer);
  return bytes;
}

Error Executor::exceeds_limit(const ValueLayout& layout, std::int64_t others) const {
  const plan::Slot& slot = plan_.slots[layout.largest];
  return Error(fmt::format("{} bytes of weights and {} of intermediate tensors exceed the limit of "
                           "{}; the largest intermediate is '{}' {} with {} bytes; use a smaller "
                           "batch or raise {}, up to what the device has",
                           constant_bytes(), layout.arena_bytes + others, max_bytes_, slot.name,
                           ir::str(slot.type), layout.largest_bytes, option_name("max-memory")),
               ErrorCode::out_of_memory);
}

Executor::ValueLayout Executor::layout_of(const ir::Bindings& sizes) const {
  std::vector<plan::Lifetime> values(plan_.slots.size());
  for (std::size_t i = 0; i < plan_.slots.size(); ++i)
    if (plan_.slots[i].root == static_cast<int>(i) && lifetimes_[i].second >= lifetimes_[i].first)
      values[i] = {bytes_of(i, sizes), lifetimes_[i].first, lifetimes_[i].second};
  ValueLayout layout;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values[i].bytes > layout.largest_bytes) {
      layout.largest = i;
      layout.largest_bytes = layout.arena_bytes = values[i].bytes;
    }
  const std::int64_t most = max_bytes_ - constant_bytes();
  // One by one, so that their sum has 64 bits.
  if (layout.largest_bytes > most) throw exceeds_limit(layout, 0);
  std::vector<plan::Lifetime> computed = values;
  for (const plan::Input& in : plan_.inputs) computed[in.slot].bytes = 0;
  const std::int64_t alignment = std::max(64u, plan_.context->info().base_align_bytes);
  const auto aligned = [&](std::int64_t n) { return round_up(n, alignment); };
  plan::ArenaLayout arena = plan::plan_arena(computed, alignment);
  layout.offsets = std::move(arena.offsets);
  layout.arena_bytes = layout.inputs_begin = aligned(arena.arena_bytes);
  for (const plan::Input& in : plan_.inputs) {
    const auto slot = static_cast<std::size_t>(in.slot);
    layout.offsets[slot] = layout.arena_bytes;
    layout.arena_bytes += aligned(bytes_of(slot, sizes));
  }
  layout.inputs_end = layout.arena_bytes;
  // Where the arena is too large for one buffer, its values may fit in several.
  const auto max_alloc = static_cast<std::int64_t>(plan_.context->info().max_alloc_bytes);
  layout.in_arena = has_views_ && layout.arena_bytes <= max_alloc;
  if (!layout.in_arena) {
    layout.shared = plan::share_buffers(values);
    layout.arena_bytes = 0;
    for (const std::int64_t bytes : layout.shared.bytes) layout.arena_bytes += aligned(bytes);
  }
  if (layout.arena_bytes > most) throw exceeds_limit(layout, 0);
  return layout;
}

/// Counts so many bytes for this executor, at least what it holds; false where those of all would
/// exceed the limit.
bool Executor::reserve(std::int64_t bytes) {
  const std::int64_t more = bytes - held_, most = max_bytes_ - constant_bytes();
  std::int64_t all = arenas_.bytes;
  do {
    if (more > 0 && more > most - all) return false;
  } while (!arenas_.bytes.compare_exchange_weak(all, all + more));
  held_ = bytes;
  return true;
}

void Executor::count_held() {
  std::size_t bytes = memory_.arena.size();
  for (const opencl::Buffer& buffer : memory_.values) bytes += buffer.size();
  arenas_.bytes += static_cast<std::int64_t>(bytes) - held_;
  held_ = static_cast<std::int64_t>(bytes);
}

void Executor::place_slots(ValueLayout layout) {
  memory_.slot_offsets = std::move(layout.offsets);
  memory_.arena_bytes = layout.arena_bytes;
  inputs_begin_ = layout.inputs_begin;
  staging_.resize(layout.inputs_end - layout.inputs_begin);
  if (layout.in_arena != in_arena_) {
    memory_.arena = {};
    memory_.values.clear();
    count_held();
    in_arena_ = layout.in_arena;
  }
  value_of_ = std::move(layout.shared.of);
  const std::vector<std::int64_t> bytes =
      in_arena_ ? std::vector{layout.arena_bytes} : std::move(layout.shared.bytes);
  if (!in_arena_) memory_.values.resize(std::max(memory_.values.size(), bytes.size()));
  const std::span<opencl::Buffer> buffers =
      in_arena_ ? std::span(&memory_.arena, 1) : std::span(memory_.values);
  std::int64_t grown = held_;
  for (std::size_t i = 0; i < bytes.size(); ++i)
    grown += std::max<std::int64_t>(bytes[i] - std::ssize(buffers[i]), 0);
  if (!reserve(grown)) {
    // Buffers of earlier sizes may each be larger than now, and exceed the limit together.
    if (layout.arena_bytes < grown)
      for (opencl::Buffer& buffer : buffers) buffer = {};
    count_held();
    if (!reserve(std::max(held_, layout.arena_bytes)))
      throw exceeds_limit(layout, arenas_.bytes - held_);
  }
  try {
    allocate_values(buffers, bytes);
  } catch (...) {
    count_held();
    throw;
  }
  count_held();
}

/// Replaces those that are smaller.
void Executor::allocate_values(std::span<opencl::Buffer> buffers,
                               const std::vector<std::int64_t>& bytes) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (std::ssize(buffers[i]) >= bytes[i]) continue;
    buffers[i] = {};
    opencl::Buffer larger = plan_.context->allocate(static_cast<std::size_t>(bytes[i]));
    if (in_arena_) memory_.arena_address = device_address_of(larger);
    buffers[i] = std::move(larger);
  }
}

std::uint64_t Executor::device_address_of(const opencl::Buffer& buffer) const {
  return persistent_kernel_ ? opencl::addresses_of(*plan_.context, std::array{&buffer})[0] : 0;
}

opencl::Buffer& Executor::buffer(int slot) {
  const auto r = static_cast<std::size_t>(root(slot));
  opencl::Buffer& view = buffers_[r];
  if (!view && lifetimes_[r].second >= lifetimes_[r].first)
    if (const std::int64_t bytes = bytes_of(r); bytes > 0)
      view = in_arena_ ? memory_.arena.view(static_cast<std::size_t>(memory_.slot_offsets[r]),
                                            static_cast<std::size_t>(bytes))
                       : memory_.values[value_of_[r]].front(static_cast<std::size_t>(bytes));
  return view;
}

std::span<std::byte> Executor::staging(int slot) {
  const auto i = static_cast<std::size_t>(slot);
  return std::span(staging_).subspan(memory_.slot_offsets[i] - inputs_begin_,
                                     static_cast<std::size_t>(bytes_of(i)));
}

void Executor::upload() {
  settled_ = false;
  if (in_arena_)
    memory_.arena.write_async(staging_, static_cast<std::size_t>(inputs_begin_));
  else
    for (const plan::Input& in : plan_.inputs) buffer(in.slot).write_async(staging(in.slot));
}

void Executor::end_run() {
  opencl::Queue& queue = plan_.context->queue();
  end_ = queue.mark();
  queue.flush();
}

void Executor::wait() {
  plan_.context->queue().wait(end_);
  settled_ = true;
}

void Executor::fill_tables() {
  const std::size_t align = std::max(4u, plan_.context->info().base_align_bytes);
  std::vector<std::int32_t>& host = tables_;
  host.clear();
  std::vector<std::pair<std::size_t, std::size_t>> ranges;
  for (const plan::Step& step : plan_.steps)
    for (const plan::Argument& a : step.arguments)
      if (const auto* table = std::get_if<plan::SizeTable>(&a)) {
        host.resize(round_up(host.size() * 4, align) / 4);
        ranges.emplace_back(host.size() * 4, std::max<std::size_t>(1, table->values.size()) * 4);
        for (const plan::SizeExpr& s : table->values)
          host.push_back(as_int(s.evaluate(sizes_), step));
        if (table->values.empty()) host.push_back(0);
      }
  memory_.table_offsets.clear();
  if (!has_views_) return fill_tables(ranges);
  table_views_.clear();
  if (host.empty()) return;
  opencl::Buffer& tables = memory_.tables;
  if (tables.size() < host.size() * 4) {
    opencl::Buffer larger = plan_.context->allocate(host.size() * 4);
    memory_.tables_address = device_address_of(larger);
    tables = std::move(larger);
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

}  // namespace bertcl::runtime
