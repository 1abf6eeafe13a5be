// SPDX-License-Identifier: Apache-2.0
// The in-order command queue of a context, with a profile by events.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bertcl/error.hpp"
#include "opencl/base/handle.hpp"
#include "opencl/grid.hpp"
#include "opencl/kernel.hpp"

namespace bertcl::opencl {

/// Device time of all launches with the same label and kernel.
struct ProfileEntry {
  std::string label;   ///< as given to launch()
  std::string kernel;  ///< kernel function
  uint64_t ns = 0;     ///< sum of the times on the device
  uint64_t calls = 0;
};

/// A launch that the driver refuses because of its kernel: a work-group needs more registers, local
/// memory or work-items than the device has. With ErrorCode::out_of_memory (CL_OUT_OF_RESOURCES)
/// other work may hold what is missing; the kernel is at fault if it is refused after finish(),
/// too.
class LaunchError : public Error {
 public:
  using Error::Error;
};

/// Launches run in order, and launch() never waits for the device: finish() or Buffer::read() does.
/// A driver may hold them back until somebody waits or calls flush().
/// Several threads may use a queue; a thread holds it while it queues operations that belong
/// together.
class Queue {
 public:
  /// `queue`: that of a caller, which is not profiled; null: a new one. `sibling`: another one of
  /// the context, with which it shares the exit handler.
  Queue(_cl_context* context, _cl_device_id* device, QueueHandle queue = nullptr,
        const Queue* sibling = nullptr);
  ~Queue();

  /// While the result lives, other threads queue nothing, and profiling does not change. Waiting
  /// for the device needs no hold.
  std::unique_lock<std::recursive_mutex> lock() const { return std::unique_lock(mutex_); }

  /// Queues one launch. `global` is a multiple of `local` in each dimension. A zero in `global` is
  /// an empty launch and does nothing. Throws Error with label, kernel, sizes and CL status name;
  /// LaunchError where it may be the kernel's fault.
  void launch(const Kernel& kernel, std::array<size_t, 3> global, std::array<size_t, 3> local,
              std::string_view label = {});

  /// Global and local size for `items` independent work-items of a kernel: groups of one on a CPU;
  /// groups of the size that the kernel requires, which must divide `items`; else as grid.hpp,
  /// where the global size may exceed `items`. Builds the kernel unless the device is a CPU.
  Grid grid_of(const Kernel& kernel, std::array<size_t, 3> items) const;

  /// The same for a grid of groups of one; others stay.
  void group_items(const Kernel& kernel, Grid& grid) const {
    if (grid.local == Grid().local) grid = grid_of(kernel, grid.global);
  }

  /// Most work-items of a group of this kernel, which its registers may limit. Builds it.
  size_t max_items(const Kernel& kernel) const;

  /// Queues a launch of independent work-items, in the groups of grid_of().
  void launch_items(const Kernel& kernel, std::array<size_t, 3> items, std::string_view label = {});

  /// Waits until everything queued has run. Throws Error if the driver fails to wait: queued work
  /// may then still access host memory, see settle().
  void finish();

  /// Waits until everything queued before mark() returned `point` has run. Throws like finish().
  void wait(const EventHandle& point);

  /// Releases `memory` once no queued work uses it: now, if waiting for the device succeeds in any
  /// way, else at the next finish() that succeeds, or never if none does.
  void settle(std::shared_ptr<const void> memory) noexcept;

  /// Turns event timing on or off (initially off: an event per launch costs host time). Waits for
  /// the work queued so far.
  void enable_profiling(bool on);
  bool profiling() const {
    const auto held = lock();
    return profiling_;
  }

  /// Waits, then returns the launches since the last clear_profile(), in order of first launch.
  std::vector<ProfileEntry> profile();
  void clear_profile();

  /// The point in the queue after everything queued so far. On a CPU it is the event of the last
  /// launch where nothing was queued after that: a marker would be one more command for threads
  /// that sleep in between.
  EventHandle mark();
  /// What is queued from now on waits for these events.
  void wait_for(std::span<_cl_event* const> events);
  /// Submits queued work (clFlush): some drivers do not start it otherwise.
  void flush();
  /// For libraries that queue work of several kernels themselves (CLBlast): an entry for the time
  /// from a point, or else from the start of `event`, to its end.
  void add_event(EventHandle event, std::string_view label, std::string_view kernel,
                 EventHandle since = nullptr);

  /// To be called after a launch: registers the exit handler unless one of the context is
  /// registered.
  void watch_exit() const;

  /// For commands that are queued next. The handle keeps the queue alive, even if another replaces
  /// it.
  QueueHandle handle() {
    const auto held = lock();
    last_launch_ = nullptr;
    return queue_;
  }
  _cl_command_queue* native() { return handle().get(); }

 private:
  struct Pending {
    EventHandle event;
    EventHandle since;  // where set, time counts from its end, else from the start of `event`
    size_t entry;
  };
  bool is_drained() noexcept;
  void read_event_times();
  size_t entry_index(std::string_view label, std::string_view kernel);

  _cl_context* context_;
  _cl_device_id* device_;
  bool is_cpu_ = false;
  mutable std::recursive_mutex mutex_;  // of all below
  QueueHandle queue_;
  EventHandle last_launch_;                        // unless something else may be queued after it
  std::vector<std::shared_ptr<const void>> kept_;  // by settle()
  bool of_caller_ = false;
  bool profiling_ = false;
  std::shared_ptr<std::once_flag> exit_watched_;
  std::vector<Pending> pending_;
  std::vector<ProfileEntry> entries_;
  std::map<std::pair<std::string, std::string>, size_t> entry_of_;
};

}  // namespace bertcl::opencl
