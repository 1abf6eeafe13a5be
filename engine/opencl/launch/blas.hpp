// SPDX-License-Identifier: Apache-2.0
// Floating-point GEMMs by CLBlast.
#pragma once
#include <cstddef>
#include <string_view>

#include "opencl/buffer.hpp"

namespace bertcl::opencl {

class Context;

/// Sizes of C[m][n] = A[m][k] * B[k][n] + beta * C[m][n], all row-major without gaps. `batch`
/// matrices are `*_stride` elements apart.
struct Gemm {
  size_t m = 0, n = 0, k = 0;
  float beta = 0.0f;
  size_t batch = 1;
  size_t a_stride = 0, b_stride = 0, c_stride = 0;
};

/// Queues a float GEMM; an empty C (m, n or batch 0) does nothing. The first call in a process
/// builds CLBlast's kernels (9-17 s on PoCL with an empty kernel cache, 0.1 s with a warm one; AMD
/// EPYC with AVX2, 2 cores). Throws Error naming label, sizes and the CLBlast status, or which
/// matrix exceeds its buffer. While the queue profiles, the entry covers all kernels of the call.
///
/// On CPU devices CLBlast's parameters are replaced: its defaults reach a tenth of the speed on
/// PoCL (figures in blas.cpp).
void gemm_f32(Context& context, const Gemm& gemm, const Buffer& a, const Buffer& b, Buffer& c,
              std::string_view label = "gemm_f32");

/// The same for fp16 matrices. Needs Capabilities::fp16.
void gemm_f16(Context& context, const Gemm& gemm, const Buffer& a, const Buffer& b, Buffer& c,
              std::string_view label = "gemm_f16");

}  // namespace bertcl::opencl
