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
    out.reserve(static_cast<std::size_t>(ir::element_count(sizes)));
    walk<2>(sizes, {broadcast_strides(x.shape(), sizes), broadcast_strides(y.shape(), sizes)},
            [&](const auto& at) { out.push_back(static_cast<T>(f(pa[at[0]], pb[at[1]]))); });
    return to_tensor<T>(sizes, std::move(out), result);
  });
}

/// Folds f over all operands (two, or any number for Min, Max, Sum, Mean).
template <class F>
std::vector<ir::Tensor> evaluate_binary(const EvaluateContext& context) {
  ir::Tensor result = context.in(0);
  for (std::size_t i = 1; i < context.inputs.size(); ++i)
    result = zip(context, result, context.in(i), result.dtype(), F{});
  return {result};
}
template <class F>
std::vector<ir::Tensor> evaluate_comparison(const EvaluateContext& context) {
  return {zip(context, context.in(0), context.in(1), ir::DType::boolean, F{})};
}

void check_types(const InferContext& context, std::size_t i) {
  if (context.type(i).dtype != context.type(0).dtype)
    context.fail(fmt::format("operands are of different types: '{}' {} and '{}' {}",
                             context.node.input(0)->name, ir::str(context.type(0)),
                             context.node.input(i)->name, ir::str(context.type(i))));
}
std::vector<ir::Type> infer_binary(InferContext& context) {
  ir::Type type = context.type(0);
  for (std::size_t i = 1; i < context.node.inputs.size(); ++i) {
    check_types(context, i);
    type.shape = broadcast(context, type.shape, context.shape(i));
  }
  return {type};
}
std::vector<ir::Type> infer_pow(InferContext& context) {
  return {{context.type(0).dtype, broadcast(context, context.shape(0), context.shape(1))}};
}
std::vector<ir::Type> infer_comparison(InferContext& context) {
  check_types(context, 1);
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

/// Integer arithmetic wraps around.
constexpr std::uint64_t modular(std::int64_t v) { return static_cast<std::uint64_t>(v); }
constexpr float modular(float v) { return v; }
constexpr double modular(double v) { return v; }

#define BERTCL_BINARY(NAME, EXPRESSION) \
  struct NAME {                         \
    template <class T>                  \
    auto operator()(T x, T y) const {   \
      return EXPRESSION;                \
    }                                   \
  }
BERTCL_BINARY(Add, static_cast<T>(modular(x) + modular(y)));
BERTCL_BINARY(Sub, static_cast<T>(modular(x) - modular(y)));
BERTCL_BINARY(Mul, static_cast<T>(modular(x) * modular(y)));
BERTCL_BINARY(Pow, std::pow(x, y));
BERTCL_BINARY(Min, y < x ? y : x);
BERTCL_BINARY(Max, x < y ? y : x);
BERTCL_BINARY(Equal, x == y);
BERTCL_BINARY(Less, x < y);
BERTCL_BINARY(Greater, x > y);
BERTCL_BINARY(LessOrEqual, x <= y);
BERTCL_BINARY(GreaterOrEqual, x >= y);
BERTCL_BINARY(And, (x != T{}) && (y != T{}));
BERTCL_BINARY(Or, (x != T{}) || (y != T{}));
BERTCL_BINARY(Xor, (x != T{}) != (y != T{}));
#undef BERTCL_BINARY

std::vector<ir::Tensor> evaluate_div(const EvaluateContext& context) {
  const ir::Tensor& x = context.in(0);
  return {zip(context, x, context.in(1), x.dtype(), [&]<class T>(T a, T b) {
    if constexpr (std::is_integral_v<T>) {  // truncates; -2^63 / -1 wraps
      if (b == 0) context.fail("integer division by zero");
      return b == -1 ? static_cast<T>(0 - static_cast<std::uint64_t>(a)) : a / b;
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
      if (b == -1) return T{};
      const T r = a % b;
      return !c_like && r != 0 && (r < 0) != (b < 0) ? r + b : r;
    } else {
      return static_cast<T>(std::fmod(a, b));
    }
  })};
}

std::vector<ir::Tensor> evaluate_mean(const EvaluateContext& context) {
  const ir::Tensor sum = evaluate_binary<Add>(context).front();
  const auto n = ir::Tensor::scalar(static_cast<float>(context.inputs.size()));
  return {zip(context, sum, n, sum.dtype(), [](auto a, auto b) { return a / b; })};
}

}  // namespace

std::vector<OpDef> binary_ops() {
  return {
      {"Add", 2, 2, infer_binary, evaluate_binary<Add>, values_binary},
      {"Sub", 2, 2, infer_binary, evaluate_binary<Sub>, values_binary},
      {"Mul", 2, 2, infer_binary, evaluate_binary<Mul>, values_binary},
      {"Div", 2, 2, infer_binary, evaluate_div, values_binary},
      {"Mod", 2, 2, infer_binary, evaluate_mod, values_binary},
      {"Pow", 2, 2, infer_pow, evaluate_binary<Pow>},
      {"Min", 1, any_number, infer_binary, evaluate_binary<Min>, values_binary},
      {"Max", 1, any_number, infer_binary, evaluate_binary<Max>, values_binary},
      {"Sum", 1, any_number, infer_binary, evaluate_binary<Add>},
      {"Mean", 1, any_number, infer_binary, evaluate_mean},
      {"Equal", 2, 2, infer_comparison, evaluate_comparison<Equal>, values_binary},
      {"Less", 2, 2, infer_comparison, evaluate_comparison<Less>, values_binary},
      {"Greater", 2, 2, infer_comparison, evaluate_comparison<Greater>, values_binary},
      {"LessOrEqual", 2, 2, infer_comparison, evaluate_comparison<LessOrEqual>, values_binary},
      {"GreaterOrEqual", 2, 2, infer_comparison, evaluate_comparison<GreaterOrEqual>,
       values_binary},
      {"And", 2, 2, infer_comparison, evaluate_comparison<And>, values_binary},
      {"Or", 2, 2, infer_comparison, evaluate_comparison<Or>, values_binary},
      {"Xor", 2, 2, infer_comparison, evaluate_comparison<Xor>},
  };
}

}  // namespace bertcl::ops
