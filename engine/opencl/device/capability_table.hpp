// SPDX-License-Identifier: Apache-2.0
// The flags of Capabilities by name; for .cpp files of engine/opencl.
#pragma once
#include <array>

#include "opencl/device/capabilities.hpp"
#include "support/for_each.hpp"

namespace bertcl::opencl {

struct CapabilityName {
  const char* name;
  bool Capabilities::*flag;
};

#define BERTCL_CAPABILITY(name) CapabilityName{#name, &Capabilities::name},
inline constexpr auto kCapabilityNames = std::to_array({BERTCL_FOR_EACH(
    BERTCL_CAPABILITY, overlapping_views, in_process_cpu, persistent_kernel, assembly_binaries,
    avx2, avx512, avx512_vnni, avx_vnni, avx512_bf16, arm_sdot, fp16, fp64, int_dot_product,
    subgroups, command_buffer, ptx_dp4a, ptx_mma_s8, ptx_wgmma_s8, ptx_cp_async, intel_dpas_8,
    intel_dpas_16, amd_mfma_k16, amd_mfma_k32, amd_wmma, amd_wmma_gfx12, matrix_f16, amd_sdot4,
    amd_sudot4, arm_dot_acc)});
#undef BERTCL_CAPABILITY

/// The back ends of kernels_cl/units/dot4.clh but its emulation, in the order of preference.
struct Dot4Backend {
  int code;
  bool Capabilities::*flag;
  const char* extension;  // of the driver; null: the vendor tells who has it
};

inline constexpr std::array<Dot4Backend, 5> kDot4Backends = {{
    {2, &Capabilities::ptx_dp4a, nullptr},
    {1, &Capabilities::int_dot_product, "cl_khr_integer_dot_product"},
    {3, &Capabilities::amd_sdot4, nullptr},
    {4, &Capabilities::amd_sudot4, nullptr},
    {5, &Capabilities::arm_dot_acc, "cl_arm_integer_dot_product_accumulate_int8"},
}};

}  // namespace bertcl::opencl
