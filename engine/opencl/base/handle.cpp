// SPDX-License-Identifier: Apache-2.0
// Release functions of the CL object handles.
#include "opencl/base/handle.hpp"

#include "opencl/base/cl.hpp"

namespace bertcl::opencl {

ContextHandle adopt(_cl_context* object) { return {object, clReleaseContext}; }
QueueHandle adopt(_cl_command_queue* object) { return {object, clReleaseCommandQueue}; }
EventHandle adopt(_cl_event* object) { return {object, clReleaseEvent}; }
KernelHandle adopt(_cl_kernel* object) { return {object, clReleaseKernel}; }
MemHandle adopt(_cl_mem* object) { return {object, clReleaseMemObject}; }
ProgramHandle adopt(_cl_program* object) { return {object, clReleaseProgram}; }

}  // namespace bertcl::opencl
