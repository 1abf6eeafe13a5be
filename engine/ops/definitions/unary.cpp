// SPDX-License-Identifier: Apache-2.0
// Elementwise operators of one operand: activations, rounding, tests, Cast, Identity.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "ops/support.hpp"

namespace bertcl::ops {
namespace {

/// y[i] = F()(x[i]) in the computing type of x.
template <class F>
std::vector<ir::Tensor> map_elements(const EvaluateContext& context, const F& f,
                                     std::optional<ir::DType> result = std::nullopt) {
  const ir::Tensor& x = context.in(0);
  return with_compute_type(x.dtype(), [&]<class T>(T) {
    const Elements<T> in(x);
    std::vector<T> out(x.size());
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = static_cast<T>(f(in[static_cast<std::int64_t>(i)]));
    return std::vector{make_tensor<T>(x.shape(), std::move(out), result.value_or(x.dtype()))};
  });
}

/// `f` takes every computing type, whatever types the operator has: magnitude() for std::abs, which
/// is ambiguous for some. Mathematics on integers goes through double.
template <class F>
Evaluate each(F) {
  return [](const EvaluateContext& context) { return map_elements(context, F{}); };
}

/// Is `f` true of each element?
template <class F>
OpDef test(const char* name, std::optional<std::int32_t> code, TypeSet types, F) {
  const auto infer = [](InferContext& context) {
    return std::vector<ir::Type>{{ir::DType::boolean, context.shape(0)}};
  };
  const auto evaluate = [](const EvaluateContext& context) {
    return map_elements(context, F{}, ir::DType::boolean);
  };
  return op(name, 1, 1, {{types}}, infer, evaluate, nullptr,
            {.by_element = true, .unary_code = code});
}

/// Gelu: x * Phi(x), or with approximate = "tanh" the fit of Hendrycks and Gimpel (2016).
std::vector<ir::Tensor> evaluate_gelu(const EvaluateContext& context) {
  const bool tanh =
      context.node.has("approximate") && context.node.string_attribute("approximate") == "tanh";
  if (tanh)
    return map_elements(context, [](auto x) {
      using T = decltype(x);
      const T root_2_over_pi = static_cast<T>(std::sqrt(2.0 * std::numbers::inv_pi));
      const T inner = root_2_over_pi * (x + static_cast<T>(0.044715) * x * x * x);
      return static_cast<T>(0.5) * x * (T(1) + static_cast<T>(std::tanh(inner)));
    });
  return map_elements(context, [](auto x) {
    using T = decltype(x);
    return static_cast<T>(0.5) * x *
           (T(1) + static_cast<T>(std::erf(x * static_cast<T>(1.0 / std::numbers::sqrt2))));
  });
}

std::vector<ir::Tensor> evaluate_leaky_relu(const EvaluateContext& context) {
  const double alpha = context.node.float_attribute("alpha", 0.01);
  return map_elements(context, [&](auto x) {
    using T = decltype(x);
    return x < T{} ? static_cast<T>(alpha) * x : x;
  });
}

std::vector<ir::Tensor> evaluate_identity(const EvaluateContext& context) {
  return {context.in(0)};
}

ir::DType cast_target(const ir::Node& node) {
  return *ir::dtype_from_name(node.string_attribute("to"));
}
std::vector<ir::Type> infer_cast(InferContext& context) {
  if (!context.node.has("to") || !ir::dtype_from_name(context.node.string_attribute("to")))
    context.fail("attribute 'to' must name an element type (f32, i64, ...)");
  return {{cast_target(context.node), context.shape(0)}};
}
/// Float to integer truncates; what an integer type cannot hold is clamped to its range.
std::vector<ir::Tensor> evaluate_cast(const EvaluateContext& context) {
  const ir::Tensor& x = context.in(0);
  const ir::DType to = cast_target(context.node);
  if (!ir::is_float(x.dtype()) || ir::is_float(to) || to == ir::DType::boolean)
    return {x.converted(to)};
  std::vector<double> values = x.to_doubles();
  if (to == ir::DType::u64) {  // whose upper half no int64 has
    std::vector<std::uint64_t> numbers;
    for (const double v : values)
      numbers.push_back(!(v > 0) ? 0
                                 : static_cast<std::uint64_t>(std::min(v, 0x1.fffffffffffffp63)));
    return {ir::Tensor::of<std::uint64_t>(x.shape(), std::move(numbers))};
  }
  for (double& v : values)  // no double above this is below 2^63
    v = std::isnan(v) ? 0.0 : std::clamp(v, -0x1p63, 0x1.fffffffffffffp62);
  return {
      ir::Tensor::of<double>(x.shape(), std::move(values)).converted(ir::DType::i64).converted(to)};
}
std::vector<SymbolicElements> values_cast(InferContext& context) {
  const auto* in = context.elements(0);
  if (!in || cast_target(context.node) == ir::DType::boolean) return {};
  return {*in};
}

/// `code`: of elementwise_unary.cl, none if there is no kernel.
OpDef unary(const char* name, std::optional<std::int32_t> code, TypeSet types, Evaluate evaluate,
            std::vector<std::string> onnx_attributes = {}) {
  return op(name, 1, 1, {{types}}, infer_same, evaluate, nullptr,
            {.row_wise = true,
             .by_element = true,
             .unary_code = code,
             .onnx_attributes = onnx_attributes});
}

}  // namespace

std::vector<OpDef> unary_ops() {
  return {
      unary("Neg", 0, types::signed_numbers, each([]<class T>(T x) { return minus(T{}, x); })),
      unary("Abs", 1, types::numbers, each([](auto x) { return magnitude(x); })),
      unary("Sign", 15, types::numbers, each([]<class T>(T x) {
              return is_nan(x) ? x : static_cast<T>((x > T{}) - (x < T{}));
            })),
      unary("Floor", 12, types::floats, each([](auto x) { return std::floor(x); })),
      unary("Ceil", 13, types::floats, each([](auto x) { return std::ceil(x); })),
      unary("Round", 14, types::floats,
            each([](auto x) { return std::nearbyint(x); })),  // half to even, as ONNX asks
      unary("Sqrt", 2, types::floats, each([](auto x) { return std::sqrt(x); })),
      unary("Exp", 3, types::floats, each([](auto x) { return std::exp(x); })),
      unary("Log", 4, types::floats, each([](auto x) { return std::log(x); })),
      unary("Erf", 5, types::floats, each([](auto x) { return std::erf(x); })),
      unary("Tanh", 6, types::floats, each([](auto x) { return std::tanh(x); })),
      unary("Sin", 16, types::floats, each([](auto x) { return std::sin(x); })),
      unary("Cos", 17, types::floats, each([](auto x) { return std::cos(x); })),
      unary("Softplus", std::nullopt, types::floats,
            each([](auto x) { return std::log1p(std::exp(x)); })),
      unary("Relu", 8, types::signed_numbers, each([]<class T>(T x) { return std::max(x, T{}); })),
      unary("Reciprocal", 11, types::floats, each([]<class T>(T x) { return T(1) / x; })),
      unary("Sigmoid", 7, types::floats,
            each([]<class T>(T x) { return T(1) / (T(1) + static_cast<T>(std::exp(-x))); })),
      unary("LeakyRelu", std::nullopt, types::floats, evaluate_leaky_relu, {"alpha"}),
      unary("Gelu", 9, types::floats, evaluate_gelu, {"approximate"}),
      test("Not", 18, types::truth, []<class T>(T x) { return x == T{}; }),
      test("IsNaN", 19, types::floats, [](auto x) { return std::isnan(static_cast<double>(x)); }),
      test("IsInf", std::nullopt, types::floats,
           [](auto x) { return std::isinf(static_cast<double>(x)); }),
      op("Identity", 1, 1, {{types::all}}, infer_same, evaluate_identity, move_first,
         {.by_element = true}),
      op("Cast", 1, 1, {{types::all}}, infer_cast, evaluate_cast, values_cast,
         {.by_element = true}),
  };
}

}  // namespace bertcl::ops
