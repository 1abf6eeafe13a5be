// SPDX-License-Identifier: Apache-2.0
// Shared ownership of CL objects without including the CL headers.
#pragma once
#include <memory>

struct _cl_context;
struct _cl_command_queue;
struct _cl_device_id;
struct _cl_event;
struct _cl_kernel;
struct _cl_mem;
struct _cl_program;

namespace bertcl::opencl {

using ContextHandle = std::shared_ptr<_cl_context>;
using QueueHandle = std::shared_ptr<_cl_command_queue>;
using DeviceHandle = std::shared_ptr<_cl_device_id>;
using EventHandle = std::shared_ptr<_cl_event>;
using KernelHandle = std::shared_ptr<_cl_kernel>;
using MemHandle = std::shared_ptr<_cl_mem>;
using ProgramHandle = std::shared_ptr<_cl_program>;

/// Takes over one reference of a CL object and releases it with the last handle, except in a child
/// of fork().
ContextHandle adopt(_cl_context* object);
QueueHandle adopt(_cl_command_queue* object);
DeviceHandle adopt(_cl_device_id* object);
EventHandle adopt(_cl_event* object);
KernelHandle adopt(_cl_kernel* object);
MemHandle adopt(_cl_mem* object);
ProgramHandle adopt(_cl_program* object);

}  // namespace bertcl::opencl
