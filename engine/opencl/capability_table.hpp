// SPDX-License-Identifier: Apache-2.0
// The flags of Capabilities by name; for .cpp files of this folder.
#pragma once
#include <array>

#include "opencl/capabilities.hpp"

namespace bertcl::opencl {

struct CapabilityName {
  const char* name;
  bool Capabilities::*flag;
};

inline constexpr std::array<CapabilityName, 14> kCapabilityNames = {{
    {"in_process_cpu", &Capabilities::in_process_cpu},
    {"avx2", &Capabilities::avx2},
    {"avx512", &Capabilities::avx512},
    {"avx512_vnni", &Capabilities::avx512_vnni},
    {"avx_vnni", &Capabilities::avx_vnni},
    {"avx512_bf16", &Capabilities::avx512_bf16},
    {"fp16", &Capabilities::fp16},
    {"fp64", &Capabilities::fp64},
    {"int_dot_product", &Capabilities::int_dot_product},
    {"subgroups", &Capabilities::subgroups},
    {"command_buffer", &Capabilities::command_buffer},
    {"ptx_dp4a", &Capabilities::ptx_dp4a},
    {"amd_sdot4", &Capabilities::amd_sdot4},
    {"arm_dot_acc", &Capabilities::arm_dot_acc},
}};

}  // namespace bertcl::opencl
