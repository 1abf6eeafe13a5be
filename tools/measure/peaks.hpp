// SPDX-License-Identifier: Apache-2.0
// What a device can do at most: its arithmetic and its loads, measured by the kernels of peak.cl.
#pragma once
#include <cstddef>
#include <string>

#include "opencl/context.hpp"

namespace bertcl::tools {

/// Operations per second in 10^9 of a kernel of peak.cl on all compute units; a multiply and an add
/// are two. The fastest of several repetitions: other load on the machine only ever takes away.
double peak_gops(opencl::Context& context, const std::string& kernel);

/// The kernel of peak.cl that multiplies bf16, where the device has avx512_bf16.
inline constexpr const char* kBf16PeakKernel = "peak_vdpbf16ps";

/// The kernel of peak.cl whose instruction multiplies bytes fastest on this device.
std::string int8_peak_kernel_name(opencl::Context& context);

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
