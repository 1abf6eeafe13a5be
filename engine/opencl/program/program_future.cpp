// SPDX-License-Identifier: Apache-2.0
// A program that is built when somebody asks for it.
#include "opencl/program/program_future.hpp"

#include "bertcl/error.hpp"

namespace bertcl::opencl {

ProgramHandle ProgramFuture::get() {
  const std::lock_guard lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
  if (program_) return program_;
  try {
    program_ = build_();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::out_of_memory) failure_ = std::current_exception();
    throw;
  }
  build_ = nullptr;
  return program_;
}

}  // namespace bertcl::opencl
