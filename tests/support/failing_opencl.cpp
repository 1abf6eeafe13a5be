// SPDX-License-Identifier: Apache-2.0
// The OpenCL calls of bertcl under their own names, each of which asks whether it is to fail and
// else calls the next library of that name.
#include "tests/support/failing_opencl.hpp"

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#define CL_USE_DEPRECATED_OPENCL_2_2_APIS
#include <CL/cl.h>
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace bertcl::tests {
namespace {

std::atomic<int> registered_handlers{0};

std::vector<const char*>& names_of_calls() {
  static auto* all = new std::vector<const char*>;  // no destructor: exit handlers are counted
  return *all;
}

/// Adds a call that can fail to their names.
struct NamedCall {
  explicit NamedCall(const char* name) { names_of_calls().push_back(name); }
};

struct Rule {
  int first = 0, times = 0, status = 0, calls = 0;
  std::function<void()> action = nullptr;  // of the next call
};

struct Rules {
  Rules() {
    const char* wanted = std::getenv("FAIL_OPENCL");
    std::istringstream text(wanted ? wanted : "");
    std::string function;
    Rule rule;
    char colon = 0;
    if (std::getline(text, function, ':') && text >> rule.first >> colon >> rule.times)
      by_function[function] = rule;
  }
  std::mutex mutex;
  std::map<std::string, Rule> by_function;
  std::map<std::pair<const _cl_device_id*, cl_device_info>, std::uint64_t> answers;
  bool platforms_twice = false;
};

Rules& rules() {
  static Rules* all = new Rules;  // calls come until the very end of the process
  return *all;
}

/// The status of this call; CL_SUCCESS if it does not fail.
cl_int failure_of(const char* function, cl_int usual) {
  Rules& all = rules();
  std::unique_lock lock(all.mutex);
  const auto rule = all.by_function.find(function);
  if (rule == all.by_function.end()) return CL_SUCCESS;
  Rule& r = rule->second;
  ++r.calls;
  if (const auto action = std::exchange(r.action, nullptr)) {
    lock.unlock();
    action();
    return CL_SUCCESS;
  }
  if (r.calls < r.first || r.calls >= r.first + r.times) return CL_SUCCESS;
  return r.status ? r.status : usual;
}

template <typename Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

}  // namespace

void fail_opencl(const char* function, int first, int times, int status) {
  Rules& all = rules();
  std::lock_guard lock(all.mutex);
  all.by_function[function] = {first, times, status, 0};
}

void at_opencl_call(const char* function, std::function<void()> action) {
  Rules& all = rules();
  std::lock_guard lock(all.mutex);
  all.by_function[function] = {.action = std::move(action)};
}

int exit_handlers() { return registered_handlers; }

void answer_opencl(const _cl_device_id* device, unsigned query, std::uint64_t value) {
  Rules& all = rules();
  std::lock_guard lock(all.mutex);
  all.answers[{device, query}] = value;
}

void repeat_platforms() {
  Rules& all = rules();
  std::lock_guard lock(all.mutex);
  all.platforms_twice = true;
}

int opencl_calls(const char* function) {
  Rules& all = rules();
  std::lock_guard lock(all.mutex);
  return all.by_function[function].calls;
}

void mend_opencl() {
  Rules& all = rules();
  std::lock_guard lock(all.mutex);
  all.by_function.clear();
  all.answers.clear();
  all.platforms_twice = false;
}

const std::vector<const char*>& failing_functions() { return names_of_calls(); }

}  // namespace bertcl::tests

