// SPDX-License-Identifier: Apache-2.0
// The arguments of built kernels, by -cl-kernel-arg-info.
#include "tests/kernels/kernel_arguments.hpp"

#include "bertcl/error.hpp"
#include "opencl/base/cl.hpp"
#include "opencl/program/sources.hpp"

namespace bertcl::tests {
namespace {

/// A text that an OpenCL call gives by (bytes, target, bytes needed).
template <typename Query>
std::string text_of(const Query& query) {
  size_t bytes = 0;
  if (query(size_t{0}, nullptr, &bytes) != CL_SUCCESS)
    throw Error("the driver does not tell about the arguments of its kernels");
  std::string text(bytes, '\0');
  query(bytes, text.data(), nullptr);
  text.resize(text.find('\0'));
  return text;
}

cl_device_id first_cpu() {
  cl_uint count = 0;
  clGetPlatformIDs(0, nullptr, &count);
  std::vector<cl_platform_id> platforms(count);
  clGetPlatformIDs(count, platforms.data(), nullptr);
  for (cl_platform_id platform : platforms) {
    cl_device_id device = nullptr;
    if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_CPU, 1, &device, nullptr) == CL_SUCCESS)
      return device;
  }
  throw Error("there is no CPU among the OpenCL devices");
}

KernelArguments arguments_of(cl_kernel kernel) {
  KernelArguments found;
  found.name = text_of([&](size_t bytes, void* to, size_t* needed) {
    return clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, bytes, to, needed);
  });
  cl_uint count = 0;
  clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof(count), &count, nullptr);
  for (cl_uint i = 0; i < count; ++i) {
    const auto ask = [&](cl_kernel_arg_info what) {
      return text_of([&](size_t bytes, void* to, size_t* needed) {
        return clGetKernelArgInfo(kernel, i, what, bytes, to, needed);
      });
    };
    found.arguments.push_back({ask(CL_KERNEL_ARG_NAME), ask(CL_KERNEL_ARG_TYPE_NAME)});
  }
  return found;
}

}  // namespace

std::optional<std::vector<KernelArguments>> kernel_arguments(const std::string& program,
                                                             const opencl::Defines& defines) {
  cl_device_id device = first_cpu();
  cl_int status = CL_SUCCESS;
  // One for all programs: PoCL reads its library of functions once in each.
  static const auto* const context = new opencl::ContextHandle(
      opencl::adopt(clCreateContext(nullptr, 1, &device, nullptr, nullptr, &status)));
  const std::string source = opencl::final_source(program).text;
  const char* text = source.c_str();
  const opencl::ProgramHandle built =
      opencl::adopt(clCreateProgramWithSource(context->get(), 1, &text, nullptr, &status));
  std::string options = "-cl-std=CL1.2 -cl-kernel-arg-info -cl-opt-disable -w";
  for (const auto& [name, value] : defines) options += " -D" + name + "=" + std::to_string(value);
  status = clBuildProgram(built.get(), 1, &device, options.c_str(), nullptr, nullptr);
  if (status != CL_SUCCESS) return std::nullopt;
  cl_uint count = 0;
  clCreateKernelsInProgram(built.get(), 0, nullptr, &count);
  std::vector<cl_kernel> kernels(count);
  clCreateKernelsInProgram(built.get(), count, kernels.data(), nullptr);
  std::vector<KernelArguments> found;
  for (cl_kernel kernel : kernels) found.push_back(arguments_of(opencl::adopt(kernel).get()));
  return found;
}

}  // namespace bertcl::tests
