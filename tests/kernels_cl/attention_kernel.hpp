// SPDX-License-Identifier: Apache-2.0
// How the tests of attention find and launch a kernel.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "attention_reference.hpp"
#include "device_test.hpp"
#include "kernels/bind.hpp"
#include "kernels/contracts/attention.hpp"
#include "opencl/context.hpp"

namespace bertcl::tests {

/// A program of a variant of attention, with its options.
struct AttentionKernel {
  std::string program;
  opencl::Defines defines = {};
  bool uses_work_groups = false;  ///< computed by work-groups, for heads of up to HEAD_MAX columns

  std::string name() const {
    std::string text = program;
    for (const auto& [key, value] : defines)
      text.append("_").append(key).append(std::to_string(value));
    return text;
  }
};

/// The kernel for a case, as the planner asks for it.
inline opencl::Kernel kernel_for(const AttentionKernel& variant, std::string_view name,
                                 const AttentionCase& c, const ScoreBias& bias = {}) {
  opencl::Defines defines = variant.defines;
  if (variant.uses_work_groups) defines["BIAS"] = !bias.values.empty() || bias.window > 0;
  for (int size = 256; variant.uses_work_groups && size >= 32 && size >= c.head_size; size /= 2)
    defines["HEAD_MAX"] = size;
  // Most tests have heads of up to 64 columns.
  return variant.uses_work_groups && c.head_size > 64
             ? group_kernel(variant.program, name, defines)
             : device().kernel(variant.program, name, defines);
}

/// The block_rows to test: work-groups ignore them, so one is enough.
inline std::vector<int32_t> block_rows_of(const AttentionKernel& variant,
                                          std::vector<int32_t> all) {
  if (variant.uses_work_groups) all.resize(1);
  return all;
}

/// Launches it, with work-groups or with work-items of `block_rows` rows, and waits.
inline void run_attention(const AttentionKernel& variant, const opencl::Kernel& kernel,
                          const AttentionCase& c, int32_t block_rows) {
  const auto blocks = [&](int32_t rows) {
    return ceil_div(static_cast<size_t>(c.longest()), static_cast<size_t>(rows));
  };
  const auto heads = static_cast<size_t>(c.heads);
  if (!variant.uses_work_groups) return run(kernel, blocks(block_rows), heads, c.lengths.size());
  const bool given = variant.defines.contains("ROWS");
  const int32_t rows = given ? variant.defines.at("ROWS") : c.head_size > 64 ? 32 : 64;
  const size_t items = variant.program.ends_with("_mma") ? 2 * static_cast<size_t>(rows) : 256;
  device().queue().launch(kernel, {items * blocks(rows), heads, c.lengths.size()}, {items, 1, 1});
  device().queue().finish();
}

/// Attention of qkv [tokens][3 * hidden] by `variant`, with what its contract (AttentionFloat,
/// AttentionS8) does not share with the other one in `arguments`.
template <typename T, typename Arguments, typename Operand>
std::vector<T> attend_with(const AttentionKernel& variant, std::string_view name,
                           const AttentionCase& c, const std::vector<Operand>& qkv,
                           Arguments arguments, int32_t block_rows, const ScoreBias& bias) {
  Output<T> out(static_cast<size_t>(c.tokens()) * static_cast<size_t>(c.hidden()));
  const int32_t hidden = c.hidden(), use_mask = !c.mask.empty();
  Arguments& a = arguments;
  a.q = a.k = a.v = upload(qkv);
  a.q_stride = a.k_stride = a.v_stride = 3 * hidden;
  a.q_offset = 0;
  a.k_offset = hidden;
  a.v_offset = 2 * hidden;
  a.out = out.buffer();
  a.seq_offsets = upload(c.offsets());
  a.key_mask = upload(c.mask);
  a.use_mask = use_mask;
  a.heads = c.heads;
  a.head_size = c.head_size;
  a.block_rows = block_rows;
  if (!bias.values.empty()) a.bias = upload(bias.values);
  a.bias_row = bias.row_step();
  a.bias_key = bias.key_step();
  a.bias_head = bias.head_step(c);
  a.bias_token = bias.token_step();
  a.window = bias.window;
  a.heads_per_key = c.heads_per_key;
  auto kernel = kernel_for(variant, name, c, bias);
  kernels::set(kernel, a);
  run_attention(variant, kernel, c, block_rows);
  return out.values();
}

/// Float attention; T is the type in memory: float, or uint16_t for f16 and bf16.
template <typename T>
std::vector<T> attend(const AttentionKernel& variant, std::string_view name, const AttentionCase& c,
                      const std::vector<T>& qkv, float scale, int32_t block_rows,
                      const ScoreBias& bias = {}) {
  return attend_with<T>(variant, name, c, qkv,
                        kernels::AttentionFloat<KernelArgument>{.scale = scale}, block_rows, bias);
}

inline const AttentionCase two_sequences{.lengths = {50, 80}, .heads = 1};

/// Compares `attend(case, qkv)` of two_sequences with that of the same, padded to 80 rows by a mask
/// with `garbage` under it.
template <typename T, typename Attend>
void expect_padded_equals_packed(const std::vector<T>& qkv, T garbage, const Attend& attend,
                                 const std::string& what) {
  AttentionCase padded{.lengths = {80, 80}, .heads = 1, .mask = std::vector<uint8_t>(160, 1)};
  std::fill(padded.mask.begin() + 50, padded.mask.begin() + 80, uint8_t{0});
  std::vector<T> rows = qkv;
  rows.insert(rows.begin() + 50 * 192, 30 * 192, garbage);
  auto out = attend(padded, rows);
  out.erase(out.begin() + 50 * 64, out.begin() + 80 * 64);
  expect_equal(out, attend(two_sequences, qkv), what);
}

}  // namespace bertcl::tests
