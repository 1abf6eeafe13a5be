// SPDX-License-Identifier: Apache-2.0
// A sequence of launches that is recorded once and queued as one (cl_khr_command_buffer).
#pragma once
#include <array>
#include <cstddef>
#include <memory>
#include <string_view>

#include "opencl/context.hpp"

namespace bertcl::opencl {

/// Launches run one after the other, with the arguments that their kernels had when they were
/// recorded. Kernels and their bound buffers must outlive it.
class CommandBuffer {
 public:
  /// Records for the current queue of `context`. Throws Error if the device has no command buffers.
  explicit CommandBuffer(Context& context);
  /// The same without that check, for the probe.
  struct Unprobed {};
  CommandBuffer(Context& context, Unprobed);
  ~CommandBuffer();
  CommandBuffer(const CommandBuffer&) = delete;
  CommandBuffer& operator=(const CommandBuffer&) = delete;

  /// Records a launch, which takes what Queue::launch() takes.
  void add(const Kernel& kernel, std::array<size_t, 3> global, std::array<size_t, 3> local,
           std::string_view label);
  /// Ends the recording. Throws Error if the driver refuses it.
  void finalize();
  /// Queues all launches; does not wait.
  void enqueue();

  /// False once the context's queue is no longer the one recorded for.
  bool is_for(Context& context) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace bertcl::opencl
