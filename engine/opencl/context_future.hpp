// SPDX-License-Identifier: Apache-2.0
// A device that a separate thread opens while the host reads the model.
#pragma once
#include <future>
#include <memory>
#include <string>

namespace bertcl::opencl {

class Context;

/// A context that is open, or that another thread is opening: drivers are slow to start (PoCL loads
/// LLVM), and reading and compiling a model needs no device. Copies share the context; the
/// destructor of the last one waits for the thread.
class ContextFuture {
 public:
  /// Opens no device.
  ContextFuture() = default;
  /// Not explicit: an open context can be used wherever one that is being opened can.
  ContextFuture(std::shared_ptr<Context> context);

  /// Starts opening the device that `selector` names (see select_device()), and returns
  /// immediately.
  static ContextFuture open(const std::string& selector);

  /// False: of no device.
  explicit operator bool() const { return context_.valid(); }

  /// Waits until the device is open; null: of no device. Throws what Context::create() threw, at
  /// each call.
  std::shared_ptr<Context> get() const { return context_.valid() ? context_.get() : nullptr; }

  /// The result of `work`. If both the work and the device fail, the device's error is thrown: it
  /// occurs in every run, whatever the work is.
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
