// SPDX-License-Identifier: Apache-2.0
// What a device can do at most: its arithmetic and its loads, measured by the kernels of peak.cl.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "opencl/context.hpp"

namespace bertcl::bench {

/// Operations per second in 10^9 of a kernel of peak.cl on all compute units; a multiply and an add
/// are two. The fastest of several repetitions: other load on the machine only ever takes away.
double peak_gops(opencl::Context& context, const std::string& kernel);

/// The kernel of peak.cl that multiplies bf16, where the device has avx512_bf16.
inline constexpr const char* kBf16PeakKernel = "peak_vdpbf16ps";

/// The arithmetic kernels of peak.cl that the device can run.
std::vector<std::string> peak_kernels(opencl::Context& context);

/// The kernel of peak.cl whose instruction multiplies bytes fastest on this device.
std::string int8_peak_kernel(opencl::Context& context);

/// 10^9 bytes per second that all compute units load from `bytes` bytes, read again and again: of a
/// cache where they fit one, else of memory.
double peak_read_gbps(opencl::Context& context, std::size_t bytes);

}  // namespace bertcl::bench
