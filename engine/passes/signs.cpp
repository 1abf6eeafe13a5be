// SPDX-License-Identifier: Apache-2.0
// Derives signs from operators, back to inputs and constants.
#include "passes/signs.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

#include "passes/node_queries.hpp"

namespace bertcl::passes {
namespace {

constexpr int kMaxSignValues = 256;                 // that are looked at
constexpr std::int64_t kMaxSignElements = 1 << 16;  // of a constant that is looked through

enum class Sign { unknown, nonnegative, positive };

/// `left`: how many values may still be looked at.
Sign sign_of(const ir::Value* v, int& left);

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

Sign sign_of_result(const ir::Node& n, int& left) {
  const auto of = [&](std::size_t i) {
    const ir::Value* operand = n.input(i);
    return operand ? sign_of(operand, left) : Sign::unknown;
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
  if (n.op == "Add") {
    const Sign a = of(0), b = of(1);
    return std::min(a, b) == Sign::unknown ? Sign::unknown : std::max(a, b);
  }
  if (!is_any_of(n, {"Max", "Min"})) return Sign::unknown;
  Sign sign = of(0);
  for (std::size_t i = 1; i < n.inputs.size(); ++i)
    sign = n.op == "Min" ? std::min(sign, of(i)) : std::max(sign, of(i));
  return sign;
}

Sign sign_of(const ir::Value* v, int& left) {
  if (--left < 0) return Sign::unknown;
  if (v->is_constant()) return sign_of_constant(*v->constant);
  return v->producer ? sign_of_result(*v->producer, left) : Sign::unknown;
}

Sign sign_of(const ir::Value* v) {
  int left = kMaxSignValues;
  return sign_of(v, left);
}

}  // namespace

bool is_nonnegative(const ir::Value* value) { return sign_of(value) != Sign::unknown; }
bool is_positive(const ir::Value* value) { return sign_of(value) == Sign::positive; }

}  // namespace bertcl::passes
