// SPDX-License-Identifier: Apache-2.0
// What a device can do at most: its arithmetic and its loads, measured by the kernels of peak.cl.
#pragma once
#include <cstddef>
#include <string>

#include "opencl/context.hpp"
#include "opencl/device/capabilities.hpp"

namespace bertcl::tools {

/// An arithmetic kernel of peak.cl.
struct PeakKernel {
  const char* name;
  int lanes;                                    ///< multiply-adds of a chain in a step
  bool opencl::Capabilities::*needs = nullptr;  ///< null: nothing

  bool runs_with(const opencl::Capabilities& can) const { return !needs || can.*needs; }
};
inline constexpr PeakKernel kPeakF32{"peak_f32", 16},
    kPeakBf16{"peak_vdpbf16ps", 32, &opencl::Capabilities::avx512_bf16},
    kPeakAvx2{"peak_pmaddubsw", 32, &opencl::Capabilities::avx2},
    kPeakVnni{"peak_vpdpbusd", 64, &opencl::Capabilities::avx512_vnni};

/// Operations per second in 10^9 of a kernel of peak.cl on all compute units; a multiply and an add
/// are two. The fastest of several repetitions: other load on the machine only ever takes away.
double peak_gops(opencl::Context& context, const PeakKernel& kernel);

/// 10^9 bytes per second that all compute units load from `bytes` bytes, read again and again: of a
/// cache where they fit one, else of memory.
double peak_read_gbps(opencl::Context& context, std::size_t bytes);

/// What bounds the kernels of a model. Where a device has no instruction for bytes that peak.cl
/// knows (a GPU, above all), int8_gops is the peak of fp32.
struct Peaks {
  std::string int8_kernel;
  double int8_gops = 0.0, f32_gops = 0.0, memory_gbps = 0.0, cache_gbps = 0.0;
  double bf16_gops = 0.0;  ///< 0 where the device has no avx512_bf16
};
Peaks measure_peaks(opencl::Context& context);

}  // namespace bertcl::tools
