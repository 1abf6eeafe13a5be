// SPDX-License-Identifier: Apache-2.0
// What the tests of float GEMMs share: prepacked weights, a launch, expected values.
#pragma once
#include <cstdint>
#include <vector>

#include "kernels/bind.hpp"
#include "kernels/contracts/gemm.hpp"
#include "kernels/contracts/prepack.hpp"
#include "tests/kernels_cl/gemm_variants.hpp"
#include "tests/kernels_cl/products.hpp"

namespace bertcl::tests {

/// Prepacks w [K][N] into a buffer of `bytes`, with one launch for each part into which `cuts`
/// divide it.
template <typename T>
opencl::Buffer prepack_floats(opencl::Kernel kernel, size_t bytes, const std::vector<T>& w, int N,
                              int K, int panel, const std::vector<int>& cuts = {},
                              int item_columns = 0) {
  opencl::Buffer prepacked = device().allocate(bytes);
  prepacked.fill(0xAA);
  for_each_part(w, N, K, cuts, [&](const std::vector<T>& part, int n, int first) {
    kernels::set(kernel, kernels::PrepackFloat<KernelArgument>{.w = upload(part),
                                                               .panels = prepacked,
                                                               .n = n,
                                                               .K = K,
                                                               .panel = panel,
                                                               .first = first,
                                                               .N = N});
    run(kernel, prepack_items(n, first, panel, item_columns));
  });
  return prepacked;
}

/// Weights in panels of pairs along K: bf16, or f16 with B_HALF.
inline opencl::Buffer prepack_pairs(const std::vector<float>& w, int N, int K, int panel,
                                    const opencl::Defines& defines = {},
                                    const std::vector<int>& cuts = {}, int item_columns = 0) {
  opencl::Defines all = defines;
  all["ITEM_COLUMNS"] = item_columns;
  return prepack_floats(device().kernel("prepack_pairs", "prepack_pairs", all),
                        ceil_div(N, panel) * panel * ceil_div(K, 2) * 2 * sizeof(uint16_t), w, N, K,
                        panel, cuts, item_columns);
}

/// activation(a [M][K] x w + bias) by `variant`; `weights` are w, prepacked for it.
inline std::vector<float> run_gemm_f32(const GemmKernel& variant, const opencl::Buffer& weights,
                                       const std::vector<float>& a, const std::vector<float>& bias,
                                       int M, int N, int K, int32_t activation) {
  Output<float> out(static_cast<size_t>(M) * N);
  auto kernel = device().kernel(variant.program, "gemm_f32", variant.defines);
  kernels::set(kernel, kernels::GemmF32<KernelArgument>{
                           .a = upload(a),
                           .b = weights,
                           .bias = bias.empty() ? opencl::Buffer() : upload(bias),
                           .out = out.buffer(),
                           .M = M,
                           .N = N,
                           .K = K,
                           .has_bias = bias.empty() ? 0 : 1,
                           .activation = activation});
  run_tiles(variant, kernel, M, N);
  return out.values();
}

/// activation(a [M][K] x w [K][N] + bias), in double.
inline std::vector<double> gemm_values(const std::vector<float>& a, const std::vector<float>& w,
                                       const std::vector<float>& bias, int M, int N, int K,
                                       int32_t activation) {
  auto out = products(a, w, M, N, K);
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = activated(out[i] + (bias.empty() ? 0.0 : bias[i % N]), activation);
  return out;
}

}  // namespace bertcl::tests