extern "C" {

// ThreadSanitizer registers a handler before code that it has instrumented can run.
#ifndef __SANITIZE_THREAD__
int __cxa_atexit(void (*handler)(void*), void* argument, void* library) {
  static const auto real = bertcl::tests::next<decltype(&::__cxa_atexit)>("__cxa_atexit");
  ++bertcl::tests::registered_handlers;
  return real(handler, argument, library);
}
#endif

using Notify = void(CL_CALLBACK*)(cl_program, void*);
using MemNotify = void(CL_CALLBACK*)(cl_mem, void*);
using ContextNotify = void(CL_CALLBACK*)(const char*, const void*, size_t, void*);

#define STATUS_CALL(name, failure, parameters, arguments)                   \
  const bertcl::tests::NamedCall named_##name(#name);                       \
  cl_int name parameters {                                                  \
    static const auto real = bertcl::tests::next<decltype(&::name)>(#name); \
    const cl_int failed = bertcl::tests::failure_of(#name, failure);        \
    return failed ? failed : real arguments;                                \
  }
#define OBJECT_CALL(type, name, failure, parameters, arguments)             \
  const bertcl::tests::NamedCall named_##name(#name);                       \
  type name parameters {                                                    \
    static const auto real = bertcl::tests::next<decltype(&::name)>(#name); \
    const cl_int failed = bertcl::tests::failure_of(#name, failure);        \
    if (!failed) return real arguments;                                     \
    if (status) *status = failed;                                           \
    return nullptr;                                                         \
  }

STATUS_CALL(clFinish, CL_OUT_OF_RESOURCES, (cl_command_queue a), (a))
STATUS_CALL(clFlush, CL_OUT_OF_RESOURCES, (cl_command_queue a), (a))
STATUS_CALL(clBuildProgram, CL_BUILD_PROGRAM_FAILURE,
            (cl_program a, cl_uint b, const cl_device_id* c, const char* d, Notify e, void* f),
            (a, b, c, d, e, f))
STATUS_CALL(clCompileProgram, CL_COMPILE_PROGRAM_FAILURE,
            (cl_program a, cl_uint b, const cl_device_id* c, const char* d, cl_uint e,
             const cl_program* f, const char** g, Notify h, void* i),
            (a, b, c, d, e, f, g, h, i))
STATUS_CALL(clSetKernelArg, CL_OUT_OF_HOST_MEMORY,
            (cl_kernel a, cl_uint b, size_t c, const void* d), (a, b, c, d))
STATUS_CALL(clGetKernelInfo, CL_OUT_OF_HOST_MEMORY,
            (cl_kernel a, cl_kernel_info b, size_t c, void* d, size_t* e), (a, b, c, d, e))
STATUS_CALL(clEnqueueNDRangeKernel, CL_OUT_OF_RESOURCES,
            (cl_command_queue a, cl_kernel b, cl_uint c, const size_t* d, const size_t* e,
             const size_t* f, cl_uint g, const cl_event* h, cl_event* i),
            (a, b, c, d, e, f, g, h, i))
STATUS_CALL(clEnqueueReadBuffer, CL_OUT_OF_RESOURCES,
            (cl_command_queue a, cl_mem b, cl_bool c, size_t d, size_t e, void* f, cl_uint g,
             const cl_event* h, cl_event* i),
            (a, b, c, d, e, f, g, h, i))
STATUS_CALL(clEnqueueWriteBuffer, CL_OUT_OF_RESOURCES,
            (cl_command_queue a, cl_mem b, cl_bool c, size_t d, size_t e, const void* f, cl_uint g,
             const cl_event* h, cl_event* i),
            (a, b, c, d, e, f, g, h, i))
STATUS_CALL(clEnqueueCopyBuffer, CL_OUT_OF_RESOURCES,
            (cl_command_queue a, cl_mem b, cl_mem c, size_t d, size_t e, size_t f, cl_uint g,
             const cl_event* h, cl_event* i),
            (a, b, c, d, e, f, g, h, i))
STATUS_CALL(clEnqueueFillBuffer, CL_OUT_OF_RESOURCES,
            (cl_command_queue a, cl_mem b, const void* c, size_t d, size_t e, size_t f, cl_uint g,
             const cl_event* h, cl_event* i),
            (a, b, c, d, e, f, g, h, i))
STATUS_CALL(clEnqueueMarkerWithWaitList, CL_OUT_OF_RESOURCES,
            (cl_command_queue a, cl_uint b, const cl_event* c, cl_event* d), (a, b, c, d))
STATUS_CALL(clWaitForEvents, CL_OUT_OF_RESOURCES, (cl_uint a, const cl_event* b), (a, b))
STATUS_CALL(clSetMemObjectDestructorCallback, CL_OUT_OF_HOST_MEMORY,
            (cl_mem a, MemNotify b, void* c), (a, b, c))
STATUS_CALL(clGetDeviceIDs, CL_OUT_OF_HOST_MEMORY,
            (cl_platform_id a, cl_device_type b, cl_uint c, cl_device_id* d, cl_uint* e),
            (a, b, c, d, e))
OBJECT_CALL(cl_context, clCreateContext, CL_OUT_OF_HOST_MEMORY,
            (const cl_context_properties* a, cl_uint b, const cl_device_id* c, ContextNotify d,
             void* e, cl_int* status),
            (a, b, c, d, e, status))
OBJECT_CALL(cl_command_queue, clCreateCommandQueue, CL_OUT_OF_RESOURCES,
            (cl_context a, cl_device_id b, cl_command_queue_properties c, cl_int* status),
            (a, b, c, status))
OBJECT_CALL(cl_mem, clCreateBuffer, CL_MEM_OBJECT_ALLOCATION_FAILURE,
            (cl_context a, cl_mem_flags b, size_t c, void* d, cl_int* status), (a, b, c, d, status))
OBJECT_CALL(cl_mem, clCreateSubBuffer, CL_OUT_OF_RESOURCES,
            (cl_mem a, cl_mem_flags b, cl_buffer_create_type c, const void* d, cl_int* status),
            (a, b, c, d, status))
OBJECT_CALL(cl_program, clCreateProgramWithSource, CL_OUT_OF_HOST_MEMORY,
            (cl_context a, cl_uint b, const char** c, const size_t* d, cl_int* status),
            (a, b, c, d, status))
OBJECT_CALL(cl_program, clCreateProgramWithBinary, CL_INVALID_BINARY,
            (cl_context a, cl_uint b, const cl_device_id* c, const size_t* d,
             const unsigned char** e, cl_int* f, cl_int* status),
            (a, b, c, d, e, f, status))
OBJECT_CALL(cl_program, clLinkProgram, CL_LINK_PROGRAM_FAILURE,
            (cl_context a, cl_uint b, const cl_device_id* c, const char* d, cl_uint e,
             const cl_program* f, Notify g, void* h, cl_int* status),
            (a, b, c, d, e, f, g, h, status))
OBJECT_CALL(cl_kernel, clCreateKernel, CL_OUT_OF_RESOURCES,
            (cl_program a, const char* b, cl_int* status), (a, b, status))

cl_int clGetDeviceInfo(cl_device_id device, cl_device_info query, size_t room, void* value,
                       size_t* bytes) {
  static const auto real = bertcl::tests::next<decltype(&::clGetDeviceInfo)>("clGetDeviceInfo");
  auto& all = bertcl::tests::rules();
  std::lock_guard lock(all.mutex);
  for (const _cl_device_id* of :
       {static_cast<const _cl_device_id*>(device), static_cast<const _cl_device_id*>(nullptr)})
    if (const auto answer = all.answers.find({of, query}); answer != all.answers.end() && value) {
      std::memcpy(value, &answer->second, std::min(room, sizeof(answer->second)));
      return CL_SUCCESS;
    }
  return real(device, query, room, value, bytes);
}

cl_int clGetPlatformIDs(cl_uint room, cl_platform_id* platforms, cl_uint* count) {
  static const auto real = bertcl::tests::next<decltype(&::clGetPlatformIDs)>("clGetPlatformIDs");
  cl_uint listed = 0;
  const cl_int status = real(room, platforms, &listed);
  auto& all = bertcl::tests::rules();
  std::lock_guard lock(all.mutex);
  const bool twice = status == CL_SUCCESS && all.platforms_twice;
  if (count) *count = twice ? 2 * listed : listed;
  if (twice && platforms) std::copy_n(platforms, room - listed, platforms + listed);
  return status;
}
}
