// SPDX-License-Identifier: Apache-2.0
// Transfers, views and mapping of device memory.
#include "opencl/buffer.hpp"

#include <fmt/format.h>

#include "bertcl/error.hpp"
#include "opencl/base/cl.hpp"
#include "opencl/context.hpp"
#include "opencl/queue.hpp"

namespace bertcl::opencl {

void Buffer::check_range(const char* action, size_t offset, size_t bytes) const {
  if (offset <= size_ && bytes <= size_ - offset) return;
  throw Error(fmt::format("{} of {} bytes at offset {} is outside a buffer of {} bytes", action,
                          bytes, offset, size_));
}

void Buffer::write(std::span<const std::byte> data, size_t offset) {
  check_range("write", offset, data.size());
  if (data.empty()) return;
  const QueueHandle queue = context_->queue().handle();
  check(clEnqueueWriteBuffer(queue.get(), native(), CL_TRUE, offset, data.size(), data.data(), 0,
                             nullptr, nullptr),
        fmt::format("write of {} bytes to the device", data.size()));
}

void Buffer::write_async(std::span<const std::byte> data, size_t offset) {
  check_range("write", offset, data.size());
  if (data.empty()) return;
  const auto held = context_->queue().lock();
  check(clEnqueueWriteBuffer(context_->queue().native(), native(), CL_FALSE, offset, data.size(),
                             data.data(), 0, nullptr, nullptr),
        fmt::format("queued write of {} bytes to the device", data.size()));
}

void Buffer::read(std::span<std::byte> data, size_t offset) const {
  check_range("read", offset, data.size());
  if (data.empty()) return;
  const QueueHandle queue = context_->queue().handle();
  check(clEnqueueReadBuffer(queue.get(), native(), CL_TRUE, offset, data.size(), data.data(), 0,
                            nullptr, nullptr),
        fmt::format("read of {} bytes from the device", data.size()));
}

void Buffer::read_async(std::span<std::byte> data, Queue& queue, const EventHandle& point) const {
  check_range("read", 0, data.size());
  if (data.empty()) return;
  const cl_event event = point.get();
  check(clEnqueueReadBuffer(queue.native(), native(), CL_FALSE, 0, data.size(), data.data(), 1,
                            &event, nullptr),
        fmt::format("read of {} bytes from the device", data.size()));
}

void Buffer::copy_from(const Buffer& source, size_t bytes, size_t source_offset, size_t offset) {
  source.check_range("copy", source_offset, bytes);
  check_range("copy", offset, bytes);
  if (bytes == 0) return;
  const auto held = context_->queue().lock();
  check(clEnqueueCopyBuffer(context_->queue().native(), source.native(), native(), source_offset,
                            offset, bytes, 0, nullptr, nullptr),
        fmt::format("copy of {} bytes on the device", bytes));
}

void Buffer::fill(uint8_t pattern) {
  if (size_ == 0) return;
  const auto held = context_->queue().lock();
  check(clEnqueueFillBuffer(context_->queue().native(), native(), &pattern, 1, 0, size_, 0, nullptr,
                            nullptr),
        fmt::format("fill of {} bytes", size_));
}

Buffer Buffer::view(size_t offset, size_t bytes) const {
  check_range("view", offset, bytes);
  const unsigned align = context_ ? context_->info().base_align_bytes : 1;
  if (offset % align != 0)
    throw Error(fmt::format("view at offset {}: the device requires a multiple of {} bytes", offset,
                            align));
  Buffer part;
  part.context_ = context_;
  part.root_ = root_;
  part.root_offset_ = root_offset_ + offset;
  part.size_ = bytes;
  if (!mem_) return part;
  // A region must have at least one byte, so an empty view shows the first byte of the allocation.
  cl_buffer_region region{bytes == 0 ? 0 : part.root_offset_, bytes == 0 ? 1 : bytes};
  cl_int status = CL_SUCCESS;
  part.mem_ =
      adopt(clCreateSubBuffer(root_.get(), 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &status));
  check(status, fmt::format("view of {} bytes at offset {}", bytes, offset));
  return part;
}

Buffer Buffer::front(size_t bytes) const {
  check_range("front", 0, bytes);
  Buffer part;
  part.context_ = context_;
  part.root_ = root_;
  part.mem_ = mem_;
  part.root_offset_ = root_offset_;
  part.size_ = bytes;
  return part;
}

}  // namespace bertcl::opencl
