// SPDX-License-Identifier: Apache-2.0
// Device memory for the values of a plan, placed for the sizes of a run.
#include "runtime/value_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>
#include <utility>

#include "ir/checked.hpp"
#include "opencl/device/capabilities.hpp"
#include "opencl/launch/persistent_kernel.hpp"
#include "support/ceil_div.hpp"
#include "support/option_name.hpp"

namespace bertcl::runtime {
namespace {

/// By root slot; those that nothing uses end before they begin.
std::vector<plan::Lifetime> lifetimes_of(const plan::Plan& plan) {
  const int steps = static_cast<int>(plan.steps.size());
  std::vector<plan::Lifetime> lifetimes(plan.slots.size(), {0, steps, -1});
  const auto touch = [&](int slot, int step) {
    plan::Lifetime& of_root = lifetimes[plan.slots[slot].root];
    of_root.first = std::min(of_root.first, step);
    of_root.last = std::max(of_root.last, step);
  };
  for (const plan::Input& in : plan.inputs) touch(in.slot, -1);
  for (int s = 0; s < steps; ++s)
    for (const plan::Argument& a : plan.steps[s].arguments) {
      if (const auto* r = std::get_if<plan::Reads>(&a)) touch(r->slot, s);
      if (const auto* w = std::get_if<plan::Writes>(&a)) touch(w->slot, s);
    }
  for (const plan::TapPoint& tap : plan.taps) touch(tap.slot, tap.after);
  for (const plan::Output& out : plan.outputs) {
    if (out.slot >= 0) touch(out.slot, steps);
    if (out.packed_slot >= 0) touch(out.packed_slot, steps);
  }
  return lifetimes;
}

std::int64_t bytes_of(const ir::Type& type, const ir::Bindings& sizes) {
  return ir::product(element_count(type.shape).evaluate(sizes),
                     static_cast<std::int64_t>(ir::size_of(type.dtype)), "a value");
}

}  // namespace

bool views_may_overlap(const plan::Plan& plan) {
  // Steps of the persistent kernel find their values by address, in the arena.
  return plan.context->capabilities().overlapping_views || plan.persistent_kernel;
}

std::int64_t constant_bytes(const plan::Plan& plan) {
  std::int64_t bytes = 0;
  for (const opencl::Buffer& buffer : plan.constants) bytes += std::ssize(buffer);
  return bytes;
}

ValueMemory::ValueMemory(const plan::Plan& plan, std::int64_t max_memory, Arenas& arenas,
                         std::function<void()> before_growth)
    : plan_(plan),
      lifetimes_(lifetimes_of(plan)),
      constant_bytes_(constant_bytes(plan)),
      max_bytes_((max_memory > 0
                      ? max_memory
                      : static_cast<std::int64_t>(plan.context->info().global_mem_bytes)) -
                 constant_bytes_),
      arenas_(arenas),
      before_growth_(std::move(before_growth)) {}

ValueMemory::~ValueMemory() {
  views_.clear();
  storage_.clear();
  arenas_.bytes -= held_;
}

Error ValueMemory::exceeds_limit(const Layout& layout, std::int64_t others,
                                 std::string_view at_least) const {
  const auto largest = std::ranges::max_element(layout.bytes);
  const plan::Slot& slot = plan_.slots[largest - layout.bytes.begin()];
  return Error(
      fmt::format("{} bytes of weights and {}{} of intermediate tensors exceed the limit of "
                  "{}; the largest intermediate is '{}' {} with {} bytes; use a smaller "
                  "batch or raise {}, up to what the device has",
                  constant_bytes_, at_least, layout.arena_bytes + others,
                  constant_bytes_ + max_bytes_, slot.name, ir::str(slot.type), *largest,
                  option_name("max-memory")),
      ErrorCode::out_of_memory);
}

ValueMemory::Layout ValueMemory::layout_of(const ir::Bindings& sizes) const {
  Layout layout;
  std::vector<plan::Lifetime> values = lifetimes_;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i].last >= values[i].first) values[i].bytes = bytes_of(plan_.slots[i].type, sizes);
    layout.bytes.push_back(values[i].bytes);
    layout.arena_bytes = std::max(layout.arena_bytes, values[i].bytes);
  }
  // One by one, so that their sum has 64 bits.
  if (layout.arena_bytes > max_bytes_) throw exceeds_limit(layout, 0, "at least ");
  std::vector<plan::Lifetime> computed = values;
  for (const plan::Input& in : plan_.inputs) computed[in.slot].bytes = 0;
  const std::int64_t alignment = std::max(64u, plan_.context->info().base_align_bytes);
  const auto aligned = [&](std::int64_t n) { return round_up(n, alignment); };
  plan::ArenaLayout arena = plan::plan_arena(computed, alignment);
  layout.offsets = std::move(arena.offsets);
  layout.arena_bytes = layout.inputs_begin = aligned(arena.arena_bytes);
  for (const plan::Input& in : plan_.inputs) {
    layout.offsets[in.slot] = layout.arena_bytes;
    layout.arena_bytes += aligned(layout.bytes[in.slot]);
  }
  layout.inputs_end = layout.arena_bytes;
  layout.in_arena =
      views_may_overlap(plan_) &&
      layout.arena_bytes <= static_cast<std::int64_t>(plan_.context->info().max_alloc_bytes);
  if (layout.in_arena) {
    layout.buffers.bytes = {layout.arena_bytes};
  } else {
    layout.buffers = plan::share_buffers(values);
    layout.arena_bytes =
        std::accumulate(layout.buffers.bytes.begin(), layout.buffers.bytes.end(), std::int64_t{0});
  }
  if (layout.arena_bytes > max_bytes_) throw exceeds_limit(layout, 0);
  return layout;
}

