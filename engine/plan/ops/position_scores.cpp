// SPDX-License-Identifier: Apache-2.0
// The launch of position_scores.
#include "kernels/contracts/attention.hpp"
#include "kernels/shared_numbers.hpp"
#include "kernels/variants.hpp"
#include "ops/operands.hpp"
#include "ops/symbols.hpp"
#include "plan/lowering_table.hpp"
#include "plan/types.hpp"
#include "plan/variants.hpp"
#include "support/ceil_div.hpp"

namespace bertcl::plan {
namespace {

namespace ps = ops::operands::position_scores;

using kernels::PositionScoresVariant;

constexpr std::int64_t kPanel = kernels::kPositionsPanel;

std::int64_t padded(std::int64_t count) { return round_up(count, kPanel); }

/// [heads, size, count], less `zero_point`, as [heads, count / 32, size, 32], filled with zeros.
ir::Tensor in_panels(const ir::Tensor& positions, std::int32_t zero_point) {
  const std::int64_t heads = positions.shape()[0], size = positions.shape()[1],
                     count = positions.shape()[2], panels = padded(count) / kPanel;
  const ir::Tensor numbers = positions.converted(ir::DType::f32);
  const auto from = numbers.as<float>();
  std::vector<float> to(heads * size * padded(count), 0.0f);
  for (std::int64_t row = 0; row < heads * size; ++row)
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t head = row / size, d = row % size;
      to[((head * panels + i / kPanel) * size + d) * kPanel + i % kPanel] =
          from[row * count + i] - static_cast<float>(zero_point);
    }
  return ir::Tensor::of<float>({heads, panels, size, kPanel}, to);
}

/// What is added to bytes of u8 or i8 to make them u8.
std::int32_t shift_to_u8(ir::DType type) { return type == ir::DType::u8 ? 0 : 128; }

/// The positions of position_scores_s8, [heads, count / 32, ceil(size / 4) + 1, 32] words: bytes of
/// x have, as i8, the zero point `x_zero_point`, those of positions, as they are, `zero_point`.
ir::Tensor in_words(const ir::Tensor& positions, std::int32_t zero_point,
                    std::int32_t x_zero_point) {
  const std::int64_t heads = positions.shape()[0], size = positions.shape()[1],
                     count = positions.shape()[2], panels = padded(count) / kPanel,
                     words = (size + 3) / 4 + 1;
  const ir::Tensor bytes = positions.converted(ir::DType::i32);
  const auto from = bytes.as<std::int32_t>();
  const std::int32_t shift = shift_to_u8(positions.dtype());
  std::vector<std::int32_t> to(heads * words * padded(count), 0);
  for (std::int64_t row = 0; row < heads * size; ++row)
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t head = row / size, d = row % size;
      const auto column =
          static_cast<std::size_t>((head * panels + i / kPanel) * words * kPanel + i % kPanel);
      const std::int32_t byte = from[row * count + i];
      to[column] -= x_zero_point * (byte - zero_point);
      to[column + static_cast<std::size_t>((d / 4 + 1) * kPanel)] |= (byte + shift) << d % 4 * 8;
    }
  return ir::Tensor::of<std::int32_t>({heads, panels, words, kPanel}, to);
}

/// Tokens of x of a work-item, or rows of a work-group.
ir::Dim rows_of(const PositionScoresVariant& variant) {
  if (variant.tile != 0) return variant.tile;
  return variant.takes_blocks ? ops::symbols::dim(ops::symbols::attention_rows) : ir::Dim(1);
}

std::array<SizeExpr, 3> grid_of(const PositionScoresVariant& variant, std::int64_t heads) {
  const ir::Dim longest = ops::symbols::dim(ops::symbols::longest), rows = rows_of(variant);
  const SizeExpr batch{ops::symbols::dim(ops::symbols::batch)};
  if (variant.tile != 0)
    return {SizeExpr{longest, rows, kernels::kPositionsItems}, {longest, rows, heads}, batch};
  return {SizeExpr{longest, rows}, SizeExpr{heads}, batch};
}

