// SPDX-License-Identifier: Apache-2.0
// A kernel of a built program together with its bound arguments.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>

#include "opencl/base/handle.hpp"
#include "opencl/buffer.hpp"
#include "opencl/program/build.hpp"

namespace bertcl::opencl {

class Context;
class ProgramFuture;

/// A value for one kernel argument, for lists of arguments. Keeps its buffer alive.
class KernelArgument {
 public:
  KernelArgument(std::nullptr_t = nullptr) {}
  KernelArgument(const Buffer& buffer) : value_(buffer.handle()) {}
  KernelArgument(int32_t value) : value_(value) {}
  KernelArgument(float value) : value_(value) {}
  /// No implicit narrowing: cast sizes to int32_t where the value is known to fit.
  template <typename T>
  KernelArgument(T value) = delete;

 private:
  friend class Kernel;
  std::variant<MemHandle, int32_t, float> value_;
};

/// Handle of one kernel with one set of arguments. Copies share the arguments; a launch that needs
/// its own uses a duplicate(). Bound buffers are kept alive. One thread at a time may set arguments
/// or launch it.
///
/// Its program may not be built yet: build() or the first launch builds it.
class Kernel {
 public:
  Kernel() = default;
  /// Keeps `context` until it is built.
  Kernel(std::shared_ptr<Context> context, std::shared_ptr<ProgramFuture> program,
         std::string program_name, std::string kernel_name, Defines defines);

  /// Builds the program unless it is built, and sets the arguments given before. Throws Error as
  /// Context::kernel() and set() do; after ErrorCode::out_of_memory the next call builds it again.
  /// Does nothing once built.
  const Kernel& build() const;
  /// The same function with separate arguments, none of them set. Threads may duplicate a kernel
  /// concurrently while none builds it.
  Kernel duplicate() const;

  const std::string& name() const;          ///< kernel function
  const std::string& program_name() const;  ///< file stem
  const Defines& defines() const;           ///< of its program; none of a linked one
  unsigned argument_count() const;          ///< builds it
  explicit operator bool() const { return state_ != nullptr; }

  // Once it is built, each set() throws Error with program, kernel, argument index and CL status
  // name, for example CL_INVALID_ARG_SIZE where an int is given to a float parameter of another
  // size.
  Kernel& set(unsigned index, const KernelArgument& value);

  /// Builds it and binds all arguments in order; their number must be that of the kernel.
  template <typename... Args>
  Kernel& args(const Args&... values) {
    check_count(sizeof...(values));
    unsigned index = 0;
    (set(index++, values), ...);
    return *this;
  }

  _cl_kernel* native() const;  ///< builds it

 private:
  struct State;
  void check_count(size_t given) const;
  Kernel& set_raw(unsigned index, size_t bytes, const void* value, const MemHandle& keep);
  std::shared_ptr<State> state_;
};

}  // namespace bertcl::opencl