/// Counts that many bytes for this memory, at least what it holds; false where those of all would
/// exceed the limit.
bool ValueMemory::reserve(std::int64_t bytes) {
  const std::int64_t more = bytes - held_;
  std::int64_t all = arenas_.bytes;
  do {
    if (more > 0 && more > max_bytes_ - all) return false;
  } while (!arenas_.bytes.compare_exchange_weak(all, all + more));
  held_ = bytes;
  return true;
}

void ValueMemory::count_held() {
  std::int64_t bytes = 0;
  for (const opencl::Buffer& buffer : storage_) bytes += std::ssize(buffer);
  arenas_.bytes += bytes - held_;
  held_ = bytes;
}

void ValueMemory::place(const ir::Bindings& sizes) {
  views_.clear();
  views_.resize(plan_.slots.size());
  Layout layout = layout_of(sizes);
  if (layout.in_arena != layout_.in_arena) {
    storage_.clear();
    count_held();
  }
  layout_ = std::move(layout);
  staging_.resize(layout_.inputs_end - layout_.inputs_begin);
  try {
    allocate();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::out_of_memory || !arenas_.free_idle) throw;
    arenas_.free_idle();
    allocate();
  }
}

/// Replaces buffers that are smaller than those of the layout.
void ValueMemory::allocate() {
  const std::vector<std::int64_t>& wanted = layout_.buffers.bytes;
  storage_.resize(std::max(storage_.size(), wanted.size()));
  std::int64_t grown = held_;
  for (std::size_t i = 0; i < wanted.size(); ++i)
    grown += std::max<std::int64_t>(wanted[i] - std::ssize(storage_[i]), 0);
  if (grown > held_ && before_growth_) before_growth_();
  if (!reserve(grown)) {
    // Buffers of earlier sizes may each be larger than now, and exceed the limit together.
    if (layout_.arena_bytes < grown)
      for (opencl::Buffer& buffer : storage_) buffer = {};
    count_held();
    if (!reserve(std::max(held_, layout_.arena_bytes)))
      throw exceeds_limit(layout_, arenas_.bytes - held_);
  }
  try {
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (std::ssize(storage_[i]) >= wanted[i]) continue;
      storage_[i] = {};
      opencl::Buffer larger = plan_.context->allocate(static_cast<std::size_t>(wanted[i]));
      if (plan_.persistent_kernel && layout_.in_arena)
        arena_address_ = opencl::addresses_of(*plan_.context, std::array{&larger})[0];
      storage_[i] = std::move(larger);
    }
  } catch (...) {
    count_held();
    throw;
  }
  count_held();
}

opencl::Buffer& ValueMemory::buffer(int slot) {
  const std::size_t r = root(slot);
  opencl::Buffer& view = views_[r];
  if (const auto bytes = static_cast<std::size_t>(layout_.bytes[r]); !view && bytes > 0)
    view = layout_.in_arena ? arena().view(static_cast<std::size_t>(layout_.offsets[r]), bytes)
                            : storage_[layout_.buffers.of[r]].front(bytes);
  return view;
}

std::uint64_t ValueMemory::address(int slot) const {
  return arena_address_ + static_cast<std::uint64_t>(layout_.offsets[root(slot)]);
}

std::span<std::byte> ValueMemory::staging(int slot) {
  return std::span(staging_).subspan(layout_.offsets[slot] - layout_.inputs_begin,
                                     static_cast<std::size_t>(layout_.bytes[slot]));
}

void ValueMemory::upload() {
  if (layout_.in_arena)
    storage_.front().write_async(staging_, static_cast<std::size_t>(layout_.inputs_begin));
  else
    for (const plan::Input& in : plan_.inputs) buffer(in.slot).write_async(staging(in.slot));
}

}  // namespace bertcl::runtime
