// SPDX-License-Identifier: Apache-2.0
// A semaphore that poll() can wait for.
#pragma once
#include <sys/eventfd.h>
#include <unistd.h>

#include "bertcl/error.hpp"

namespace bertcl::serve {

/// A descriptor that can be read as often as set() has been called.
class Semaphore {
 public:
  Semaphore() : descriptor_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE)) {
    if (descriptor_ < 0) throw Error("cannot create an eventfd", ErrorCode::io);
  }
  ~Semaphore() { close(descriptor_); }
  Semaphore(const Semaphore&) = delete;
  Semaphore& operator=(const Semaphore&) = delete;
  void set() { eventfd_write(descriptor_, 1); }
  /// Takes one set() back; false if there is none.
  bool take() {
    eventfd_t value = 0;
    return eventfd_read(descriptor_, &value) == 0;
  }
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

}  // namespace bertcl::serve