kernels::Refusal why_not(Builder& b, const PositionScoresVariant& variant, const ir::Node& node) {
  const ir::Type& positions = node.inputs[ps::positions]->type;
  const std::int64_t size = positions.shape[1].constant(), count = positions.shape[2].constant();
  const bool tokens_are_bytes = ir::is_int8(node.inputs[ps::x]->type.dtype);
  if (variant.takes_bytes && !(tokens_are_bytes && ir::is_int8(positions.dtype)))
    return {"tokens and positions are not both quantized", !tokens_are_bytes};
  if (kernels::Refusal refusal = b.target().why_not(variant.needs); !refusal.reason.empty())
    return refusal;
  if (variant.takes_blocks && size > kernels::kPositionsColumns)
    return {fmt::format("it supports head sizes up to {}", kernels::kPositionsColumns)};
  if (variant.max_positions != 0 && count > variant.max_positions)
    return {fmt::format("it supports up to {} positions", variant.max_positions)};
  return {};
}

void lower_position_scores(Builder& b, const ir::Graph&, const ir::Node& node) {
  const ir::Value *x = node.inputs[ps::x], *table = node.inputs[ps::positions];
  const ir::Value* seq_offsets = node.input(ps::seq_offsets);
  if (!seq_offsets)
    fail(node, "scores of positions need packed tokens; keep the pass pack_tokens enabled");
  if (!table->is_constant())
    fail(node, "its positions are not constant; keep the pass fold_dequantize enabled");
  const ir::Shape &positions = table->type.shape, &out = node.output()->type.shape;
  const std::int64_t heads = positions[0].constant(), size = positions[1].constant(),
                     count = positions[2].constant();
  const auto choice =
      choose(b, node, kernels::position_scores_variants(),
             [&](const PositionScoresVariant& variant) { return why_not(b, variant, node); });
  const PositionScoresVariant& variant = *choice.variant;
  opencl::Defines defines;
  if (variant.takes_blocks) defines = {{"POSITIONS", static_cast<std::int32_t>(padded(count))}};
  const ir::DType type = x->type.dtype;
  const Arithmetic arithmetic = variant.takes_bytes
                                    ? Arithmetic::int8
                                    : Arithmetic::fp32_to(ir::DType::f32, ir::is_int8(type));
  const std::int32_t x_zero_point = zero_point_or_0(node.input(ps::x_zero_point)),
                     zero_point = zero_point_or_0(node.input(ps::positions_zero_point));
  const ir::Tensor panels = variant.takes_bytes ? in_words(*table->constant, zero_point,
                                                           x_zero_point + shift_to_u8(type) - 128)
                                                : in_panels(*table->constant, zero_point);
  Step& step =
      b.launch(node, arithmetic, variant.name, b.kernel(variant.program, variant.kernel(), defines),
               kernels::PositionScores<Argument>{
                   .x = b.in(x),
                   .x_stride = static_cast<std::int32_t>(x->type.shape.back().constant()),
                   .x_offset = static_cast<std::int32_t>(node.int_attribute("offset", 0)),
                   .x_type = type_code(type),
                   .x_zero_point = x_zero_point,
                   .positions = b.constant(panels),
                   .positions_zero_point =
                       variant.takes_bytes ? zero_point + shift_to_u8(table->type.dtype) : 0,
                   .position_count = static_cast<std::int32_t>(count),
                   .index = b.in(node.inputs[ps::index]),
                   .index_row = SizeExpr{node.inputs[ps::index]->type.shape.back()},
                   .of_keys = static_cast<std::int32_t>(node.int_attribute("of_keys", 0)),
                   .addend = b.in(node.input(ps::addend)),
                   .out = b.out(node.output()),
                   .out_row = SizeExpr{out[2]},
                   .out_head = SizeExpr{out[1] * out[2]},
                   .seq_offsets = b.in(seq_offsets),
                   .heads = static_cast<std::int32_t>(heads),
                   .head_size = static_cast<std::int32_t>(size),
                   .scale = static_cast<float>(node.float_attribute("scale")) *
                            scalar_or(node.input(ps::x_scale), 1) *
                            scalar_or(node.input(ps::positions_scale), 1),
                   .block_rows = SizeExpr{rows_of(variant)},
                   .error = b.error_flag()},
               grid_of(variant, heads));
  if (variant.tile != 0) step.local[0] = kernels::kPositionsItems;
  step.why_not_faster = choice.why_not_faster;
  step.operations_per_unit = 2.0 * static_cast<double>(size * heads);
  // A score for each key, whatever the number of positions: rows take those near them alone.
  step.work_units =
      ops::symbols::dim(ops::symbols::tokens) * ops::symbols::dim(ops::symbols::longest);
  b.plan().attention_heads = static_cast<std::int32_t>(heads);
}

}  // namespace

void add_position_scores(LoweringTable& table) {
  table[ops::operands::position_scores::op] = lower_position_scores;
}

}  // namespace bertcl::plan
