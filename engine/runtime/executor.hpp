// SPDX-License-Identifier: Apache-2.0
// Runs a plan: places its slots for the shapes of a batch, binds arguments, enqueues the steps.
#pragma once
#include <map>
#include <memory>
#include <set>

#include "opencl/command_buffer.hpp"
#include "plan/plan.hpp"
#include "runtime/packing.hpp"
#include "runtime/session.hpp"

namespace bertcl::runtime {

class Executor {
 public:
  /// With `record` the launches of a shape are recorded at its first run and replayed as one
  /// command later, except while they are profiled or observed. Throws Error where the device has
  /// no command buffers, or a library queues some of the work itself.
  explicit Executor(plan::Plan& plan, bool record = false);

  /// Places every slot for these sizes. Does nothing if they are those of the last call.
  void bind(const ir::Bindings& sizes);
  /// Device memory of a slot after bind().
  opencl::Buffer& buffer(int slot) { return buffers_[static_cast<std::size_t>(root(slot))]; }
  ir::Sizes shape(int slot) const;
  /// Enqueues all steps; nothing waits.
  void enqueue(const Tap& tap);
  std::int64_t arena_bytes() const { return arena_bytes_; }

 private:
  int root(int slot) const { return plan_.slots[static_cast<std::size_t>(slot)].root; }
  void find_lifetimes();
  void place_slots();
  void fill_tables();
  void bind_arguments();
  void bind_call(plan::Step& step);
  void enqueue_recorded();

  plan::Plan& plan_;
  std::vector<std::pair<int, int>> lifetimes_;  // first and last step of each root slot
  ir::Bindings sizes_;
  const bool record_;
  std::unique_ptr<opencl::CommandBuffer> recorded_;  // of the sizes that are bound
  bool bound_ = false;
  std::set<const opencl::Kernel*> with_constants_;  // whose arguments that no size changes are set
  std::int64_t arena_bytes_ = 0;
  opencl::Buffer arena_;
  std::vector<opencl::Buffer> buffers_;  // by root slot
  opencl::Buffer tables_;
  std::vector<opencl::Buffer> table_views_;
  std::vector<std::array<std::size_t, 3>> globals_, locals_;  // by step
  std::vector<opencl::Kernel> kernels_;                       // of each step; none for a call
  std::map<const plan::Step*, std::vector<opencl::Buffer*>> calls_;  // buffers of library calls
};

}  // namespace bertcl::runtime
