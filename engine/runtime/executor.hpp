// SPDX-License-Identifier: Apache-2.0
// Runs a plan, which several executors may share, one run at a time: places its slots for the
// shapes of a batch, binds arguments, enqueues the steps.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>

#include "bertcl/error.hpp"
#include "opencl/command_buffer.hpp"
#include "plan/memory.hpp"
#include "plan/plan.hpp"
#include "runtime/launch.hpp"
#include "runtime/persistent_kernel.hpp"
#include "runtime/session.hpp"

namespace bertcl::runtime {

/// The memory that the executors of a plan hold for values.
struct Arenas {
  std::atomic<std::int64_t> bytes = 0;  // of all of them, counted before they are allocated
  /// Frees what executors without a run hold. May be empty.
  std::function<void()> free_idle;
};

class Executor {
 public:
  /// With `record` the launches of a shape are recorded at its first run and replayed as one
  /// command later, except while they are profiled or observed. Throws Error where the device has
  /// no command buffers, or a library queues some of the work itself.
  /// `max_memory`: bytes that constants and arenas may take together; 0: what the device has.
  Executor(plan::Plan& plan, bool record, std::int64_t max_memory, Arenas& arenas);
  ~Executor();

  /// Places every slot for these sizes, unless they equal those of the last call. Waits if wait()
  /// was not called after the last run. Where memory is short it asks once for that of idle
  /// executors. Throws Error (ErrorCode::out_of_memory) where that is not enough.
  void bind(const ir::Bindings& sizes);
  /// Host memory for the value of an input after bind(), and the transfer of all of them. It is
  /// read until the queue has passed the transfer.
  std::span<std::byte> staging(int slot);
  void upload();
  /// Device memory of a slot after bind().
  opencl::Buffer& buffer(int slot);
  ir::Sizes shape(int slot) const;
  /// Launches every kernel that a run of any size may take, for the sizes that are bound. Takes
  /// alternatives that the driver refuses to launch from the plan; this executor runs nothing
  /// afterwards. Throws plan::VariantUnsupported where it refuses a step's own kernel.
  void try_launches();
  /// Enqueues all steps; nothing waits.
  void enqueue(const TapFunction& tap);
  /// Marks the end of the run, after its steps and output copies.
  void end_run();
  const opencl::EventHandle& end() const { return end_; }
  /// Waits for that end, not for what was queued after it. Throws Error where the driver fails to.
  void wait();
  /// Set by kernels when an index was outside its table; empty if that cannot happen.
  opencl::Buffer& index_error() { return index_error_; }
  std::int64_t arena_bytes() const { return memory_.arena_bytes; }
  /// The same for other sizes; nothing is allocated. Throws Error like bind() if it exceeds the
  /// limit.
  std::int64_t arena_bytes(const ir::Bindings& sizes) const { return layout_of(sizes).arena_bytes; }
  /// True where nothing is queued that uses what this holds.
  bool is_settled() const { return settled_; }

 private:
  /// Merged steps find their values in the arena; without one each step is a launch.
  bool merges_steps() const { return persistent_kernel_ && in_arena_; }
  int root(int slot) const { return plan_.slots[slot].root; }
  void find_lifetimes();
  opencl::Kernel& own(const opencl::Kernel& kernel);
  opencl::Buffer& constant(int index);
  std::int64_t bytes_of(std::size_t slot) const { return bytes_of(slot, sizes_); }
  std::int64_t bytes_of(std::size_t slot, const ir::Bindings& sizes) const;
  /// Offsets of the slots in the arena: first those that steps make, then, side by side, the
  /// inputs.
  struct ValueLayout {
    std::vector<std::int64_t> offsets;
    std::int64_t inputs_begin = 0, inputs_end = 0, arena_bytes = 0;
    bool in_arena = true;
    plan::SharedBuffers shared = {};  // the replacement of the arena, if any
    std::size_t largest = 0;          // a slot
    std::int64_t largest_bytes = 0;
  };
  ValueLayout layout_of(const ir::Bindings& sizes) const;
  Error exceeds_limit(const ValueLayout& layout, std::int64_t others) const;
  void place_slots(ValueLayout layout);
  void allocate_values(std::span<opencl::Buffer> buffers, const std::vector<std::int64_t>& bytes);
  bool reserve(std::int64_t bytes);
  void count_held();
  /// Device address, read by a persistent kernel; 0 without one. Of memory that nothing uses yet.
  std::uint64_t device_address_of(const opencl::Buffer& buffer) const;
  std::int64_t constant_bytes() const;
  void fill_tables();
  /// As buffers of their own: where in tables_ they begin, and their bytes.
  void fill_tables(const std::vector<std::pair<std::size_t, std::size_t>>& ranges);
  void choose_launches();
  void bind_arguments();
  void bind_arguments(std::size_t step, const opencl::Kernel& kernel);
  void bind_call(const plan::Step& step);
  void enqueue_recorded();
  void enqueue_segments();
  void launch(std::size_t step);

  plan::Plan& plan_;
  std::vector<std::pair<int, int>> lifetimes_;  // first and last step of each root slot
  ir::Bindings sizes_;
  const bool record_;
  const std::int64_t max_bytes_;  // of constants and arenas
  Arenas& arenas_;
  std::int64_t held_ = 0;                            // bytes that arenas_ counts for this one
  std::unique_ptr<opencl::CommandBuffer> recorded_;  // of the sizes that are bound
  bool bound_ = false, arguments_bound_ = false;
  bool settled_ = true;  // nothing is queued that reads what this holds
  opencl::EventHandle end_;
  std::map<const opencl::Kernel*, opencl::Kernel> kernels_;  // of steps, with arguments of our own
  std::set<const opencl::Kernel*> with_constants_;  // whose arguments that no size changes are set
  Memory memory_;
  opencl::Buffer index_error_;
  const bool has_views_;                 // values may share an arena, and tables a buffer
  bool in_arena_ = true;                 // else values share memory_.values
  std::vector<std::size_t> value_of_;    // of those, by root slot
  std::int64_t inputs_begin_ = 0;        // in the arena, where they lie side by side
  std::vector<std::byte> staging_;       // of all inputs
  std::vector<std::int32_t> tables_;     // on their way to the device
  std::vector<opencl::Buffer> buffers_;  // by root slot, those that were asked for
  std::vector<opencl::Buffer> table_views_;
  std::vector<Launch> launches_;                                     // by step
  std::map<const plan::Step*, std::vector<opencl::Buffer*>> calls_;  // buffers of library calls
  std::unique_ptr<PersistentKernel> persistent_kernel_;              // null where the plan has none
};

}  // namespace bertcl::runtime
