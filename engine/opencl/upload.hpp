// SPDX-License-Identifier: Apache-2.0
// Device memory that holds values of the host.
#pragma once
#include <vector>

#include "opencl/context.hpp"

namespace bertcl::opencl {

template <class T>
Buffer upload(Context& context, const std::vector<T>& values) {
  Buffer buffer = context.allocate(values.size() * sizeof(T));
  buffer.upload(values);
  return buffer;
}

}  // namespace bertcl::opencl
