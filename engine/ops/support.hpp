// SPDX-License-Identifier: Apache-2.0
// Helpers shared by the operators: broadcasting, iterating over tensors, symbolic movement.
#pragma once
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <type_traits>
#include <vector>

#include "ops/op.hpp"

namespace bertcl::ops {

/// The broadcast of two shapes by the rule of NumPy. An extent of 1 gives way. Different symbols,
/// or a symbol and a number, are taken to be equal, which the graph notes for the run to check
/// (Graph::assumptions). Throws naming the node where two extents cannot be equal: two numbers, or
/// two symbols that stand in one shape of an input.
ir::Shape broadcast(const InferContext& context, const ir::Shape& a, const ir::Shape& b);
ir::Sizes broadcast(const EvaluateContext& context, const ir::Sizes& a, const ir::Sizes& b);
/// True for a size that inference had to name because no shape tells it.
bool is_unknown(const ir::Graph& graph, const ir::Dim& d);
/// One extent of two tensors that must be equal; `what` names it for the message.
ir::Dim same_extent(const InferContext& context, const ir::Dim& a, const ir::Dim& b,
                    std::string_view what);

/// Stride in elements along each dimension of a dense tensor.
ir::Sizes dense_strides(const ir::Sizes& sizes);
/// Strides for reading a tensor of extents `from` while iterating over extents `to`: 0 where it is
/// repeated.
ir::Sizes broadcast_strides(const ir::Sizes& from, const ir::Sizes& to);

/// Calls f(offsets) for every index of `sizes` in row-major order; offsets[n] is the sum of index
/// times strides[n].
template <std::size_t N, class F>
void walk(const ir::Sizes& sizes, const std::array<ir::Sizes, N>& strides, F&& f) {
  if (ir::element_count(sizes) == 0) return;
  ir::Sizes index(sizes.size(), 0);
  std::array<std::int64_t, N> offset{};
  while (true) {
    f(offset);
    std::size_t d = sizes.size();
    while (d > 0) {
      --d;
      for (std::size_t n = 0; n < N; ++n) offset[n] += strides[n][d];
      if (++index[d] < sizes[d]) break;
      for (std::size_t n = 0; n < N; ++n) offset[n] -= strides[n][d] * sizes[d];
      index[d] = 0;
      if (d == 0) return;
    }
    if (sizes.empty()) return;
  }
}

/// A dense copy of a strided view: element i of the result is in[base + sum(index * strides)].
ir::Tensor gather_strided(const ir::Tensor& in, const ir::Sizes& sizes, const ir::Sizes& strides,
                          std::int64_t base = 0);

/// Calls f with a value of the type that computes elements of `dtype`: float for f32, f16 and bf16,
/// double for f64, uint64 for u64, int64 for other integers and booleans.
template <class F>
auto with_compute_type(ir::DType dtype, F&& f) {
  if (dtype == ir::DType::f64) return f(double{});
  if (ir::is_float(dtype)) return f(float{});
  if (dtype == ir::DType::u64) return f(std::uint64_t{});
  return f(std::int64_t{});
}

/// Integer arithmetic wraps around. It is done unsigned, since signed overflow is undefined.
constexpr std::uint64_t modular(std::int64_t v) { return static_cast<std::uint64_t>(v); }
constexpr std::uint64_t modular(std::uint64_t v) { return v; }
constexpr float modular(float v) { return v; }
constexpr double modular(double v) { return v; }
template <class T>
constexpr T plus(T x, T y) {
  return static_cast<T>(modular(x) + modular(y));
}
template <class T>
constexpr T minus(T x, T y) {
  return static_cast<T>(modular(x) - modular(y));
}
template <class T>
constexpr T times(T x, T y) {
  return static_cast<T>(modular(x) * modular(y));
}
template <class T>
constexpr T magnitude(T x) {
  if constexpr (std::is_integral_v<T>)
    return x < T{} ? minus(T{}, x) : x;
  else
    return std::abs(x);
}

template <class T>
constexpr bool is_nan(T x) {
  if constexpr (std::is_floating_point_v<T>)
    return x != x;
  else
    return false;
}
/// The smaller and the larger of two; NaN if one is NaN.
template <class T>
constexpr T smaller(T x, T y) {
  return y < x || is_nan(y) ? y : x;
}
template <class T>
constexpr T larger(T x, T y) {
  return x < y || is_nan(y) ? y : x;
}

/// Numbers of a tensor converted to T, with their bytes kept alive.
template <class T>
class Elements {
 public:
  explicit Elements(const ir::Tensor& t) : tensor_(t.converted(ir::dtype_of<T>())) {}
  const T& operator[](std::int64_t i) const { return tensor_.as<T>()[i]; }
  const T* data() const { return tensor_.as<T>().data(); }

 private:
  ir::Tensor tensor_;
};

/// A tensor of `numbers` of the compute type, converted to `dtype`.
template <class T>
ir::Tensor make_tensor(ir::Sizes sizes, std::vector<T> numbers, ir::DType dtype) {
  return ir::Tensor::of<T>(std::move(sizes), std::move(numbers)).converted(dtype);
}

/// Values of operators that only move elements: the operator runs on element numbers. Operands
/// whose bit in `data_mask` is 0 (indices, axes) must be numbers.
std::vector<SymbolicElements> move_elements(InferContext& context, unsigned data_mask);
inline std::vector<SymbolicElements> move_first(InferContext& c) { return move_elements(c, 1u); }
inline std::vector<SymbolicElements> move_all(InferContext& c) { return move_elements(c, ~0u); }

/// The fewest elements of an axis of which Slice gives `count`: up to the last one that it reads,
/// or, where `first` is negative, from the first one to the end. Empty where `count` is not
/// constant and the slice does not start at 0 with step 1, which has no kernel.
std::optional<ir::Dim> slice_reach(std::int64_t first, std::int64_t step, const ir::Dim& count);

/// Every axis of operand 0, for Traits::mixed_axes.
std::vector<std::int64_t> all_axes(const ir::Node& node);

/// The type of operand 0 for every result.
std::vector<ir::Type> infer_same(InferContext& context);

}  // namespace bertcl::ops
