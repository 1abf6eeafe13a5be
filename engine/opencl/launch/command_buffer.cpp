// SPDX-License-Identifier: Apache-2.0
// Recording and replay of launches by cl_khr_command_buffer.
#include "opencl/launch/command_buffer.hpp"

#include <fmt/format.h>

#include "bertcl/error.hpp"
#include "opencl/base/cl.hpp"
#include "opencl/base/exit_guard.hpp"
#include "opencl/device/capabilities.hpp"
#include "support/option_name.hpp"

namespace bertcl::opencl {
namespace {

// `context`, asked first: a driver may break down over them.
Context& with_command_buffers(Context& context) {
  const Capabilities& device = context.capabilities();
  if (!device.command_buffer)
    throw Error(fmt::format("device '{}' has no command buffers ({}); run without {}",
                            context.info().name, device.notes.at("command_buffer"),
                            option_name("command-buffer")));
  return context;
}

}  // namespace

struct CommandBuffer::State {
  struct Entries {
    clCreateCommandBufferKHR_fn create = nullptr;
    clFinalizeCommandBufferKHR_fn finalize = nullptr;
    clReleaseCommandBufferKHR_fn release = nullptr;
    clEnqueueCommandBufferKHR_fn enqueue = nullptr;
    clCommandNDRangeKernelKHR_fn add_kernel = nullptr;

    explicit Entries(cl_platform_id platform) {
      const auto find = [&](auto& function, const char* name) {
        function = reinterpret_cast<std::decay_t<decltype(function)>>(
            clGetExtensionFunctionAddressForPlatform(platform, name));
        if (!function)
          throw Error(fmt::format("the driver does not provide {}; run without {}", name,
                                  option_name("command-buffer")));
      };
      find(create, "clCreateCommandBufferKHR");
      find(finalize, "clFinalizeCommandBufferKHR");
      find(release, "clReleaseCommandBufferKHR");
      find(enqueue, "clEnqueueCommandBufferKHR");
      find(add_kernel, "clCommandNDRangeKernelKHR");
    }
  };

  State(cl_platform_id platform, const Queue& of) : entries(platform), queue_of(of) {}

  Entries entries;
  const Queue& queue_of;  // the context's
  cl_command_queue queue = nullptr;
  cl_command_buffer_khr buffer = nullptr;
  cl_sync_point_khr last = 0;  // each launch waits for the one before
  bool is_empty = true;
};

CommandBuffer::CommandBuffer(Context& context)
    : CommandBuffer(with_command_buffers(context), Unprobed()) {}

CommandBuffer::CommandBuffer(Context& context, Unprobed)
    : state_(std::make_unique<State>(
          device_value<cl_platform_id>(context.native_device(), CL_DEVICE_PLATFORM),
          context.queue())) {
  state_->queue = context.queue().native();
  cl_int status = CL_SUCCESS;
  state_->buffer = state_->entries.create(1, &state_->queue, nullptr, &status);
  check(status, "clCreateCommandBufferKHR");
}

CommandBuffer::~CommandBuffer() {
  if (state_->buffer && !process_is_ending()) state_->entries.release(state_->buffer);
}

void CommandBuffer::add(const Kernel& kernel, std::array<size_t, 3> global,
                        std::array<size_t, 3> local, std::string_view label) {
  if (global[0] == 0 || global[1] == 0 || global[2] == 0) return;
  cl_sync_point_khr done = 0;
  const cl_int status = state_->entries.add_kernel(
      state_->buffer, nullptr, nullptr, kernel.native(), 3, nullptr, global.data(), local.data(),
      state_->is_empty ? 0 : 1, state_->is_empty ? nullptr : &state_->last, &done, nullptr);
  check(status, fmt::format("recording of launch '{}' of kernel '{}'", label, kernel.name()));
  state_->last = done;
  state_->is_empty = false;
}

void CommandBuffer::finalize() {
  check(state_->entries.finalize(state_->buffer), "clFinalizeCommandBufferKHR");
}

void CommandBuffer::enqueue() {
  if (state_->is_empty) return;
  check(state_->entries.enqueue(0, nullptr, state_->buffer, 0, nullptr, nullptr),
        "clEnqueueCommandBufferKHR");
  state_->queue_of.watch_exit();
}

bool CommandBuffer::is_for(Context& context) const {
  return context.queue().native() == state_->queue;
}

}  // namespace bertcl::opencl
