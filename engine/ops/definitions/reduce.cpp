// SPDX-License-Identifier: Apache-2.0
// Reductions {axes, keepdims}; without axes, over all of them.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/support.hpp"

namespace bertcl::ops {
namespace {

/// True for each dimension that is reduced.
template <class Context>
std::vector<bool> reduced(const Context& context, std::size_t rank) {
  if (!context.node.has("axes")) return std::vector<bool>(rank, true);
  std::vector<bool> flags(rank, false);
  for (const std::int64_t a : context.node.ints_attribute("axes"))
    flags[context.axis(a, rank)] = true;
  return flags;
}

std::vector<std::int64_t> reduced_axes(const ir::Node& node) {
  return node.has("axes") ? node.ints_attribute("axes") : all_axes(node);
}

std::vector<ir::Type> infer_reduce(InferContext& context) {
  const ir::Type& in = context.type(0);
  const auto flags = reduced(context, in.shape.size());
  const bool keep = context.node.int_attribute("keepdims", 1) != 0;
  ir::Type out{in.dtype, {}};
  for (std::size_t d = 0; d < flags.size(); ++d)
    if (!flags[d] || keep) out.shape.push_back(flags[d] ? ir::Dim(1) : in.shape[d]);
  return {out};
}

/// Folds the reduced elements, from a value that Start gives for a type; Finish gets the result and
/// their number. Sums of floats are kept in double.
template <class Fold, class Finish, class Start>
std::vector<ir::Tensor> evaluate_reduce(const EvaluateContext& context) {
  const ir::Tensor& x = context.in(0);
  const auto flags = reduced(context, x.shape().size());
  const bool keep = context.node.int_attribute("keepdims", 1) != 0;
  ir::Sizes kept = x.shape(), folded, sizes;
  for (std::size_t d = 0; d < flags.size(); ++d) {
    if (flags[d]) {
      folded.push_back(kept[d]);
      kept[d] = 1;
    }
    if (!flags[d] || keep) sizes.push_back(kept[d]);
  }
  const std::int64_t count = ir::element_count(folded);
  return with_compute_type(x.dtype(), [&]<class T>(T) {
    using Sum = std::conditional_t<std::is_integral_v<T>, T, double>;
    const Elements<T> in(x);
    std::vector<Sum> sums(ir::element_count(kept), Start{}(Sum{}));
    walk<2>(x.shape(), {dense_strides(x.shape()), broadcast_strides(kept, x.shape())},
            [&](const auto& at) {
              Sum& sum = sums[at[1]];
              sum = Fold{}(sum, static_cast<Sum>(in[at[0]]));
            });
    std::vector<T> out;
    for (const Sum s : sums) out.push_back(static_cast<T>(Finish{}(s, static_cast<Sum>(count))));
    return std::vector{make_tensor<T>(sizes, std::move(out), x.dtype())};
  });
}

std::vector<SymbolicElements> fold_elements(InferContext& context, const std::string& op) {
  const auto* in = context.elements(0);
  if (!in || in->empty() || context.shape(0).size() != 1) return {};
  ir::Dim result = in->front();
  for (std::size_t i = 1; i < in->size(); ++i) {
    const auto folded = context.values.apply(context.graph, op, result, (*in)[i]);
    if (!folded) return {};
    result = *folded;
  }
  return {std::vector<ir::Dim>{result}};
}
std::vector<SymbolicElements> values_prod(InferContext& c) { return fold_elements(c, "Mul"); }
std::vector<SymbolicElements> values_sum(InferContext& c) { return fold_elements(c, "Add"); }
std::vector<SymbolicElements> values_max(InferContext& c) { return fold_elements(c, "Max"); }
std::vector<SymbolicElements> values_min(InferContext& c) { return fold_elements(c, "Min"); }

template <class Fold, class Finish, class Start>
OpDef reduction(const char* name, Fold, Finish, Start, Values values = nullptr,
                TypeSet types = types::sums) {
  return op(name, 1, 1, {{types}}, infer_reduce, evaluate_reduce<Fold, Finish, Start>, values,
            {.mixed_axes = reduced_axes});
}

}  // namespace

std::vector<OpDef> reduce_ops() {
  constexpr TypeSet ordered = types::sums | types::bytes | types::truth;
  const auto zero = []<class S>(S) { return S{}; };
  const auto one = []<class S>(S) { return S{1}; };
  const auto lowest = []<class S>(S) {
    using Limits = std::numeric_limits<S>;
    return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  };
  const auto highest = []<class S>(S) {
    using Limits = std::numeric_limits<S>;
    return Limits::has_infinity ? Limits::infinity() : Limits::max();
  };
  const auto add = [](auto s, auto v) { return plus(s, v); };
  const auto add_square = [](auto s, auto v) { return plus(s, times(v, v)); };
  const auto add_magnitude = [](auto s, auto v) { return plus(s, magnitude(v)); };
  const auto multiply = [](auto s, auto v) { return times(s, v); };
  const auto max = [](auto s, auto v) { return larger(s, v); };
  const auto min = [](auto s, auto v) { return smaller(s, v); };
  const auto as_is = [](auto s, auto) { return s; };
  const auto divide = []<class S>(S s, S n) {
    return std::is_integral_v<S> && n == 0 ? S{} : s / n;
  };
  // A sum of squares that has wrapped has no root.
  const auto root = []<class S>(S s, S) { return static_cast<S>(std::sqrt(std::max(s, S{}))); };
  return {
      reduction("ReduceSum", add, as_is, zero, values_sum),
      reduction("ReduceMean", add, divide, zero),
      reduction("ReduceSumSquare", add_square, as_is, zero),
      reduction("ReduceL1", add_magnitude, as_is, zero),
      reduction("ReduceL2", add_square, root, zero),
      reduction("ReduceProd", multiply, as_is, one, values_prod),
      reduction("ReduceMax", max, as_is, lowest, values_max, ordered),
      reduction("ReduceMin", min, as_is, highest, values_min, ordered),
  };
}

}  // namespace bertcl::ops
