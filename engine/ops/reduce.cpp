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
  const auto n = static_cast<std::int64_t>(rank);
  for (std::int64_t a : context.node.ints_attribute("axes")) {
    if (a < -n || a >= n) context.fail("axis {} is out of range for rank {}", a, rank);
    flags[a < 0 ? a + n : a] = true;
  }
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

/// Folds F over the reduced elements, then finishes with their number. Sums of floats are kept in
/// double.
template <class F>
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
    std::vector<Sum> sums(ir::element_count(kept), F::template start<Sum>);
    walk<2>(x.shape(), {dense_strides(x.shape()), broadcast_strides(kept, x.shape())},
            [&](const auto& at) {
              Sum& sum = sums[at[1]];
              sum = F::fold(sum, static_cast<Sum>(in[at[0]]));
            });
    std::vector<T> out;
    for (const Sum s : sums) out.push_back(static_cast<T>(F::finish(s, static_cast<Sum>(count))));
    return std::vector{make_tensor<T>(sizes, std::move(out), x.dtype())};
  });
}

struct Fold {
  template <class S>
  static constexpr S start = S{};
  template <class S>
  static S finish(S s, S) {
    return s;
  }
};
struct Sum : Fold {
  template <class S>
  static S fold(S s, S v) {
    return plus(s, v);
  }
};
struct Mean : Sum {
  template <class S>
  static S finish(S s, S n) {
    if constexpr (std::is_integral_v<S>)
      return n == 0 ? 0 : s / n;
    else
      return s / n;
  }
};
struct SumSquare : Fold {
  template <class S>
  static S fold(S s, S v) {
    return plus(s, times(v, v));
  }
};
struct L2 : SumSquare {
  template <class S>
  static S finish(S s, S) {
    return static_cast<S>(std::sqrt(std::max(s, S{})));  // a sum that has wrapped has no root
  }
};
struct L1 : Fold {
  template <class S>
  static S fold(S s, S v) {
    return plus(s, magnitude(v));
  }
};
struct Prod : Fold {
  template <class S>
  static constexpr S start = S{1};
  template <class S>
  static S fold(S s, S v) {
    return times(s, v);
  }
};
struct Max : Fold {
  template <class S>
  static constexpr S start = std::numeric_limits<S>::has_infinity
                                 ? -std::numeric_limits<S>::infinity()
                                 : std::numeric_limits<S>::lowest();
  template <class S>
  static S fold(S s, S v) {
    return std::max(s, v);
  }
};
struct Min : Fold {
  template <class S>
  static constexpr S start = std::numeric_limits<S>::has_infinity
                                 ? std::numeric_limits<S>::infinity()
                                 : std::numeric_limits<S>::max();
  template <class S>
  static S fold(S s, S v) {
    return std::min(s, v);
  }
};

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

OpDef reduction(const char* name, std::vector<ir::Tensor> (*evaluate)(const EvaluateContext&),
                std::vector<SymbolicElements> (*values)(InferContext&) = nullptr,
                TypeSet types = types::sums) {
  return op(name, 1, 1, {{types}}, infer_reduce, evaluate, values, {.mixed_axes = reduced_axes});
}

}  // namespace

std::vector<OpDef> reduce_ops() {
  constexpr TypeSet ordered = types::sums | types::bytes | types::truth;
  return {
      reduction("ReduceSum", evaluate_reduce<Sum>, values_sum),
      reduction("ReduceMean", evaluate_reduce<Mean>),
      reduction("ReduceSumSquare", evaluate_reduce<SumSquare>),
      reduction("ReduceL1", evaluate_reduce<L1>),
      reduction("ReduceL2", evaluate_reduce<L2>),
      reduction("ReduceProd", evaluate_reduce<Prod>, values_prod),
      reduction("ReduceMax", evaluate_reduce<Max>, values_max, ordered),
      reduction("ReduceMin", evaluate_reduce<Min>, values_min, ordered),
  };
}

}  // namespace bertcl::ops
