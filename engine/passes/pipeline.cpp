// SPDX-License-Identifier: Apache-2.0
// The whole compiler as one list.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "bertcl/error.hpp"
#include "ir/text.hpp"
#include "ops/verify.hpp"
#include "passes/pass.hpp"

namespace bertcl::passes {

// The passes, a file each in the folder of their group.
using MakePass = Pass();
MakePass find_quantize, resolve_shapes, unmerge_axes, untile_matmul, gather_one_hot,
    split_qlinear_matmul, dequantize_tables, widen_halves, drop_identity, drop_requantize,
    fold_weight_transpose, softmax_last, share_common, dead_code;
Pass fold_constants(const ir::Limits& limits);
MakePass find_layer_norm, find_rms_norm, find_gelu, fold_channel_factor, lift_quantize, find_linear,
    find_linear_q, find_quantize_rows, split_linear, drop_row_mask, find_positions, find_embedding,
    find_add_norm, find_pooling, expand_layer_norm, expand_one_hot, expand_trilu;
MakePass lower_linear_q, lower_attention_q, lower_add_norm_q;
Pass find_attention(bool drop_padding);
Pass fold_dequantize(const ir::Limits& limits);
MakePass fuse_qkv, fuse_activation, fuse_gated, fuse_quantize, fuse_rotary, pack_tokens,
    fuse_unpack_split;
Pass choose_precision(const Precision& precision);

namespace {

/// Pass dependencies: the results of the first have kernels only after the second.
constexpr std::pair<std::string_view, std::string_view> kDependencies[] = {
    {"find_attention", "pack_tokens"},
    {"find_attention", "lower_attention_q"},
    {"find_embedding", "pack_tokens"},
    {"find_pooling", "pack_tokens"},
};

}  // namespace

std::vector<Pass> pipeline(const Options& options) {
  std::vector<Pass> all = {
      // normalize: one spelling for each thing
      resolve_shapes(), split_qlinear_matmul(), fold_constants(options.limits), widen_halves(),
      untile_matmul(), find_quantize(), fold_constants(options.limits), gather_one_hot(),
      softmax_last(), dequantize_tables(), drop_identity(), drop_requantize(), unmerge_axes(),
      drop_identity(), fold_weight_transpose(), share_common(), dead_code(),
      // recognize: many spellings, one op
      find_layer_norm(), find_rms_norm(), find_gelu(), fold_channel_factor(), lift_quantize(),
      share_common(), find_linear(), find_quantize_rows(), find_linear_q(), split_linear(),
      lift_quantize(), find_attention(options.drop_padding), drop_row_mask(), find_positions(),
      find_embedding(), find_add_norm(), find_pooling(), expand_layer_norm(), expand_one_hot(),
      expand_trilu(), dead_code(),
      // quantize: DQ -> op -> Q becomes one integer op
      lower_linear_q(), lower_attention_q(), lower_add_norm_q(), fold_dequantize(options.limits),
      dead_code(),
      // fuse: fewer, larger launches
      fuse_activation(), fuse_gated(), fuse_quantize(), fuse_qkv(), fuse_rotary(), pack_tokens(),
      fuse_unpack_split(), dead_code(),
      // precision: f32, or less where it is asked for
      choose_precision(options.precision)};
  const auto left_out = [&](std::string_view name) {
    return std::ranges::find(options.disabled, name) != options.disabled.end();
  };
  if (left_out("resolve_shapes"))
    throw Error("the compiler pass 'resolve_shapes' cannot be skipped: Shape has no kernel");
  if (!options.drop_padding)
    std::erase_if(all, [](const Pass& pass) { return pass.name == "drop_row_mask"; });
  std::erase_if(all, [&](const Pass& pass) {
    return left_out(pass.name) ||
           std::any_of(std::begin(kDependencies), std::end(kDependencies), [&](const auto& pair) {
             return pass.name == pair.first && left_out(pair.second);
           });
  });
  return all;
}

std::vector<Pass> pipeline_up_to(std::string_view last) {
  std::vector<Pass> all = pipeline({});
  while (!all.empty() && all.back().name != last) all.pop_back();
  if (all.empty()) throw Error(fmt::format("there is no compiler pass '{}'", last));
  return all;
}

void compile(ir::Graph& graph, const Options& options,
             const std::function<void(const Pass&, const ir::Graph&)>& after) {
  for (const Pass& pass : pipeline(options)) {
    const bool changed = pass.run(graph);
    ir::verify(graph, pass.name);
    ops::verify(graph, pass.name);
    if (changed && after) after(pass, graph);
  }
}

}  // namespace bertcl::passes
