// SPDX-License-Identifier: Apache-2.0
// Release functions of the CL object handles.
#include "opencl/base/handle.hpp"

#include "opencl/base/cl.hpp"
#include "opencl/base/exit_guard.hpp"

namespace bertcl::opencl {
namespace {

/// In a forked child the object stays: its release would wait for a lock of the driver that a
/// thread of the parent held at the fork.
template <auto kRelease>
constexpr auto release = [](auto* object) {
  if (!process_was_forked()) kRelease(object);
};

}  // namespace

ContextHandle adopt(_cl_context* object) { return {object, release<clReleaseContext>}; }
QueueHandle adopt(_cl_command_queue* object) { return {object, release<clReleaseCommandQueue>}; }
DeviceHandle adopt(_cl_device_id* object) { return {object, release<clReleaseDevice>}; }
EventHandle adopt(_cl_event* object) { return {object, release<clReleaseEvent>}; }
KernelHandle adopt(_cl_kernel* object) { return {object, release<clReleaseKernel>}; }
MemHandle adopt(_cl_mem* object) { return {object, release<clReleaseMemObject>}; }
ProgramHandle adopt(_cl_program* object) { return {object, release<clReleaseProgram>}; }

}  // namespace bertcl::opencl
