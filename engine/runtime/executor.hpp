// SPDX-License-Identifier: Apache-2.0
// Runs a plan, which several executors may share, one run at a time.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "opencl/launch/command_buffer.hpp"
#include "plan/plan.hpp"
#include "runtime/launch.hpp"
#include "runtime/persistent_kernel.hpp"
#include "runtime/session.hpp"
#include "runtime/size_tables.hpp"
#include "runtime/value_memory.hpp"

namespace bertcl::runtime {

/// Launches the steps of a plan for the sizes of the last bind(), which changes what launches use
/// only once none is queued.
class Executor {
 public:
  /// With `record` the launches of a shape are recorded at its first run and replayed as one
  /// command later, except while they are profiled or observed. Throws Error where the device has
  /// no command buffers, or a library queues some of the work itself.
  /// `max_memory`, `arenas`: as ValueMemory.
  Executor(plan::Plan& plan, bool record, std::int64_t max_memory, Arenas& arenas);
  ~Executor();

  /// Prepares runs of these sizes, unless they equal those of the last call; queues nothing. Waits
  /// if wait() was not called after the last run. Throws Error like ValueMemory::place().
  void bind(const ir::Bindings& sizes);
  /// After bind(), as ValueMemory. Before enqueue() everything that it reads is uploaded.
  std::span<std::byte> staging(int slot) { return memory_.staging(slot); }
  void upload();
  opencl::Buffer& buffer(int slot) { return memory_.buffer(slot); }
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
  const ValueMemory& memory() const { return memory_; }
  /// True where nothing is queued that uses what this holds.
  bool is_settled() const { return settled_; }

 private:
  /// What a bind() makes.
  struct Bound {
    ir::Bindings sizes;
    std::vector<Launch> launches;                          // by step
    bool uploaded = false;                                 // tables of sizes and merged steps
    std::unique_ptr<opencl::CommandBuffer> recorded = {};  // of the launches
  };
  /// Merged steps find their values in the arena; without one each step is a launch.
  bool merges_steps() const { return persistent_kernel_ && memory_.in_arena(); }
  opencl::Buffer& constant(int index);
  std::vector<Launch> choose_launches(const ir::Bindings& sizes) const;
  opencl::Kernel with_arguments(std::size_t step, const opencl::Kernel& kernel);
  const opencl::Kernel& kernel_of(std::size_t step);
  std::vector<opencl::Buffer*> buffers_of(const plan::Step& call);
  void enqueue_recorded();
  void enqueue_segments();
  void launch(std::size_t step);
  /// False for inputs with which nothing runs, as an axis that is shorter than what is cut from it.
  bool launch_as(std::size_t step, const plan::StepKernel& with);

  plan::Plan& plan_;
  const bool record_;
  opencl::Buffer index_error_;
  ValueMemory memory_;
  SizeTables tables_;
  std::unique_ptr<PersistentKernel> persistent_kernel_;  // null where the plan has none
  /// Duplicates of the plan's kernels, whose arguments that no size changes are set.
  std::map<const opencl::Kernel*, opencl::Kernel> kernels_;
  std::optional<Bound> bound_;
  bool settled_ = true;
  opencl::EventHandle end_;
};

}  // namespace bertcl::runtime
