// SPDX-License-Identifier: Apache-2.0
// The thread that opens a device.
#include "opencl/context_future.hpp"

#include <utility>

#include "opencl/base/exit_guard.hpp"
#include "opencl/context.hpp"

namespace bertcl::opencl {

ContextFuture::ContextFuture(std::shared_ptr<Context> context) {
  if (!context) return;
  std::promise<std::shared_ptr<Context>> open;
  open.set_value(std::move(context));
  context_ = open.get_future().share();
}

ContextFuture ContextFuture::open(const std::string& selector) {
  refuse_fork();  // before there is a thread
  ContextFuture future;
  // A future of std::async() waits in its destructor, so the thread never outlives its users.
  future.context_ = std::async(std::launch::async, Context::create, selector).share();
  return future;
}

}  // namespace bertcl::opencl
