// SPDX-License-Identifier: Apache-2.0
// Checks of the caller's objects, and launches among them.
#include "opencl/launch/caller.hpp"

#include <fmt/format.h>

#include <utility>

#include "bertcl/error.hpp"
#include "opencl/base/cl.hpp"
#include "opencl/base/exit_guard.hpp"
#include "opencl/context.hpp"
#include "opencl/device/capabilities.hpp"
#include "opencl/grid.hpp"

namespace bertcl::opencl {
namespace {

template <typename T>
T queue_value(cl_command_queue queue, cl_command_queue_info parameter) {
  T value{};
  check(clGetCommandQueueInfo(queue, parameter, sizeof(value), &value, nullptr),
        "the given command queue");
  return value;
}

template <typename T>
T memory_value(cl_mem memory, cl_mem_info parameter, std::string_view name) {
  T value{};
  check(clGetMemObjectInfo(memory, parameter, sizeof(value), &value, nullptr), name);
  return value;
}

/// The allocation that a buffer is, or is a part of.
struct Place {
  cl_mem root;
  size_t offset;
};

Place place_of(cl_mem memory, std::string_view name) {
  const auto root = memory_value<cl_mem>(memory, CL_MEM_ASSOCIATED_MEMOBJECT, name);
  if (!root) return {memory, 0};
  return {root, memory_value<size_t>(memory, CL_MEM_OFFSET, name)};
}

/// The size of a buffer of the context's.
size_t checked_size(const Context& context, cl_mem memory, std::string_view name) {
  if (memory_value<cl_mem_object_type>(memory, CL_MEM_TYPE, name) != CL_MEM_OBJECT_BUFFER)
    throw Error(fmt::format("'{}' is an image or a pipe; give a buffer", name));
  if (memory_value<cl_context>(memory, CL_MEM_CONTEXT, name) != context.native())
    throw Error(fmt::format("'{}' belongs to another cl_context than the queue", name));
  return memory_value<size_t>(memory, CL_MEM_SIZE, name);
}

const cl_event* list_of(std::span<_cl_event* const> events) {
  return events.empty() ? nullptr : events.data();
}

}  // namespace

QueueOwner owner_of(_cl_command_queue* queue) {
  return {queue_value<cl_context>(queue, CL_QUEUE_CONTEXT),
          queue_value<cl_device_id>(queue, CL_QUEUE_DEVICE)};
}

QueueHandle share(_cl_command_queue* queue) {
  check(clRetainCommandQueue(queue), "the given command queue");
  return adopt(queue);
}

std::shared_ptr<Context> context_on(_cl_context* context, _cl_command_queue* queue) {
  if (!context || !queue) throw Error("context and command queue may not be null");
  const QueueOwner owner = owner_of(queue);
  if (owner.context != context)
    throw Error("the command queue belongs to another cl_context than the one given");
  if (queue_value<cl_command_queue_properties>(queue, CL_QUEUE_PROPERTIES) &
      CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE)
    throw Error("the command queue is out-of-order; give an in-order queue");
  return Context::wrap(context, owner.device, share(queue));
}

void finish(_cl_command_queue* queue) { check(clFinish(queue), "waiting for the given queue"); }

void check_queue(const Context& context, _cl_command_queue* queue) {
  const QueueOwner owner = owner_of(queue);
  if (owner.context != context.native())
    throw Error("the queue belongs to another cl_context; give one of the context's own");
  if (owner.device != context.native_device())
    throw Error(
        fmt::format("the queue belongs to another device; give one of '{}'", context.info().name));
}

Buffer borrow(const std::shared_ptr<Context>& context, _cl_mem* memory, size_t offset, size_t bytes,
              std::string_view name) {
  const size_t size = checked_size(*context, memory, name);
  if (offset > size || bytes > size - offset)
    throw Error(fmt::format("'{}' has {} bytes; {} are needed from offset {} on", name, size, bytes,
                            offset));
  // Not retained: a kernel keeps its arguments until the next launch, the caller's buffer may go
  // before.
  if (offset == 0 || bytes == 0) return Buffer(context, MemHandle(memory, [](cl_mem) {}), bytes);
  const Place place = place_of(memory, name);
  const size_t align = context->info().base_align_bytes;
  if ((place.offset + offset) % align != 0)
    throw Error(fmt::format("'{}' begins at byte {}{}; '{}' requires a multiple of {}", name,
                            offset,
                            place.offset ? fmt::format(" of a sub-buffer at {}", place.offset) : "",
                            context->info().name, align));
  if (!context->capabilities().overlapping_views)
    throw Error(
        fmt::format("'{}' begins at byte {}, which crashes the driver of '{}': give it a buffer of "
                    "its own (capability overlapping_views)",
                    name, offset, context->info().name));
  const cl_buffer_region region{place.offset + offset, bytes};
  cl_int status = CL_SUCCESS;
  MemHandle view =
      adopt(clCreateSubBuffer(place.root, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &status));
  check(status, fmt::format("view of '{}', {} bytes at offset {}", name, bytes, offset));
  return Buffer(context, std::move(view), bytes);
}

Buffer retain(const std::shared_ptr<Context>& context, _cl_mem* memory, std::string_view name) {
  const size_t size = checked_size(*context, memory, name);
  check(clRetainMemObject(memory), name);
  return Buffer(context, adopt(memory), size);
}

bool overlap(_cl_mem* a, size_t a_offset, size_t a_bytes, _cl_mem* b, size_t b_offset,
             size_t b_bytes) {
  const Place at = place_of(a, "a buffer"), bt = place_of(b, "a buffer");
  const size_t a_begin = at.offset + a_offset, b_begin = bt.offset + b_offset;
  return at.root == bt.root && a_begin < b_begin + b_bytes && b_begin < a_begin + a_bytes;
}

void launch(const Kernel& kernel, std::array<size_t, 3> global, std::array<size_t, 3> local,
            const Command& command) {
  const cl_int status = clEnqueueNDRangeKernel(
      command.queue, kernel.build().native(), 3, nullptr, global.data(), local.data(),
      static_cast<cl_uint>(command.after.size()), list_of(command.after), command.event);
  check(status,
        fmt::format("launch of kernel '{}' of program '{}', global {}x{}x{}, local {}x{}x{}{}",
                    kernel.name(), kernel.program_name(), global[0], global[1], global[2], local[0],
                    local[1], local[2], hint_of_groups({global, local})));
  static const bool watched = (watch_exit(), true);
  static_cast<void>(watched);
}

void mark(const Command& command) {
  if (!command.event && command.after.empty()) return;
  check(clEnqueueMarkerWithWaitList(command.queue, static_cast<cl_uint>(command.after.size()),
                                    list_of(command.after), command.event),
        "clEnqueueMarkerWithWaitList");
}

}  // namespace bertcl::opencl
