// SPDX-License-Identifier: Apache-2.0
// pool: one vector for each sequence from the vectors of its tokens (Reimers and Gurevych, 2019).
#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "ops/fused.hpp"
#include "ops/operands.hpp"

namespace bertcl::ops {
namespace {

std::vector<ir::Type> infer_pool(InferContext& context) {
  namespace o = operands::pool;
  const ir::Shape& x = context.shape(o::x);
  const bool packed = context.has(o::seq_offsets);
  const std::string& kind = context.node.string_attribute("kind");
  if (std::ranges::find(o::kinds, kind) == std::end(o::kinds))
    context.fail("unknown kind '{}'", kind);
  if (packed != context.has(o::key_mask) || x.size() < 2 || x.size() > 3 ||
      (packed && x.size() == 3))
    context.fail(
        "packed tokens [tokens, hidden] require seq_offsets and key_mask; [batch, seq, hidden] and "
        "[batch, hidden] allow neither");
  if (context.has(o::mask) && (x.size() == 2 || context.shape(o::mask).size() != 2))
    context.fail("a mask [batch, seq] goes with x [batch, seq, hidden]");
  if (!x.back().is_constant()) context.fail("the size of a row is not known");
  const std::int64_t hidden = x.back().constant();
  const std::int64_t columns = context.node.int_attribute("columns", hidden);
  if (columns < 1 || columns > hidden) context.fail("{} columns of rows of {}", columns, hidden);
  const ir::Shape& declared = context.node.output()->type.shape;
  if (packed && declared.size() != 2) context.fail("the result is not [batch, columns]");
  return {{ir::DType::f32, {packed ? declared[0] : x[0], ir::Dim(columns)}}};
}

/// Rows of x, and which of them count.
struct Rows {
  std::int64_t begin, end;
  std::vector<bool> count;
};

std::vector<Rows> rows_of(const EvaluateContext& context) {
  namespace o = operands::pool;
  std::vector<Rows> all;
  for (const auto& [begin, end] : sequence_rows(context, o::seq_offsets))
    all.push_back({begin, end, {}});
  const bool masked = context.node.int_attribute("masked", 0) != 0;
  const std::size_t mask = masked ? +o::key_mask : +o::mask;
  const auto values = context.has(mask) ? context.in(mask).to_doubles() : std::vector<double>{};
  for (Rows& rows : all)
    for (std::int64_t row = rows.begin; row < rows.end; ++row)
      rows.count.push_back(values.empty() || values.at(row) != 0.0);
  return all;
}

/// The value of one column.
double pooled(const std::string& kind, const std::vector<double>& values) {
  if (values.empty()) return 0.0;
  if (kind == "cls") return values.front();
  if (kind == "last") return values.back();
  double sum = kind == "max" ? -std::numeric_limits<double>::infinity() : 0.0;
  for (const double value : values) {
    if (kind == "mean") sum += value;
    if (kind == "max" && (value > sum || std::isnan(value))) sum = value;
  }
  return kind == "mean" ? sum / static_cast<double>(values.size()) : sum;
}

std::vector<ir::Tensor> evaluate_pool(const EvaluateContext& context) {
  namespace o = operands::pool;
  const auto x = context.in(o::x).to_doubles();
  const std::int64_t hidden = context.in(o::x).shape().back();
  const std::int64_t columns = context.node.int_attribute("columns", hidden);
  const std::string& kind = context.node.string_attribute("kind");
  const std::vector<Rows> sequences = rows_of(context);
  std::vector<float> out;
  for (const Rows& rows : sequences) {
    std::vector<double> vector;
    double squares = 0.0;
    for (std::int64_t column = 0; column < columns; ++column) {
      std::vector<double> values;
      for (std::int64_t row = rows.begin; row < rows.end; ++row)
        if (rows.count[row - rows.begin]) values.push_back(x[row * hidden + column]);
      vector.push_back(pooled(kind, values));
      squares += vector.back() * vector.back();
    }
    const double norm = std::sqrt(squares);
    const double divisor = !context.node.has("normalize") ? 1.0
                           : norm < o::min_norm           ? o::min_norm
                                                          : norm;  // NaN stays
    for (const double value : vector) out.push_back(static_cast<float>(value / divisor));
  }
  return {ir::Tensor::of({std::ssize(sequences), columns}, std::move(out))};
}

}  // namespace

std::vector<OpDef> pool_ops() {
  return {own_op(
      operands::pool::op,
      {{types::real}, {types::all}, {types::packed}, {TypeSet{ir::DType::u8, ir::DType::boolean}}},
      operands::pool::names, infer_pool, evaluate_pool)};
}

}  // namespace bertcl::ops
