// SPDX-License-Identifier: Apache-2.0
// A device and a variant by name, for tests of the tables of variants.
#pragma once
#include <algorithm>
#include <string>
#include <string_view>

#include "kernels/variants.hpp"
#include "opencl/device/device.hpp"

namespace bertcl::kernels {

inline opencl::DeviceInfo device_of(const std::string& type) {
  opencl::DeviceInfo info;
  info.type = type, info.vendor = "a vendor";
  info.max_work_group_size = 1024, info.local_mem_bytes = 64 * 1024, info.compute_units = 8;
  return info;
}

inline const GemmVariant& s8_variant(std::string_view name) {
  return *std::ranges::find(gemm_s8_variants(), name, &GemmVariant::name);
}

}  // namespace bertcl::kernels
