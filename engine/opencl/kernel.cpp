// SPDX-License-Identifier: Apache-2.0
// Argument binding of kernels.
#include "opencl/kernel.hpp"

#include <fmt/format.h>

#include <vector>

#include "bertcl/error.hpp"
#include "opencl/cl.hpp"

namespace bertcl::opencl {

struct Kernel::State {
  ProgramHandle program;
  std::string program_name;
  std::string kernel_name;
  KernelHandle kernel;
  std::vector<MemHandle> bound;  // one per argument: CL itself does not retain bound buffers
};

Kernel::Kernel(ProgramHandle program, std::string program_name, std::string kernel_name)
    : state_(std::make_shared<State>()) {
  cl_int status = CL_SUCCESS;
  state_->kernel = adopt(clCreateKernel(program.get(), kernel_name.c_str(), &status));
  check(status, fmt::format("kernel '{}' of program '{}'", kernel_name, program_name));
  cl_uint arguments = 0;
  check(clGetKernelInfo(state_->kernel.get(), CL_KERNEL_NUM_ARGS, sizeof(arguments), &arguments,
                        nullptr),
        "clGetKernelInfo");
  state_->bound.resize(arguments);
  state_->program = std::move(program);
  state_->program_name = std::move(program_name);
  state_->kernel_name = std::move(kernel_name);
}

Kernel Kernel::clone() const {
  return Kernel(state_->program, state_->program_name, state_->kernel_name);
}

const std::string& Kernel::name() const { return state_->kernel_name; }
const std::string& Kernel::program_name() const { return state_->program_name; }
unsigned Kernel::argument_count() const { return static_cast<unsigned>(state_->bound.size()); }
_cl_kernel* Kernel::native() const { return state_->kernel.get(); }

void Kernel::check_count(size_t given) const {
  if (given == state_->bound.size()) return;
  throw Error(fmt::format("kernel '{}' of program '{}' has {} arguments, {} were given", name(),
                          program_name(), state_->bound.size(), given));
}

Kernel& Kernel::set_raw(unsigned index, size_t bytes, const void* value, const MemHandle& keep) {
  const cl_int status = clSetKernelArg(native(), index, bytes, value);
  if (status != CL_SUCCESS)
    check(status, fmt::format("argument {} ({} bytes) of kernel '{}' of program '{}'", index, bytes,
                              name(), program_name()));
  state_->bound[index] = keep;
  return *this;
}

Kernel& Kernel::set(unsigned index, const Buffer& buffer) {
  cl_mem mem = buffer.native();
  return set_raw(index, sizeof(mem), &mem, buffer.handle());
}

Kernel& Kernel::set(unsigned index, std::nullptr_t) {
  cl_mem mem = nullptr;
  return set_raw(index, sizeof(mem), &mem, {});
}

Kernel& Kernel::set(unsigned index, int32_t value) {
  return set_raw(index, sizeof(value), &value, {});
}

Kernel& Kernel::set(unsigned index, uint32_t value) {
  return set_raw(index, sizeof(value), &value, {});
}

Kernel& Kernel::set(unsigned index, float value) {
  return set_raw(index, sizeof(value), &value, {});
}

Kernel& Kernel::set(unsigned index, LocalMemory local) {
  return set_raw(index, local.bytes, nullptr, {});
}

}  // namespace bertcl::opencl
