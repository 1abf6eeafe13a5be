// SPDX-License-Identifier: Apache-2.0
// How the tests of attention find and launch a kernel.
#pragma once
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
  bool groups = false;  ///< computed by work-groups, for heads of up to HEAD_MAX columns

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
  if (variant.groups) defines["BIAS"] = !bias.values.empty() || bias.window > 0;
  for (int size = 256; variant.groups && size >= 32 && size >= c.head_size; size /= 2)
    defines["HEAD_MAX"] = size;
  // Most tests have heads of up to 64 columns.
  return variant.groups && c.head_size > 64 ? group_kernel(variant.program, name, defines)
                                            : device().kernel(variant.program, name, defines);
}

/// The block_rows to test: work-groups ignore them, so one is enough.
inline std::vector<int32_t> block_rows_of(const AttentionKernel& variant,
                                          std::vector<int32_t> all) {
  if (variant.groups) all.resize(1);
  return all;
}

/// Launches it, with work-groups or with work-items of `block_rows` rows, and waits.
inline void run_attention(const AttentionKernel& variant, const opencl::Kernel& kernel,
                          const AttentionCase& c, int32_t block_rows) {
  const auto blocks = [&](int32_t rows) {
    return ceil_div(static_cast<size_t>(c.longest()), static_cast<size_t>(rows));
  };
  const auto heads = static_cast<size_t>(c.heads);
  if (!variant.groups) return run(kernel, blocks(block_rows), heads, c.lengths.size());
  const bool given = variant.defines.contains("ROWS");
  const int32_t rows = given ? variant.defines.at("ROWS") : c.head_size > 64 ? 32 : 64;
  const size_t items = variant.program.ends_with("_mma") ? 2 * static_cast<size_t>(rows) : 256;
  device().queue().launch(kernel, {items * blocks(rows), heads, c.lengths.size()}, {items, 1, 1});
  device().queue().finish();
}

/// Float attention of qkv [tokens][3 * hidden] by `variant`; T is the type in memory: float, or
/// uint16_t for f16 and bf16.
template <typename T>
std::vector<T> attend(const AttentionKernel& variant, std::string_view name, const AttentionCase& c,
                      const std::vector<T>& qkv, float scale, int32_t block_rows,
                      const ScoreBias& bias = {}) {
  const auto input = upload(qkv), offsets = upload(c.offsets()), mask = upload(c.mask),
             added = bias.values.empty() ? opencl::Buffer() : upload(bias.values);
  Output<T> out(static_cast<size_t>(c.tokens()) * static_cast<size_t>(c.hidden()));
  const int32_t hidden = c.hidden(), stride = 3 * hidden, use_mask = !c.mask.empty();
  auto kernel = kernel_for(variant, name, c, bias);
  kernels::set(kernel, kernels::AttentionFloat<KernelArgument>{.q = input,
                                                               .q_stride = stride,
                                                               .q_offset = 0,
                                                               .k = input,
                                                               .k_stride = stride,
                                                               .k_offset = hidden,
                                                               .v = input,
                                                               .v_stride = stride,
                                                               .v_offset = 2 * hidden,
                                                               .out = out.buffer(),
                                                               .seq_offsets = offsets,
                                                               .key_mask = mask,
                                                               .use_mask = use_mask,
                                                               .heads = c.heads,
                                                               .head_size = c.head_size,
                                                               .scale = scale,
                                                               .block_rows = block_rows,
                                                               .bias = added,
                                                               .bias_row = bias.row_step(),
                                                               .bias_key = bias.key_step(),
                                                               .bias_head = bias.head_step(c),
                                                               .bias_token = bias.token_step(),
                                                               .window = bias.window});
  run_attention(variant, kernel, c, block_rows);
  return out.values();
}

}  // namespace bertcl::tests
