// SPDX-License-Identifier: Apache-2.0
// Every pass of the compiler, in the order in which pipeline.cpp lists them.
#pragma once
#include "passes/pass.hpp"

namespace bertcl::passes {

// normalize: one spelling for each thing
Pass find_quantize();
Pass fold_constants(const ir::Limits& limits = {});
Pass resolve_shapes();
Pass unmerge_transpose();
Pass gather_one_hot();
Pass split_qlinear_matmul();
Pass dequantize_tables();
Pass widen_halves();
Pass drop_identity();
Pass fold_weight_transpose();
Pass share_common();
Pass dead_code();

// recognize: many spellings, one op
Pass find_layer_norm();
Pass find_gelu();
Pass fold_channel_factor();
Pass lift_quantize();
Pass find_linear();
Pass find_linear_q();
Pass find_quantize_rows();
Pass find_attention();
Pass find_positions();
Pass find_embedding();
Pass find_add_norm();
Pass expand_layer_norm();

// quantize: DQ -> op -> Q becomes one integer op
Pass lower_linear_q();
Pass lower_attention_q();
Pass lower_add_norm_q();
Pass fold_dequantize(const ir::Limits& limits = {});

// fuse: fewer, larger launches
Pass fuse_qkv();
Pass fuse_activation();
Pass fuse_quantize();
Pass pack_tokens();

// precision: f32, or less where it is asked for
Pass choose_precision(const Precision& precision);

}  // namespace bertcl::passes
