// SPDX-License-Identifier: Apache-2.0
// Signs followed from the operators that make a value back to constants.
#include "passes/signs.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

#include "passes/node_queries.hpp"

namespace bertcl::passes {
namespace {

constexpr int kMaxSignDepth = 16;                   // operators
constexpr std::int64_t kMaxSignElements = 1 << 16;  // of a constant that is looked through

enum class Sign { unknown, nonnegative, positive };

Sign sign_of(const ir::Value* v, int depth);

Sign sign_of_constant(const ir::Tensor& constant) {
  if (constant.size() > kMaxSignElements) return Sign::unknown;
  const auto values = constant.to_doubles();
  if (std::ranges::all_of(values, [](double d) { return d > 0.0; })) return Sign::positive;
  return std::ranges::all_of(values, [](double d) { return d >= 0.0; }) ? Sign::nonnegative
                                                                        : Sign::unknown;
}

bool is_even(const ir::Value* exponent) {
  const auto e = scalar_value(exponent);
  return e && std::fmod(*e, 2.0) == 0.0;
}

Sign sign_of_result(const ir::Node& n, int depth) {
  const auto of = [&](std::size_t i) {
    const ir::Value* operand = n.input(i);
    return operand ? sign_of(operand, depth + 1) : Sign::unknown;
  };
  if (is_any_of(n, {"Exp", "Sigmoid"})) return Sign::positive;
  if (is_any_of(n, {"Abs", "Relu", "ReduceL1", "ReduceL2", "ReduceSumSquare", "Softmax"}))
    return std::max(Sign::nonnegative, n.op == "Abs" || n.op == "Relu" ? of(0) : Sign::unknown);
  if (is_any_of(n, {"Sqrt", "Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose",
                    "Expand", "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin"}))
    return of(0);
  if (n.op == "Cast" && ir::is_float(n.output()->type.dtype)) return of(0);
  if (n.op == "Pow" && is_even(n.inputs[1])) return std::max(Sign::nonnegative, of(0));
  if (n.op == "Mul" && n.inputs[0] == n.inputs[1]) return std::max(Sign::nonnegative, of(0));
  if (n.op == "Mul") return std::min(of(0), of(1));
  if (n.op == "Div") return of(1) == Sign::positive ? of(0) : Sign::unknown;
  if (n.op == "Add")
    return std::min(of(0), of(1)) == Sign::unknown ? Sign::unknown : std::max(of(0), of(1));
  Sign sign = n.op == "Min" ? Sign::positive : Sign::unknown;
  for (std::size_t i = 0; i < n.inputs.size(); ++i) {
    if (n.op == "Min") sign = std::min(sign, of(i));
    if (n.op == "Max") sign = std::max(sign, of(i));
  }
  return sign;
}

Sign sign_of(const ir::Value* v, int depth) {
  if (v->is_constant()) return sign_of_constant(*v->constant);
  return v->producer && depth < kMaxSignDepth ? sign_of_result(*v->producer, depth) : Sign::unknown;
}

}  // namespace

bool is_nonnegative(const ir::Value* value) { return sign_of(value, 0) != Sign::unknown; }
bool is_positive(const ir::Value* value) { return sign_of(value, 0) == Sign::positive; }

}  // namespace bertcl::passes
