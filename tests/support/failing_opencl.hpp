// SPDX-License-Identifier: Apache-2.0
// OpenCL calls that fail when a test says so, as those of a driver do.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

struct _cl_device_id;

namespace bertcl::tests {

/// From now on call `first` of `function` (1: the next) and the `times` - 1 after it fail without
/// reaching the driver, with this status; 0: the usual one of the function. Several functions may
/// fail at once.
///
/// The same for a whole program: LD_PRELOAD of this library, and FAIL_OPENCL=clFinish:1:2, which
/// are the function, `first` and `times`.
void fail_opencl(const char* function, int first, int times = 1, int status = 0);

/// `action` runs once, in the next call of `function`, which does not fail.
void at_opencl_call(const char* function, std::function<void()> action);

/// How often `function` has been called since fail_opencl() named it.
int opencl_calls(const char* function);

/// How many exit handlers and destructors of statics this process has registered.
int exit_handlers();

/// From now on clGetDeviceInfo() answers a query of `device` with `value`; null: of every device.
void answer_opencl(const _cl_device_id* device, unsigned query, std::uint64_t value);

/// From now on clGetPlatformIDs() gives each platform twice.
void repeat_platforms();

/// No call fails any more, and answers are those of the driver.
void mend_opencl();

/// The functions that can fail.
const std::vector<const char*>& failing_functions();

/// Calls fail until the end of the scope.
class FailingOpencl {
 public:
  explicit FailingOpencl(const char* function, int first = 1, int times = 1, int status = 0) {
    fail_opencl(function, first, times, status);
  }
  ~FailingOpencl() { mend_opencl(); }
  FailingOpencl(const FailingOpencl&) = delete;
  FailingOpencl& operator=(const FailingOpencl&) = delete;
};

}  // namespace bertcl::tests
