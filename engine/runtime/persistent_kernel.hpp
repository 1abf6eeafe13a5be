// SPDX-License-Identifier: Apache-2.0
// Segments: adjacent steps that run in one launch.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "plan/plan.hpp"
#include "runtime/launch.hpp"
#include "runtime/size_tables.hpp"
#include "runtime/value_memory.hpp"

namespace bertcl::runtime {

/// The persistent kernel of a plan (kernels_cl/persistent/persistent.cl). Its steps reach their
/// values by address: slots in the arena, tables and the constants of the plan, all of which have
/// to stay until the queue is finished.
class PersistentKernel {
 public:
  /// `index_error` stands for the constant of that name in the plan. Nothing that is queued uses
  /// it.
  PersistentKernel(const plan::Plan& plan, const opencl::Buffer& index_error);

  /// Writes the steps for one run's sizes. Launches of an earlier bind() have finished: the
  /// device reads the steps from here.
  void bind(std::span<const Launch> launches, const ValueMemory& memory, const SizeTables& tables,
            const ir::Bindings& sizes);

  /// Queues the launch of all steps from `first` on that one launch can run; returns how many. 0 if
  /// `first` needs one of its own. `arena`: that of bind().
  std::size_t enqueue(std::size_t first, const opencl::Buffer& arena);

 private:
  struct Segment {  // steps in one launch
    std::size_t first, steps;
    std::size_t first_in_words;  // of its steps in steps_
    std::size_t groups;
  };
  /// Fills segments_: runs of mergeable launches, each of at most some milliseconds.
  void find_segments(std::span<const Launch> launches, const ir::Bindings& sizes);

  const plan::Plan& plan_;
  std::vector<std::uint64_t> constants_;  // addresses
  opencl::Buffer state_, steps_;
  std::vector<std::uint64_t> words_;  // of the steps, on their way to the device
  std::vector<Segment> segments_;
};

}  // namespace bertcl::runtime
