// SPDX-License-Identifier: Apache-2.0
// OpenCL calls that fail when a test says so, as those of a driver do.
#pragma once

namespace bertcl::tests {

/// From now on call `first` of `function` (1: the next) and the `times` - 1 after it fail without
/// reaching the driver. Several functions may fail at once.
///
/// The same for a whole program: LD_PRELOAD of this library, and FAIL_OPENCL=clFinish:1:2, which
/// are the function, `first` and `times`.
void fail_opencl(const char* function, int first, int times = 1);

/// How often `function` has been called since fail_opencl() named it.
int opencl_calls(const char* function);

/// No call fails any more.
void mend_opencl();

/// The functions that can fail, up to a null pointer.
const char* const* failing_functions();

/// Calls fail until the end of the scope.
class FailingOpencl {
 public:
  explicit FailingOpencl(const char* function, int first = 1, int times = 1) {
    fail_opencl(function, first, times);
  }
  ~FailingOpencl() { mend_opencl(); }
  FailingOpencl(const FailingOpencl&) = delete;
  FailingOpencl& operator=(const FailingOpencl&) = delete;
};

}  // namespace bertcl::tests
