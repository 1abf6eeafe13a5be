// SPDX-License-Identifier: Apache-2.0
// Argument binding of kernels.
#include "opencl/kernel.hpp"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "bertcl/error.hpp"
#include "opencl/base/cl.hpp"
#include "opencl/context.hpp"
#include "opencl/program/program_future.hpp"

namespace bertcl::opencl {

struct Kernel::State {
  std::shared_ptr<Context> context;  // null once the kernel is built
  std::shared_ptr<ProgramFuture> program;
  std::string program_name;
  std::string kernel_name;
  Defines defines;
  KernelHandle kernel;           // null until the kernel is built
  std::vector<MemHandle> bound;  // one per argument: CL itself does not retain bound buffers

  struct EarlyArgument {
    unsigned index;
    size_t bytes;
    std::vector<std::byte> value;  // empty: none, but local memory of that many bytes
    MemHandle keep;
  };
  std::vector<EarlyArgument> early_arguments;  // given before the kernel was built

  void build();
  void set(_cl_kernel* to, unsigned index, size_t bytes, const void* value, const MemHandle& keep);
};

void Kernel::State::build() {
  cl_int status = CL_SUCCESS;
  const auto make = [&] {
    return adopt(clCreateKernel(program->get().get(), kernel_name.c_str(), &status));
  };
  KernelHandle made = make();
  if (status == CL_INVALID_KERNEL_NAME && context)
    if (ProgramHandle from_source = context->rebuilt(program->get())) {
      program = std::make_shared<ProgramFuture>(std::move(from_source));  // also for duplicates
      made = make();
    }
  check(status, fmt::format("kernel '{}' of program '{}'", kernel_name, program_name));
  cl_uint arguments = 0;
  check(clGetKernelInfo(made.get(), CL_KERNEL_NUM_ARGS, sizeof(arguments), &arguments, nullptr),
        "clGetKernelInfo");
  bound.resize(arguments);
  for (const EarlyArgument& a : early_arguments)
    set(made.get(), a.index, a.bytes, a.value.empty() ? nullptr : a.value.data(), a.keep);
  // Not before: a refused argument is told by the next build(), too.
  kernel = std::move(made);
  early_arguments.clear();
  context.reset();
}

void Kernel::State::set(_cl_kernel* to, unsigned index, size_t bytes, const void* value,
                        const MemHandle& keep) {
  const cl_int status = clSetKernelArg(to, index, bytes, value);
  if (status != CL_SUCCESS)
    check(status, fmt::format("argument {} ({} bytes) of kernel '{}' of program '{}'", index, bytes,
                              kernel_name, program_name));
  bound[index] = keep;
}

Kernel::Kernel(std::shared_ptr<Context> context, std::shared_ptr<ProgramFuture> program,
               std::string program_name, std::string kernel_name, Defines defines)
    : state_(std::make_shared<State>()) {
  state_->context = std::move(context);
  state_->program = std::move(program);
  state_->program_name = std::move(program_name);
  state_->kernel_name = std::move(kernel_name);
  state_->defines = std::move(defines);
}

const Kernel& Kernel::build() const {
  if (!state_->kernel) state_->build();
  return *this;
}

Kernel Kernel::duplicate() const {
  return {state_->context, state_->program, state_->program_name, state_->kernel_name,
          state_->defines};
}

const std::string& Kernel::name() const { return state_->kernel_name; }
const std::string& Kernel::program_name() const { return state_->program_name; }
const Defines& Kernel::defines() const { return state_->defines; }
unsigned Kernel::argument_count() const {
  return static_cast<unsigned>(build().state_->bound.size());
}
_cl_kernel* Kernel::native() const { return build().state_->kernel.get(); }

void Kernel::check_count(size_t given) const {
  if (given == argument_count()) return;
  throw Error(fmt::format("kernel '{}' of program '{}' takes {} arguments, got {}", name(),
                          program_name(), argument_count(), given));
}

Kernel& Kernel::set_raw(unsigned index, size_t bytes, const void* value, const MemHandle& keep) {
  if (state_->kernel) {
    state_->set(state_->kernel.get(), index, bytes, value, keep);
    return *this;
  }
  const auto* first = static_cast<const std::byte*>(value);
  std::vector<std::byte> copy(first, value ? first + bytes : first);
  std::erase_if(state_->early_arguments, [&](const auto& early) { return early.index == index; });
  state_->early_arguments.push_back({index, bytes, std::move(copy), keep});
  return *this;
}

Kernel& Kernel::set(unsigned index, const KernelArgument& value) {
  if (const auto* integer = std::get_if<int32_t>(&value.value_))
    return set_raw(index, sizeof(*integer), integer, {});
  if (const auto* real = std::get_if<float>(&value.value_))
    return set_raw(index, sizeof(*real), real, {});
  const MemHandle& memory = std::get<MemHandle>(value.value_);
  cl_mem mem = memory.get();
  return set_raw(index, sizeof(mem), &mem, memory);
}

}  // namespace bertcl::opencl
