// SPDX-License-Identifier: Apache-2.0
// position_scores: what relative positions add to the scores of attention.
#include "ops/fused.hpp"
#include "ops/operands.hpp"
#include "ops/symbols.hpp"

namespace bertcl::ops {
namespace {

namespace ps = operands::position_scores;

std::vector<ir::Type> infer_position_scores(InferContext& context) {
  const ir::Shape &x = context.shape(ps::x), &positions = context.shape(ps::positions),
                  &index = context.shape(ps::index);
  const std::int64_t heads = context.node.int_attribute("heads");
  const std::int64_t first = context.node.int_attribute("offset", 0);
  if (positions.size() != 3 || positions[0] != ir::Dim(heads) || !positions[1].is_constant() ||
      !positions[2].is_constant() || positions[2].constant() < 1)
    context.fail("{} is not [{}, size, count]", context.described(ps::positions), heads);
  const std::int64_t end = first + heads * positions[1].constant();
  if (x.empty() || !x.back().is_constant() || first < 0 || end > x.back().constant())
    context.fail("{} does not contain columns {} to {}", context.described(ps::x), first, end);
  if (index.size() < 2 || index.back() != index[index.size() - 2] ||
      ir::element_count(index) != index.back() * index.back())
    context.fail(context.described(ps::index) + " is not [1, .., seq, seq]");
  if (ir::is_int8(context.type(ps::positions).dtype) != context.has(ps::positions_scale))
    context.fail("positions_scale is required for int8 positions and not allowed otherwise");
  const bool packed = context.has(ps::seq_offsets);
  if (x.size() != (packed ? 2u : 3u))
    context.fail("{} is not [tokens, hidden] with seq_offsets or [batch, seq, hidden] without",
                 context.described(ps::x));
  const ir::Shape result = packed ? ir::Shape{heads, x[0], symbols::dim(symbols::longest)}
                                  : ir::Shape{x[0], heads, x[1], x[1]};
  if (context.has(ps::addend) && context.shape(ps::addend) != result)
    context.fail(context.described(ps::addend) + " does not have the shape of the result");
  return {{ir::DType::f32, result}};
}

std::vector<ir::Tensor> evaluate_position_scores(const EvaluateContext& context) {
  const ir::Node& node = context.node;
  const std::vector<float> x = real_numbers(context, ps::x, ps::x_scale, ps::x_zero_point);
  const std::vector<float> positions =
      real_numbers(context, ps::positions, ps::positions_scale, ps::positions_zero_point);
  const auto index = context.in(ps::index).to_ints();
  const ir::Sizes& table = context.in(ps::positions).shape();
  const std::int64_t heads = table[0], size = table[1], count = table[2];
  const std::int64_t stride = context.in(ps::x).shape().back(),
                     first = node.int_attribute("offset", 0),
                     seq = context.in(ps::index).shape().back();
  const bool of_keys = node.int_attribute("of_keys", 0) != 0, packed = context.has(ps::seq_offsets);
  const double scale = node.float_attribute("scale");
  const ir::Sizes sizes = context.result_sizes();
  std::vector<double> out(ir::element_count(sizes), 0.0), addend;
  if (context.has(ps::addend)) addend = context.in(ps::addend).to_doubles();

  for (const auto& [begin, end] : sequence_rows(context, ps::seq_offsets)) {
    const std::int64_t length = end - begin;
    for (std::int64_t head = 0; head < heads; ++head)
      for (std::int64_t row = 0; row < length; ++row)
        for (std::int64_t key = 0; key < length; ++key) {
          const std::int64_t from = of_keys ? key : row, to = of_keys ? row : key;
          std::int64_t at = index.at(from * seq + to);
          if (at < 0) at += count;
          if (at < 0 || at >= count) context.fail("position {} of {} is out of range", at, count);
          double sum = 0.0;
          for (std::int64_t d = 0; d < size; ++d)
            sum += static_cast<double>(x.at((begin + from) * stride + first + head * size + d)) *
                   static_cast<double>(positions[(head * size + d) * count + at]);
          const auto target = static_cast<std::size_t>(
              packed ? (head * sizes[1] + begin + key) * sizes[2] + row
                     : (begin * heads + head * length + row) * length + key);
          out[target] = scale * sum + (addend.empty() ? 0.0 : addend.at(target));
        }
  }
  return {ir::Tensor::of<double>(sizes, out).converted(ir::DType::f32)};
}

}  // namespace

std::vector<OpDef> position_scores_ops() {
  const OperandConstraint numbers{types::real | types::bytes}, index{TypeSet{ir::DType::i32}};
  return {own_op(operands::position_scores::op,
                 {numbers, numbers, index, takes::real, takes::real, takes::bytes, takes::packed,
                  takes::real, takes::bytes},
                 ps::names, infer_position_scores, evaluate_position_scores)};
}

}  // namespace bertcl::ops
