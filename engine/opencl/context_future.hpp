// SPDX-License-Identifier: Apache-2.0
// A device that a thread of its own opens, while the host reads what is to run there.
#pragma once
#include <future>
#include <memory>
#include <string>

namespace bertcl::opencl {

class Context;

/// A context that is open already, or that another thread is opening: a driver takes long to start
/// (PoCL loads LLVM), and a model is read and compiled without a device. Copies share the context;
/// the destructor of the last one waits for the thread.
class ContextFuture {
 public:
  /// Of no device.
  ContextFuture() = default;
  /// Not explicit: an open context goes wherever one that is being opened does.
  ContextFuture(std::shared_ptr<Context> context);

  /// Begins to open the device that `selector` names (see select_device()), and returns at once.
  static ContextFuture open(const std::string& selector);

  /// False: of no device.
  explicit operator bool() const { return context_.valid(); }

  /// Waits until the device is open; null: of no device. Throws what Context::create() threw, at
  /// each call.
  std::shared_ptr<Context> get() const { return context_.valid() ? context_.get() : nullptr; }

  /// What `work` returns. Where both the work and the device fail, the error is that of the device:
  /// it is found in every run, whatever the work is.
  template <class Work>
  auto meanwhile(const Work& work) const {
    try {
      return work();
    } catch (...) {
      get();
      throw;
    }
  }

 private:
  std::shared_future<std::shared_ptr<Context>> context_;
};

}  // namespace bertcl::opencl
