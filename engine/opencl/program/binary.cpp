// SPDX-License-Identifier: Apache-2.0
// Binaries of programs, which belong to each device of a context.
#include "opencl/program/binary.hpp"

#include <algorithm>
#include <vector>

namespace bertcl::opencl {
namespace {

/// A list that clGetProgramInfo() gives; empty if it gives none.
template <class T>
std::vector<T> program_list(cl_program program, cl_program_info name) {
  size_t bytes = 0;
  if (clGetProgramInfo(program, name, 0, nullptr, &bytes) != CL_SUCCESS) return {};
  std::vector<T> list(bytes / sizeof(T));
  if (clGetProgramInfo(program, name, bytes, list.data(), nullptr) != CL_SUCCESS) return {};
  return list;
}

}  // namespace

// A program made of source has a place for the binary of each device of its context.
std::string binary_of(cl_program program, cl_device_id device) {
  const auto devices = program_list<cl_device_id>(program, CL_PROGRAM_DEVICES);
  const auto sizes = program_list<size_t>(program, CL_PROGRAM_BINARY_SIZES);
  const auto at = static_cast<std::size_t>(std::ranges::find(devices, device) - devices.begin());
  if (at >= std::min(devices.size(), sizes.size()) || sizes[at] == 0) return "";
  std::string binary(sizes[at], '\0');
  std::vector<unsigned char*> places(sizes.size(), nullptr);
  places[at] = reinterpret_cast<unsigned char*>(binary.data());
  if (clGetProgramInfo(program, CL_PROGRAM_BINARIES, places.size() * sizeof(places[0]),
                       places.data(), nullptr) != CL_SUCCESS)
    return "";
  return binary;
}

}  // namespace bertcl::opencl
