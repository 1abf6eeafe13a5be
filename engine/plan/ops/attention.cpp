// SPDX-License-Identifier: Apache-2.0
// Launch steps of attention and attention_q.
#include <algorithm>
#include <bit>
#include <vector>

#include "kernels/contracts/attention.hpp"
#include "kernels/tiles.hpp"
#include "kernels/variants.hpp"
#include "opencl/device/capabilities.hpp"
#include "ops/operands.hpp"
#include "ops/precision.hpp"
#include "ops/symbols.hpp"
#include "passes/quant_params.hpp"
#include "passes/recognize/attention_heads.hpp"
#include "plan/lowering_table.hpp"
#include "plan/precision.hpp"
#include "plan/types.hpp"
#include "plan/variants.hpp"

namespace bertcl::plan {
namespace {

namespace symbols = ops::symbols;

using kernels::AttentionVariant;

struct Geometry {
  std::int32_t heads, heads_per_key, head_size;
  std::array<std::int32_t, 3> strides, offsets;
};

Geometry geometry_of(const ir::Node& node, const ir::Value* seq_offsets) {
  Geometry g{};
  g.heads = static_cast<std::int32_t>(node.int_attribute("heads"));
  g.heads_per_key = g.heads / static_cast<std::int32_t>(node.int_attribute("key_heads", g.heads));
  const std::int64_t hidden = node.output()->type.shape.back().constant();
  g.head_size = static_cast<std::int32_t>(hidden / g.heads);
  if (g.head_size > passes::kMaxHeadSize)
    fail(node, "head size {}; the attention kernels support at most {}", g.head_size,
         passes::kMaxHeadSize);
  for (std::size_t i = 0; i < 3; ++i) {
    g.strides[i] = static_cast<std::int32_t>(node.inputs[i]->type.shape.back().constant());
    if (node.has("offsets"))
      g.offsets[i] = static_cast<std::int32_t>(node.ints_attribute("offsets")[i]);
  }
  if (!seq_offsets) fail(node, "attention needs packed tokens; keep the pass pack_tokens enabled");
  return g;
}

/// HEAD_MAX of a kernel of work-groups.
std::int32_t head_max_of(const Geometry& g) {
  return static_cast<std::int32_t>(
      std::bit_ceil(static_cast<std::uint32_t>(std::max(g.head_size, 32))));
}

/// Heads and sequences on axes of their own: NVIDIA takes no more than 65,535 groups along any but
/// the first.
std::array<SizeExpr, 3> group_grid(const Geometry& g, std::int32_t rows, std::int32_t items) {
  return {SizeExpr{symbols::dim(symbols::longest), ir::Dim(rows), items}, SizeExpr{g.heads},
          SizeExpr{symbols::dim(symbols::batch)}};
}

/// Query rows of a work-item, or those of a work-group, and the grid that follows.
std::pair<Argument, std::array<SizeExpr, 3>> rows_and_grid(const AttentionVariant& variant,
                                                           const Geometry& g,
                                                           std::int32_t group_rows) {
  if (variant.uses_work_groups)
    return {group_rows, group_grid(g, group_rows, variant.items_of(group_rows))};
  const ir::Dim rows = variant.takes_blocks ? symbols::dim(symbols::attention_rows) : ir::Dim(1);
  return {SizeExpr{rows},
          {SizeExpr{symbols::dim(symbols::longest), rows}, SizeExpr{g.heads},
           SizeExpr{symbols::dim(symbols::batch)}}};
}

/// Launches `kernel` of a variant; one of work-groups with fewer rows each, too, for short texts.
Step& launch(Builder& b, const ir::Node& node, Arithmetic type, const AttentionVariant& variant,
             const char* kernel, const Geometry& g, auto arguments) {
  const bool has_bias = !std::holds_alternative<std::nullptr_t>(arguments.bias) ||
                        std::get<std::int32_t>(arguments.window) > 0;
  const std::int32_t group_rows = kernels::group_rows(
      variant, g.head_size, has_bias, b.context().info(), b.context().capabilities());
  auto [rows, grid] = rows_and_grid(variant, g, group_rows);
  arguments.block_rows = rows;
  opencl::Defines defines;
  if (variant.uses_work_groups)
    defines = {{"HEAD_MAX", head_max_of(g)},
               {"ROWS", group_rows},
               {"DOT4", opencl::dot4_of(b.context().capabilities()).code},
               {"BIAS", has_bias}};
  if (variant.unit == kernels::Unit::matrix) defines["MATRIX_EMULATED"] = 0;
  Step& step = b.launch(node, type, variant.name, b.kernel(variant.program, kernel, defines),
                        arguments, grid);
  if (!variant.uses_work_groups) return step;
  step.local[0] = static_cast<std::size_t>(variant.items_of(group_rows));
  if (const std::int32_t fewer_rows = 32; fewer_rows < group_rows) {
    defines["ROWS"] = fewer_rows;
    step.alternatives.push_back(
        {{.variant = fmt::format("{}_{}", variant.name, fewer_rows),
          .kernel = b.kernel(variant.program, kernel, defines),
          .global = group_grid(g, fewer_rows, variant.items_of(fewer_rows)),
          .local = {static_cast<std::size_t>(variant.items_of(fewer_rows)), 1, 1}}});
  }
  return step;
}

/// Why a variant cannot run here; not every one adds a bias or keeps to a window.
kernels::Refusal why_not(Builder& b, const AttentionVariant& variant, const Geometry& g,
                         bool has_bias) {
  const kernels::Refusal refusal = b.target().why_not(variant.needs);
  if (!refusal.reason.empty() || !has_bias || g.head_size <= variant.biased_columns) return refusal;
  if (variant.biased_columns == 0) return {"it supports neither an attention bias nor a window"};
  return {fmt::format("it supports an attention bias or a window only up to head size {}",
                      variant.biased_columns)};
}

/// What both ops have, of which `bias` may be null.
void set_operands(Builder& b, const ir::Node& node, const Geometry& g, const ir::Value* seq_offsets,
                  const ir::Value* key_mask, const ir::Value* bias, auto& arguments) {
  arguments.q = b.in(node.inputs[0]);
  arguments.k = b.in(node.inputs[1]);
  arguments.v = b.in(node.inputs[2]);
  arguments.q_stride = g.strides[0], arguments.q_offset = g.offsets[0];
  arguments.k_stride = g.strides[1], arguments.k_offset = g.offsets[1];
  arguments.v_stride = g.strides[2], arguments.v_offset = g.offsets[2];
  arguments.out = b.out(node.output());
  arguments.seq_offsets = b.in(seq_offsets);
  arguments.key_mask = b.in(key_mask);
  arguments.use_mask = static_cast<std::int32_t>(node.int_attribute("masked", 0));
  arguments.heads = g.heads;
  arguments.head_size = g.head_size;
  arguments.heads_per_key = g.heads_per_key;
  arguments.window = static_cast<std::int32_t>(node.int_attribute("window", 0));
  if (!bias) return;
  const ir::Shape& shape = bias->type.shape;
  arguments.bias = b.in(bias);
  if (shape.size() == 3) {  // of position_scores: key by key
    arguments.bias_row = 1;
    arguments.bias_key = arguments.bias_token = SizeExpr{shape[2]};
    arguments.bias_head = SizeExpr{shape[1] * shape[2]};
    return;
  }
  arguments.bias_row = SizeExpr{shape[3]};
  if (shape[1] != ir::Dim(1)) arguments.bias_head = SizeExpr{shape[2] * shape[3]};
}

/// QK^T and PV: 4 * head_size operations for each pair of rows of each head. Pairs are bounded by
/// tokens * longest.
void count_operations(Step& step, const Geometry& g) {
  step.operations_per_unit = 4.0 * g.head_size * g.heads;
  step.work_units = symbols::dim(symbols::tokens) * symbols::dim(symbols::longest);
}

void lower_attention(Builder& b, const ir::Graph&, const ir::Node& node) {
  if (node.input(ops::operands::attention::p_scale))
    fail(node, "its probabilities are quantized but Q, K or V is not");
  const ir::Value* seq_offsets = node.input(ops::operands::attention::seq_offsets);
  const Geometry g = geometry_of(node, seq_offsets);
  const bool bf16 = ops::precision_of(node) == ir::DType::bf16;
  const ir::Value* bias = node.input(ops::operands::attention::bias);
  const std::vector<AttentionVariant> variants =
      variants_by_precision(node, kernels::attention_f16_variant(),
                            kernels::attention_bf16_variant(), kernels::attention_f32_variants());
  const auto choice = choose(b, node, variants, [&](const AttentionVariant& variant) {
    return why_not(b, variant, g, bias || node.has("window"));
  });
  const bool fp16 = choice.variant->program == kernels::attention_f16_variant().program;
  kernels::AttentionFloat<Argument> arguments{
      .scale = static_cast<float>(node.float_attribute("scale"))};
  set_operands(b, node, g, seq_offsets, node.input(ops::operands::attention::key_mask), bias,
               arguments);
  Step& step = launch(b, node,
                      bf16   ? Arithmetic::bf16
                      : fp16 ? Arithmetic::fp16
                             : Arithmetic::fp32,
                      *choice.variant, bf16 ? "attention_bf16" : "attention_f32", g, arguments);
  step.why_not_faster = why_not_faster(node, choice.why_not_faster);
  count_operations(step, g);
  b.plan().attention_heads = g.heads;
}

void lower_attention_q(Builder& b, const ir::Graph&, const ir::Node& node) {
  namespace o = ops::operands::attention_q;
  const ir::Value* seq_offsets = node.input(o::seq_offsets);
  const Geometry g = geometry_of(node, seq_offsets);
  const ir::Value* bias = node.input(o::bias);
  const auto choice =
      choose(b, node, kernels::attention_s8_variants(), [&](const AttentionVariant& variant) {
        return why_not(b, variant, g, bias || node.has("window"));
      });
  const float q_scale = scalar_or(node.inputs[o::q_scale], 1);
  const float k_scale = scalar_or(node.inputs[o::k_scale], 1);
  const float v_scale = scalar_or(node.inputs[o::v_scale], 1);
  const float p_scale = scalar_or(node.inputs[o::p_scale], 1);
  const auto type_of = [&](std::size_t i) { return type_code(node.inputs[i]->type.dtype); };
  const auto zero_of = [&](std::size_t i) {
    return zero_point_or_0(node.inputs[o::q_zero_point + 2 * i]);
  };
  const float qk_scale = q_scale * k_scale * static_cast<float>(node.float_attribute("scale"));
  const auto score_scale = static_cast<float>(node.float_attribute("score_scale", 0));
  const auto unnormalized = static_cast<std::int32_t>(node.int_attribute("unnormalized", 0));
  const auto lowest = static_cast<std::int32_t>(node.int_attribute("score_lowest", 0));
  kernels::AttentionS8<Argument> arguments{
      .q_type = type_of(0),
      .q_zero_point = zero_of(0),
      .k_type = type_of(1),
      .k_zero_point = zero_of(1),
      .v_type = type_of(2),
      .v_zero_point = zero_of(2),
      .out_type = type_code(node.output()->type.dtype),
      .out_inv_scale = 1.0f / scalar_or(node.input(o::out_scale), 1),
      .out_zero_point = zero_point_or_0(node.input(o::out_zero_point)),
      .qk_scale = score_scale == 0
                      ? qk_scale
                      : score_scale * static_cast<float>(node.float_attribute("score_factor")),
      .p_inv_scale = 1.0f / p_scale,
      .p_max = node.string_attribute("p_type") == "u8" ? 255 : 127,
      .unnormalized = unnormalized,
      .pv_scale = unnormalized ? v_scale : p_scale * v_scale,
      .score_inv_scale = score_scale == 0 ? 0.0f : qk_scale / score_scale,
      .score_low = lowest,
      .score_high = lowest + 255};
  set_operands(b, node, g, seq_offsets, node.input(o::key_mask), bias, arguments);
  Step& step = launch(b, node, Arithmetic::int8, *choice.variant, "attention_s8", g, arguments);
  step.why_not_faster = choice.why_not_faster;
  count_operations(step, g);
  b.plan().attention_heads = g.heads;
  b.plan().max_keys = passes::max_exact_products();  // each output sums over the keys
}

}  // namespace

void add_attention(LoweringTable& table) {
  table[ops::operands::attention::op] = lower_attention;
  table[ops::operands::attention_q::op] = lower_attention_q;
}

}  // namespace bertcl::plan
