// SPDX-License-Identifier: Apache-2.0
// PTX, which NVIDIA's driver gives as the binary of a program, and takes as one.
#pragma once
#include <string>
#include <string_view>

namespace bertcl::opencl {

/// How a comment begins that holds instructions of sm_90a (kernels_cl/units/wgmma.clh). It has no
/// comment in it.
inline constexpr std::string_view kSm90aComment = "/*sm_90a: ";

/// Part of the keys under which programs of NVIDIA's driver, and what is measured with them, are
/// stored: raise when ptx_for_sm_90a() makes other PTX.
inline constexpr int kPtxFormat = 1;

/// PTX for sm_90 as PTX for sm_90a, with the instructions that such comments hold: NVIDIA's OpenCL
/// compiler makes the former only, where ptxas refuses wgmma. Throws Error where `ptx` is something
/// else.
std::string ptx_for_sm_90a(std::string ptx);

}  // namespace bertcl::opencl
