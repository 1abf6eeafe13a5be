// SPDX-License-Identifier: Apache-2.0
// Device memory: a move-only buffer and views into it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "opencl/base/handle.hpp"

namespace bertcl::opencl {

class Context;
class Queue;

/// Memory of one device, made by Context::allocate(). A default-made Buffer holds nothing, has size
/// 0 and binds as a null pointer. Transfers go through the context's queue, in order with the
/// launches. Offsets and sizes are bytes; every range is checked against size() and throws Error
/// outside of it.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&&) = default;
  Buffer& operator=(Buffer&&) = default;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  size_t size() const { return size_; }
  explicit operator bool() const { return mem_ != nullptr; }

  /// Copies to the device; `data` may be released when the call returns.
  void write(std::span<const std::byte> data, size_t offset = 0);
  /// Queues a copy to the device; `data` must live until Queue::finish() or a read() after it.
  void write_async(std::span<const std::byte> data, size_t offset = 0);
  /// Waits for all work queued before, then copies to the host.
  void read(std::span<std::byte> data, size_t offset = 0) const;
  /// Queues a copy to the host on another queue than the context's, once `point` is reached. `data`
  /// must live until finish() of that queue, after which it holds it. A driver may wait for both.
  void read_async(std::span<std::byte> data, Queue& queue, const EventHandle& point) const;
  /// Queues a copy of `bytes` bytes from `source` on the device.
  void copy_from(const Buffer& source, size_t bytes, size_t source_offset = 0, size_t offset = 0);
  /// Queues setting every byte to `pattern`.
  void fill(uint8_t pattern);

  /// A part of this buffer that shares its memory and keeps it alive. `offset` is a multiple of
  /// DeviceInfo::base_align_bytes.
  Buffer view(size_t offset, size_t bytes) const;

  /// The first bytes of this buffer through the same handle, without a view.
  Buffer front(size_t bytes) const;

  template <typename T>
  void upload(const std::vector<T>& values, size_t offset = 0) {
    write(std::as_bytes(std::span(values)), offset);
  }
  template <typename T>
  std::vector<T> download() const {
    std::vector<T> values(size_ / sizeof(T));
    read(std::as_writable_bytes(std::span(values)));
    return values;
  }

  _cl_mem* native() const { return mem_.get(); }
  const MemHandle& handle() const { return mem_; }

 private:
  friend class Context;
  friend Buffer borrow(const std::shared_ptr<Context>&, _cl_mem*, size_t, size_t, std::string_view);
  friend Buffer retain(const std::shared_ptr<Context>&, _cl_mem*, std::string_view);
  Buffer(std::shared_ptr<Context> context, MemHandle mem, size_t bytes)
      : context_(std::move(context)), root_(mem), mem_(std::move(mem)), size_(bytes) {}
  void check_range(const char* action, size_t offset, size_t bytes) const;

  std::shared_ptr<Context> context_;
  MemHandle root_;          // the allocation: views of views are made from it
  MemHandle mem_;           // what kernels are given
  size_t root_offset_ = 0;  // where this view starts in root_
  size_t size_ = 0;
};

}  // namespace bertcl::opencl
