// SPDX-License-Identifier: Apache-2.0
// rotary: the position of a token as an angle by which each pair of columns of a head is turned.
#include <algorithm>

#include "ops/fused.hpp"
#include "ops/operands.hpp"

namespace bertcl::ops {
namespace {

namespace r = operands::rotary;

/// True if a table [batch, .., seq, size] has rows for each sequence.
bool is_of_sequences(const auto& table) { return table.size() > 2 && table.front() != 1; }

std::vector<ir::Type> infer_rotary(InferContext& context) {
  const ir::Shape& x = context.shape(r::x);
  const std::int64_t heads = context.node.int_attribute("heads");
  if (x.empty() || !x.back().is_constant() || heads < 1 || x.back().constant() % (2 * heads) != 0)
    context.fail("cannot split {} into {} heads of an even number of columns",
                 ir::str(context.type(r::x)), heads);
  const ir::Dim size = x.back().constant() / heads;
  for (const std::size_t i : {r::cos, r::sin}) {
    const ir::Shape& table = context.shape(i);
    if (table.size() < 2 || table.back() != size ||
        (table.size() > 3 && std::any_of(table.begin() + 1, table.end() - 2,
                                         [](const ir::Dim& d) { return d != ir::Dim(1); })) ||
        table[table.size() - 2] != context.shape(r::cos)[context.shape(r::cos).size() - 2] ||
        is_of_sequences(table) != is_of_sequences(context.shape(r::cos)) ||
        (is_of_sequences(table) && x.size() == 3 && table.front() != x.front()))
      context.fail("{} is not [1 or batch, .., seq, {}]", context.described(i), size.str());
  }
  if (context.has(r::seq_offsets) != (x.size() == 2))
    context.fail("{} is not [tokens, hidden] with seq_offsets or [batch, seq, hidden] without",
                 context.described(r::x));
  check_vector(context, r::out_scale, x.back(), /*or_one_element=*/true);
  check_vector(context, r::out_zero_point, x.back(), /*or_one_element=*/true);
  return {{type_of_result(context, 0, r::out_scale), x}};
}

std::vector<ir::Tensor> evaluate_rotary(const EvaluateContext& context) {
  const ir::Sizes& sizes = context.in(r::x).shape();
  const auto x = context.in(r::x).to_doubles(), cos = context.in(r::cos).to_doubles(),
             sin = context.in(r::sin).to_doubles();
  const ir::Sizes& table = context.in(r::cos).shape();
  const auto size = static_cast<std::size_t>(table.back());
  const std::size_t half = size / 2, columns = static_cast<std::size_t>(sizes.back());
  const std::size_t step =
      is_of_sequences(table) ? static_cast<std::size_t>(table[table.size() - 2]) : 0;
  std::vector<std::size_t> places;  // of the rows in the tables
  std::size_t first = 0;            // of the sequence
  for (const auto& [begin, end] : sequence_rows(context, r::seq_offsets)) {
    for (std::int64_t row = begin; row < end; ++row)
      places.push_back(first + static_cast<std::size_t>(row - begin));
    first += step;
  }
  std::vector<double> out;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t d = i % columns % size, at = places.at(i / columns) * size + d;
    const double turned = d < half ? -x[i + half] : x[i - half];
    out.push_back(x[i] * cos.at(at) + turned * sin.at(at));
  }
  return {result_of(context, 0, sizes, out, r::out_scale, r::out_zero_point)};
}

}  // namespace

std::vector<OpDef> rotary_ops() {
  return {own_op(
      operands::rotary::op,
      {{types::real}, {types::real}, {types::real}, {types::packed}, {types::real}, {types::bytes}},
      operands::rotary::names, infer_rotary, evaluate_rotary,
      {.out_scale = operands::rotary::out_scale})};
}

}  // namespace bertcl::ops
