// SPDX-License-Identifier: Apache-2.0
// Elementwise operators of two or more operands with broadcasting: arithmetic, comparison, logic.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ops/support.hpp"

namespace bertcl::ops {
namespace {

/// z = f(x, y) over the broadcast of both, computed in the computing type of x.
template <class F>
ir::Tensor zip(const EvaluateContext& context, const ir::Tensor& x, const ir::Tensor& y,
               ir::DType result, const F& f) {
  const ir::Sizes sizes = broadcast(context, x.shape(), y.shape());
  return with_compute_type(x.dtype(), [&]<class T>(T) {
    const Elements<T> a(x), b(y);
    const T* pa = a.data();
    const T* pb = b.data();
    std::vector<T> out;
    out.reserve(ir::element_count(sizes));
    walk<2>(sizes, {broadcast_strides(x.shape(), sizes), broadcast_strides(y.shape(), sizes)},
            [&](const auto& at) { out.push_back(static_cast<T>(f(pa[at[0]], pb[at[1]]))); });
    return make_tensor<T>(sizes, std::move(out), result);
  });
}

/// Folds f over all operands (two, or any number for Min, Max, Sum, Mean).
template <class F>
Evaluate fold(F) {
  return [](const EvaluateContext& context) {
    ir::Tensor result = context.in(0);
    for (std::size_t i = 1; i < context.inputs.size(); ++i)
      result = zip(context, result, context.in(i), result.dtype(), F{});
    return std::vector{result};
  };
}

template <class F>
Evaluate comparison(F) {
  return [](const EvaluateContext& context) {
    return std::vector{zip(context, context.in(0), context.in(1), ir::DType::boolean, F{})};
  };
}

std::vector<ir::Type> infer_binary(InferContext& context) {
  ir::Type type = context.type(0);
  for (std::size_t i = 1; i < context.node.inputs.size(); ++i) {
    type.shape = broadcast(context, type.shape, context.shape(i));
  }
  return {type};
}
std::vector<ir::Type> infer_mod(InferContext& context) {
  if (ir::is_float(context.type(0).dtype) && context.node.int_attribute("fmod", 0) == 0)
    context.fail("floats need the attribute fmod = 1");
  return infer_binary(context);
}
std::vector<ir::Type> infer_comparison(InferContext& context) {
  return {{ir::DType::boolean, broadcast(context, context.shape(0), context.shape(1))}};
}

std::vector<SymbolicElements> values_binary(InferContext& context) {
  SymbolicElements result;
  for (std::size_t i = 0; i < context.node.inputs.size(); ++i) {
    const auto* b = context.elements(i);
    if (!b) return {};
    if (i == 0) {
      result = *b;
      continue;
    }
    const std::size_t n = std::max(result->size(), b->size());
    if ((result->size() != n && result->size() != 1) || (b->size() != n && b->size() != 1))
      return {};
    std::vector<ir::Dim> out;
    for (std::size_t k = 0; k < n; ++k) {
      const auto d = context.values.apply(context.graph, context.node.op,
                                          (*result)[result->size() == 1 ? 0 : k],
                                          (*b)[b->size() == 1 ? 0 : k]);
      if (!d) return {};
      out.push_back(*d);
    }
    result = std::move(out);
  }
  return {result};
}

/// Those of C (fmod) are for the host alone.
std::vector<SymbolicElements> values_mod(InferContext& context) {
  if (context.node.int_attribute("fmod", 0) != 0) return {};
  return values_binary(context);
}

std::vector<ir::Tensor> evaluate_div(const EvaluateContext& context) {
  const ir::Tensor& x = context.in(0);
  return {zip(context, x, context.in(1), x.dtype(), [&]<class T>(T a, T b) {
    if constexpr (std::is_integral_v<T>) {  // truncates; -2^63 / -1 wraps
      if (b == 0) context.fail("integer division by zero");
      if constexpr (std::is_signed_v<T>)
        if (b == -1) return minus(T{}, a);
      return a / b;
    } else {
      return a / b;
    }
  })};
}

/// fmod = 0: the sign of the divisor (integers only); fmod = 1: the sign of the dividend, as C.
std::vector<ir::Tensor> evaluate_mod(const EvaluateContext& context) {
  const bool c_like = context.node.int_attribute("fmod", 0) != 0;
  const ir::Tensor& x = context.in(0);
  return {zip(context, x, context.in(1), x.dtype(), [&]<class T>(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      if (b == 0) context.fail("integer division by zero");
      if constexpr (std::is_signed_v<T>)
        if (b == -1) return T{};
      const T r = a % b;
      return !c_like && r != T{} && (r < T{}) != (b < T{}) ? static_cast<T>(r + b) : r;
    } else {
      return static_cast<T>(std::fmod(a, b));
    }
  })};
}

/// Integers are multiplied out and wrap around; the inverse of one is 0 unless it is 1 or -1.
std::int64_t integer_power(const EvaluateContext& context, std::int64_t a, std::int64_t b) {
  if (b < 0) {
    if (a == 0) context.fail("0 to a negative power");
    return a == 1 ? 1 : a == -1 ? (b % 2 == 0 ? 1 : -1) : 0;
  }
  std::uint64_t power = 1, square = modular(a);
  for (; b > 0; b >>= 1, square *= square)
    if (b & 1) power *= square;
  return static_cast<std::int64_t>(power);
}
std::vector<ir::Tensor> evaluate_pow(const EvaluateContext& context) {
  const ir::Tensor& x = context.in(0);
  return {zip(context, x, context.in(1), x.dtype(), [&]<class T>(T a, T b) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(integer_power(context, static_cast<std::int64_t>(a),
                                          static_cast<std::int64_t>(b)));  // no u64: see its types
    else
      return std::pow(a, b);
  })};
}

