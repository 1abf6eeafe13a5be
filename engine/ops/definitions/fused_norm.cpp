// SPDX-License-Identifier: Apache-2.0
// add_norm and embed_norm: LayerNorm or RMSNorm of a sum, in f32 and quantized for its readers.
#include "ops/fused.hpp"
#include "ops/norm.hpp"
#include "ops/operands.hpp"

namespace bertcl::ops {
namespace {

/// The results: f32, with {sum} also the sum, then bytes, each with a scale and a zero point from
/// operand `out_scale` on, or the same numbers in bf16.
std::vector<ir::Type> results(const InferContext& context, ir::Shape shape, std::size_t out_scale) {
  std::vector<ir::Type> types{{type_of_result(context, 0, kNoOperand), shape}};
  const std::size_t first = first_quantized_result(context.node);
  if (first > 1) types.push_back(types.front());
  for (std::size_t i = first; i < context.node.outputs.size(); ++i) {
    const std::size_t scale = out_scale + 2 * (i - first);
    const bool is_bf16 = context.node.outputs[i]->type.dtype == ir::DType::bf16;
    if (i > first + 1 || context.has(scale) == is_bf16)
      context.fail("result {} {} scale", i, is_bf16 ? "is bf16 and has a" : "has no");
    check_vector(context, scale, shape.back(), /*or_one_element=*/true);
    check_vector(context, scale + 1, shape.back(), /*or_one_element=*/true);
    types.push_back({type_of_result(context, i, scale), shape});
  }
  return types;
}

std::vector<ir::Tensor> normalized(const EvaluateContext& context, const ir::Sizes& sizes,
                                   std::vector<double> sum, std::size_t gamma, std::size_t beta,
                                   std::size_t out_scale) {
  const std::size_t first = first_quantized_result(context.node);
  std::vector<double> rows = sum;
  normalize_rows(rows, context.in(gamma).to_doubles(),
                 context.has(beta) ? context.in(beta).to_doubles() : std::vector<double>{},
                 context.node.float_attribute("epsilon"),
                 context.node.int_attribute("rms", 0) != 0);
  std::vector<ir::Tensor> all{result_of(context, 0, sizes, rows, kNoOperand, kNoOperand)};
  if (first > 1) all.push_back(result_of(context, 1, sizes, sum, kNoOperand, kNoOperand));
  for (std::size_t i = first; i < context.node.outputs.size(); ++i) {
    const std::size_t scale = out_scale + 2 * (i - first);
    all.push_back(result_of(context, i, sizes, rows, scale, scale + 1));
  }
  return all;
}

std::vector<ir::Type> infer_add_norm(InferContext& context) {
  namespace o = operands::add_norm;
  const ir::Shape& shape = context.shape(o::x);
  if (shape.empty()) context.fail("x is a scalar");
  check_vector(context, o::gamma, shape.back());
  check_vector(context, o::beta, shape.back());
  for (const o::Term& term : o::terms) {
    if (!context.has(term.value)) continue;
    const ir::Type& type = context.type(term.value);
    if (type.shape != shape || ir::is_int8(type.dtype) != context.has(term.scale))
      context.fail("{} is not a term of the sum {}, or has no scale", context.described(term.value),
                   ir::str(shape));
    check_vector(context, term.scale, shape.back(), /*or_one_element=*/true);
    check_vector(context, term.zero_point, shape.back(), /*or_one_element=*/true);
  }
  return results(context, shape, o::out_scale);
}
std::vector<ir::Tensor> evaluate_add_norm(const EvaluateContext& context) {
  namespace o = operands::add_norm;
  std::vector<double> sum(context.in(o::x).size(), 0.0);
  for (const o::Term& term : o::terms) {
    if (!context.has(term.value)) continue;
    const auto numbers = real_numbers(context, term.value, term.scale, term.zero_point);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += numbers[i];
  }
  return normalized(context, context.in(o::x).shape(), std::move(sum), o::gamma, o::beta,
                    o::out_scale);
}

std::vector<ir::Type> infer_embed_norm(InferContext& context) {
  namespace o = operands::embed_norm;
  const ir::Shape& word = context.shape(o::word);
  if (word.size() != 2) context.fail("the word table is not [words, hidden]");
  for (const std::size_t i : {+o::position, +o::type})
    if (context.has(i) && (context.shape(i).size() != 2 || context.shape(i)[1] != word[1]))
      context.fail("the table {} does not have {} columns", context.described(i), word[1].str());
  check_vector(context, o::gamma, word[1]);
  check_vector(context, o::beta, word[1]);
  ir::Shape shape = context.shape(o::ids);
  for (const std::size_t i : {+o::types, +o::positions})
    if (context.has(i) && context.shape(i) != shape)
      context.fail("{} does not have the shape of '{}'", context.described(i),
                   context.node.input(o::ids)->name);
  if (context.has(o::types) && !context.has(o::type)) context.fail("token types without a table");
  shape.push_back(word[1]);
  return results(context, std::move(shape), o::out_scale);
}
std::vector<ir::Tensor> evaluate_embed_norm(const EvaluateContext& context) {
  namespace o = operands::embed_norm;
  ir::Sizes sizes = context.in(o::ids).shape();
  const std::int64_t rows = ir::element_count(sizes), seq = sizes.empty() ? 1 : sizes.back();
  sizes.push_back(context.in(o::word).shape()[1]);
  const std::int64_t hidden = sizes.back();
  std::vector<double> sum(rows * hidden, 0.0);
  const auto add = [&](std::size_t table, std::size_t index, const auto& default_value) {
    if (!context.has(table)) return;
    const std::vector<double> values = context.in(table).to_doubles();
    const auto given =
        context.has(index) ? context.in(index).to_ints() : std::vector<std::int64_t>{};
    const std::int64_t count = context.in(table).shape()[0];
    for (std::int64_t i = 0; i < rows; ++i) {
      std::int64_t at = given.empty() ? default_value(i) : given[i];
      if (at < 0) at += count;  // as Gather counts from the end
      if (at < 0 || at >= count) context.fail("row {} is outside a table of {}", at, count);
      for (std::int64_t d = 0; d < hidden; ++d) sum[i * hidden + d] += values[at * hidden + d];
    }
  };
  const auto zero = [](std::int64_t) { return std::int64_t{0}; };
  add(o::word, o::ids, zero);
  add(o::type, o::types, zero);
  add(o::position, o::positions, [&](std::int64_t i) { return i % seq; });
  return normalized(context, sizes, std::move(sum), o::gamma, o::beta, o::out_scale);
}

}  // namespace

std::vector<OpDef> fused_norm_ops() {
  const OperandConstraint x{types::real | types::bytes, 'X'}, x_zero{types::bytes, 'X'};
  const OperandConstraint residual{types::real | types::bytes, 'R'},
      residual_zero{types::bytes, 'R'};
  return {
      own_op(operands::add_norm::op,
             {x, residual, takes::real, takes::real, takes::real, x_zero, takes::real,
              residual_zero, takes::real, takes::bytes, takes::real, takes::bytes},
             operands::add_norm::names, infer_add_norm, evaluate_add_norm,
             {.row_wise = true, .is_norm = true, .out_scale = operands::add_norm::out_scale}),
      own_op(operands::embed_norm::op,
             {takes::numbers, takes::numbers, takes::numbers, takes::real, takes::real, takes::real,
              takes::real, takes::real, takes::real, takes::bytes, takes::real, takes::bytes},
             operands::embed_norm::names, infer_embed_norm, evaluate_embed_norm,
             {.is_norm = true, .out_scale = operands::embed_norm::out_scale}),
  };
}

}  // namespace bertcl::ops
