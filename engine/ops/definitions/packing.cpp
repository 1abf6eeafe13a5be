// SPDX-License-Identifier: Apache-2.0
// The borders of packed tokens: pack_inputs, pack and unpack (docs/architecture.md).
#include <algorithm>
#include <functional>
#include <numeric>

#include "ops/fused.hpp"
#include "ops/operands.hpp"
#include "ops/packing.hpp"
#include "ops/symbols.hpp"

namespace bertcl::ops {
namespace {

/// The sizes of a batch without ids.
ir::Shape rows_attribute(const ir::Node& node) {
  return ir::parse_shape(node.string_attribute("rows")).value();
}

std::vector<ir::Type> infer_pack_inputs(InferContext& context) {
  namespace o = operands::pack_inputs;
  const bool has_ids = context.has(o::ids);
  const ir::Shape ids = has_ids ? context.shape(o::ids) : rows_attribute(context.node);
  if (ids.size() != 2) context.fail("{} is not [batch, seq]", has_ids ? "ids" : "rows");
  for (std::size_t i = 1; i < context.node.inputs.size(); ++i)
    if (context.has(i) && (!has_ids || context.shape(i) != ids))
      context.fail("{} does not have the shape of '{}'", context.described(i),
                   has_ids ? context.node.input(o::ids)->name : ir::str(ids));
  const ir::Shape rows{symbols::dim(symbols::tokens)};
  return {{ir::DType::i32, rows},
          {ir::DType::i32, rows},
          {ir::DType::i32, {symbols::dim(symbols::offsets)}},
          {ir::DType::u8, rows},
          {ir::DType::i32, rows}};
}
std::vector<ir::Tensor> evaluate_pack_inputs(const EvaluateContext& context) {
  namespace o = operands::pack_inputs;
  const bool has_ids = context.has(o::ids);
  const ir::Sizes sizes = has_ids ? context.in(o::ids).shape()
                                  : ir::evaluate(rows_attribute(context.node), context.bindings);
  std::vector<std::int64_t> mask;
  if (context.has(o::mask))
    for (const double m : context.in(o::mask).to_doubles()) mask.push_back(m != 0.0);
  const Packing packing =
      make_packing(sizes[0], sizes[1], mask, /*may_drop=*/!context.node.has("padding_reader"),
                   context.node.has("mask_is_length"));
  const auto vector = [](const auto& values) {
    return ir::Tensor::of({std::ssize(values)}, values);
  };
  const auto rows = [&](std::size_t i) { return vector(packing.gather(context.in(i).to_ints())); };
  return {has_ids ? rows(o::ids) : vector(packing.positions),
          context.has(o::positions) ? rows(o::positions) : vector(packing.positions),
          vector(packing.seq_offsets), vector(packing.key_mask),
          context.has(o::types) ? rows(o::types) : vector(packing.positions)};
}

/// [batch, seq, ..] and [tokens, ..]: the declared type says the sizes that the operand lacks.
std::vector<ir::Type> infer_pack(InferContext& context) {
  ir::Shape shape = context.shape(operands::pack::padded);
  if (shape.size() < 2) context.fail("the operand is not [batch, seq, ..]");
  shape.erase(shape.begin());
  shape[0] = symbols::dim(symbols::tokens);
  return {{context.type(0).dtype, std::move(shape)}};
}
/// One result, or two of parts of the columns.
std::vector<ir::Type> infer_unpack(InferContext& context) {
  const ir::Shape& rows = context.shape(operands::unpack::packed);
  const auto& results = context.node.outputs;
  const ir::Shape& declared = results[0]->type.shape;
  if (rows.empty() || declared.size() != rows.size() + 1)
    context.fail("the result is not [batch, seq, ..] of rows [tokens, ..]");
  ir::Shape shape{declared[0], declared[1]};
  shape.insert(shape.end(), rows.begin() + 1, rows.end());
  const ir::DType type = context.type(0).dtype;
  if (results.size() == 1) return {{type, std::move(shape)}};
  std::int64_t columns = 0;
  std::vector<ir::Type> parts;
  for (const ir::Value* result : results) {
    if (result->type.shape.size() != 3 || !result->type.shape.back().is_constant())
      context.fail("'{}' is not [batch, seq, columns]", result->name);
    columns += result->type.shape.back().constant();
    parts.push_back({type, shape});
    parts.back().shape.back() = result->type.shape.back();
  }
  if (results.size() > 2 || rows.size() != 2 || rows.back() != ir::Dim(columns))
    context.fail("the results are not two parts of the columns of {}", ir::str(rows));
  return parts;
}

/// Calls copy(row b * seq + s, row seq_offsets[b] + s) for each token s of each sequence b.
void for_each_token(const ir::Tensor& seq_offsets, std::int64_t seq,
                    const std::function<void(std::int64_t, std::int64_t)>& copy) {
  const auto offsets = seq_offsets.to_ints();
  for (std::size_t b = 0; b + 1 < offsets.size(); ++b)
    for (std::int64_t row = offsets[b]; row < offsets[b + 1]; ++row)
      copy(static_cast<std::int64_t>(b) * seq + row - offsets[b], row);
}

std::int64_t row_bytes(ir::DType type, const ir::Sizes& sizes, std::size_t leading) {
  return std::accumulate(sizes.begin() + static_cast<std::ptrdiff_t>(leading), sizes.end(),
                         static_cast<std::int64_t>(ir::size_of(type)), std::multiplies<>());
}

std::vector<ir::Tensor> evaluate_pack(const EvaluateContext& context) {
  const ir::Tensor& in = context.in(0);
  const std::int64_t bytes = row_bytes(in.dtype(), in.shape(), 2);
  ir::Tensor out = ir::Tensor::zeros(in.dtype(), context.result_sizes());
  for_each_token(context.in(1), in.shape()[1], [&](std::int64_t padded, std::int64_t packed) {
    std::copy_n(in.bytes().begin() + padded * bytes, bytes,
                out.mutable_bytes().begin() + packed * bytes);
  });
  return {out};
}
std::vector<ir::Tensor> evaluate_unpack(const EvaluateContext& context) {
  const ir::Tensor& in = context.in(0);
  const std::int64_t stride = row_bytes(in.dtype(), in.shape(), 1);
  std::vector<ir::Tensor> results;
  std::int64_t first = 0;  // byte of the row
  for (std::size_t i = 0; i < context.node.outputs.size(); ++i) {
    const ir::Sizes sizes = context.result_sizes(i);
    const std::int64_t bytes = row_bytes(in.dtype(), sizes, 2);
    ir::Tensor& out = results.emplace_back(ir::Tensor::zeros(in.dtype(), sizes));
    for_each_token(context.in(1), sizes[1], [&](std::int64_t padded, std::int64_t packed) {
      std::copy_n(in.bytes().begin() + packed * stride + first, bytes,
                  out.mutable_bytes().begin() + padded * bytes);
    });
    first += bytes;
  }
  return results;
}

}  // namespace

std::vector<OpDef> packing_ops() {
  return {
      own_op(operands::pack_inputs::op, {{types::all}}, operands::pack_inputs::names,
             infer_pack_inputs, evaluate_pack_inputs),
      own_op(operands::pack::op, {{types::all}, {types::packed}}, operands::pack::names, infer_pack,
             evaluate_pack, {.moves_elements = true}),
      own_op(operands::unpack::op, {{types::all}, {types::packed}}, operands::unpack::names,
             infer_unpack, evaluate_unpack, {.moves_elements = true}),
  };
}

}  // namespace bertcl::ops