/// `code`: of elementwise_binary.cl.
OpDef binary(const char* name, std::int32_t code, TypeSet types, Infer infer, Evaluate evaluate,
             Values values = values_binary, std::vector<std::string> onnx_attributes = {}) {
  return op(name, 2, 2, {{types, 'T'}}, infer, evaluate, values,
            {.by_element = true, .binary_code = code, .onnx_attributes = onnx_attributes});
}

}  // namespace

std::vector<OpDef> binary_ops() {
  constexpr TypeSet numbers = types::numbers, truth = types::truth;
  const auto compare = infer_comparison;
  std::vector<OpDef> ops = {
      binary("Add", 0, numbers, infer_binary, fold([](auto x, auto y) { return plus(x, y); })),
      binary("Sub", 1, numbers, infer_binary, fold([](auto x, auto y) { return minus(x, y); })),
      binary("Mul", 2, numbers, infer_binary, fold([](auto x, auto y) { return times(x, y); })),
      binary("Div", 3, numbers, infer_binary, evaluate_div),
      binary("Pow", 4, types::floats | types::indices, infer_binary, evaluate_pow, nullptr),
      binary("Min", 5, numbers, infer_binary, fold([](auto x, auto y) { return smaller(x, y); })),
      binary("Max", 6, numbers, infer_binary, fold([](auto x, auto y) { return larger(x, y); })),
      binary("Mod", 7, numbers, infer_mod, evaluate_mod, values_mod, {"fmod"}),
      binary("Equal", 16, types::all, compare, comparison([](auto x, auto y) { return x == y; })),
      binary("Less", 17, numbers, compare, comparison([](auto x, auto y) { return x < y; })),
      binary("Greater", 18, numbers, compare, comparison([](auto x, auto y) { return x > y; })),
      binary("LessOrEqual", 19, numbers, compare,
             comparison([](auto x, auto y) { return x <= y; })),
      binary("GreaterOrEqual", 20, numbers, compare,
             comparison([](auto x, auto y) { return x >= y; })),
      binary("And", 24, truth, compare,
             comparison([]<class T>(T x, T y) { return (x != T{}) && (y != T{}); })),
      binary("Or", 25, truth, compare,
             comparison([]<class T>(T x, T y) { return (x != T{}) || (y != T{}); })),
      binary("Xor", 26, truth, compare,
             comparison([]<class T>(T x, T y) { return (x != T{}) != (y != T{}); }), nullptr),
  };
  for (OpDef& op : ops)
    if (op.name == "Min" || op.name == "Max") op.min_inputs = 1, op.max_inputs = kAnyNumber;
  return ops;
}

}  // namespace bertcl::ops
