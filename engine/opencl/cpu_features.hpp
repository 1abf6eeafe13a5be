// SPDX-License-Identifier: Apache-2.0
// Instructions supported by this CPU and OS.
#pragma once
#include <string>

namespace bertcl::opencl {

struct CpuFeatures {
  bool avx2 = false;
  bool avx512 = false;  ///< F, BW, DQ and VL
  bool avx512_vnni = false;
  bool avx_vnni = false;
  bool avx512_bf16 = false;
  bool arm_sdot = false;  ///< DotProd of Armv8.2

  /// The names of the supported ones, comma-separated: part of the key of the program cache.
  std::string names() const;
};

/// All false but on x86 and, under Linux, 64-bit Arm.
CpuFeatures cpu_features();

}  // namespace bertcl::opencl
