// SPDX-License-Identifier: Apache-2.0
// Device memory for the values of a plan, placed for the sizes of a run.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "bertcl/error.hpp"
#include "plan/memory.hpp"
#include "plan/plan.hpp"

namespace bertcl::runtime {

/// The memory that the executors of a plan hold for values.
struct Arenas {
  std::atomic<std::int64_t> bytes = 0;  // of all of them, counted before they are allocated
  /// Frees what executors without a run hold. May be empty.
  std::function<void()> free_idle;
};

/// False where values have buffers of their own instead of parts of one, and tables of sizes too.
bool views_may_overlap(const plan::Plan& plan);

std::int64_t constant_bytes(const plan::Plan& plan);

/// After place(), each value has its bytes to itself from the first step that uses it to the last,
/// and `arenas` counts what is held, which with that of others is within the limit.
class ValueMemory {
 public:
  /// `max_memory`: bytes that constants and arenas may take together; 0: what the device has.
  /// `before_growth` drops what else holds buffers of this, before larger ones replace them;
  /// may be empty.
  ValueMemory(const plan::Plan& plan, std::int64_t max_memory, Arenas& arenas,
              std::function<void()> before_growth = {});
  ~ValueMemory();

  /// Nothing that is queued uses what this holds. Where memory is short it asks once for that of
  /// idle executors. Throws Error (ErrorCode::out_of_memory) where that is not enough.
  void place(const ir::Bindings& sizes);
  /// Device memory of a slot; empty where no step uses it.
  opencl::Buffer& buffer(int slot);
  /// Host memory for the value of an input, and the transfer of all of them, which reads it until
  /// the queue has passed it.
  std::span<std::byte> staging(int slot);
  void upload();
  std::int64_t bytes() const { return layout_.arena_bytes; }
  /// The same for other sizes; nothing is allocated. Throws Error like place() if they exceed the
  /// limit.
  std::int64_t bytes(const ir::Bindings& sizes) const { return layout_of(sizes).arena_bytes; }

  /// False where values are in buffers that some of them share one after the other: no views may
  /// overlap on the device, or the arena would exceed its largest buffer.
  bool in_arena() const { return layout_.in_arena; }
  // Of a plan with a persistent kernel, in the arena: it and the address in it.
  const opencl::Buffer& arena() const { return storage_.front(); }
  std::uint64_t address(int slot) const;

 private:
  /// Numbers by root slot, and of the buffers. First in the arena are the values that steps make,
  /// then, side by side, the inputs.
  struct Layout {
    std::vector<std::int64_t> bytes, offsets;
    std::int64_t inputs_begin = 0, inputs_end = 0, arena_bytes = 0;
    bool in_arena = true;
    plan::SharedBuffers buffers;  // the arena alone, or its replacement
  };
  Layout layout_of(const ir::Bindings& sizes) const;
  std::size_t root(int slot) const { return static_cast<std::size_t>(plan_.slots[slot].root); }
  /// `at_least`: "", or words before the bytes if only the largest value is counted yet.
  Error exceeds_limit(const Layout& layout, std::int64_t others,
                      std::string_view at_least = "") const;
  void allocate();
  bool reserve(std::int64_t bytes);
  void count_held();

  const plan::Plan& plan_;
  const std::vector<plan::Lifetime> lifetimes_;  // by root slot, without bytes
  const std::int64_t constant_bytes_;
  const std::int64_t max_bytes_;  // of arenas
  Arenas& arenas_;
  const std::function<void()> before_growth_;
  std::int64_t held_ = 0;  // bytes that arenas_ counts for this one
  Layout layout_;
  std::vector<opencl::Buffer> storage_;  // at least of the bytes of layout_.buffers
  std::uint64_t arena_address_ = 0;
  std::vector<opencl::Buffer> views_;  // by root slot, those that were asked for
  std::vector<std::byte> staging_;     // of all inputs
};

}  // namespace bertcl::runtime
