// SPDX-License-Identifier: Apache-2.0
// Work on the objects of a caller: its queues, its events and parts of its buffers.
#pragma once
#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "opencl/base/handle.hpp"
#include "opencl/buffer.hpp"
#include "opencl/kernel.hpp"

namespace bertcl::opencl {

class Context;

struct QueueOwner {
  _cl_context* context;
  _cl_device_id* device;
};

QueueOwner owner_of(_cl_command_queue* queue);

/// The queue with a reference of its own.
QueueHandle share(_cl_command_queue* queue);

/// Wraps the caller's context; all work goes to its in-order queue. Retains both. Throws Error if
/// they do not match.
std::shared_ptr<Context> context_on(_cl_context* context, _cl_command_queue* queue);

/// Waits for all that the queue was given.
void finish(_cl_command_queue* queue);

/// Throws Error where `queue` is not of the cl_context and the device of `context`.
void check_queue(const Context& context, _cl_command_queue* queue);

/// `bytes` bytes from `offset` on of a buffer of the caller, who keeps it until what reads and
/// writes it has run; its memory is freed when the caller releases it. An offset other than 0 takes
/// a view, which is a multiple of DeviceInfo::base_align_bytes away from the start of the
/// allocation and not to be had on devices without the capability overlapping_views. Throws Error,
/// which calls the buffer `name`, for all else.
Buffer borrow(const std::shared_ptr<Context>& context, _cl_mem* memory, size_t offset, size_t bytes,
              std::string_view name);

/// A buffer of the caller, whole, which is kept as long as the result. Throws Error as borrow()
/// does.
Buffer retain(const std::shared_ptr<Context>& context, _cl_mem* memory, std::string_view name);

/// True if two buffers share a byte, by the allocations and offsets of what they borrow.
bool overlap(_cl_mem* a, size_t a_offset, size_t a_bytes, _cl_mem* b, size_t b_offset,
             size_t b_bytes);

/// A command of the caller: its queue, what it waits for, and where its event is wanted, else null.
struct Command {
  _cl_command_queue* queue = nullptr;
  std::span<_cl_event* const> after = {};
  _cl_event** event = nullptr;
};

/// Queues one launch; nothing is set in `event` where it throws. Like Queue::launch(), but an empty
/// launch is an error.
void launch(const Kernel& kernel, std::array<size_t, 3> global, std::array<size_t, 3> local,
            const Command& command);

/// Queues nothing but the event.
void mark(const Command& command);

}  // namespace bertcl::opencl
