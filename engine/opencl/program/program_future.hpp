// SPDX-License-Identifier: Apache-2.0
// A program that is built when somebody asks for it.
#pragma once
#include <exception>
#include <functional>
#include <mutex>
#include <utility>

#include "opencl/base/handle.hpp"

namespace bertcl::opencl {

/// Built by the thread that first asks for it; others wait for that thread. What `build` throws is
/// thrown at each call, but for what may pass (ErrorCode::out_of_memory, or no Error): then the
/// next call builds again.
class ProgramFuture {
 public:
  explicit ProgramFuture(std::function<ProgramHandle()> build) : build_(std::move(build)) {}
  explicit ProgramFuture(ProgramHandle program) : program_(std::move(program)) {}

  ProgramHandle get();

 private:
  std::mutex mutex_;  // held while it is built
  std::function<ProgramHandle()> build_;
  ProgramHandle program_;
  std::exception_ptr failure_;
};

}  // namespace bertcl::opencl
