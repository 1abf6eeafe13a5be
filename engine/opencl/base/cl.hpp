// SPDX-License-Identifier: Apache-2.0
// The CL headers and the conversion of CL status codes into errors, for .cpp files of
// engine/opencl.
#pragma once
#define CL_TARGET_OPENCL_VERSION 300
// clCreateCommandQueue is the form that every OpenCL 1.2 device has.
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <CL/cl_ext.h>

#include <string>
#include <string_view>
#include <vector>

namespace bertcl::opencl {

/// Throws Error "<what>: <CL status name> (<code>)" unless `status` is CL_SUCCESS.
void check(cl_int status, std::string_view what);

/// A string property of a platform or device; empty where the driver does not know it.
template <typename Query, typename Object>
std::string string_info(Query query, Object object, cl_uint parameter) {
  size_t bytes = 0;
  if (query(object, parameter, 0, nullptr, &bytes) != CL_SUCCESS || bytes == 0) return {};
  std::string value(bytes, '\0');
  if (query(object, parameter, bytes, value.data(), nullptr) != CL_SUCCESS) return {};
  value.resize(value.find('\0') == std::string::npos ? value.size() : value.find('\0'));
  return value;
}

/// A scalar property of a device; zero where the driver does not know it.
template <typename T>
T device_value(cl_device_id device, cl_device_info parameter) {
  T value{};
  if (clGetDeviceInfo(device, parameter, sizeof(value), &value, nullptr) != CL_SUCCESS) return T{};
  return value;
}

}  // namespace bertcl::opencl
