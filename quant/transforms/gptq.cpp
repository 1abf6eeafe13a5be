// SPDX-License-Identifier: Apache-2.0
// Rounds a weight to minimize the error of its MatMul, not of the weight itself.
#include "quant/transforms/gptq.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "bertcl/error.hpp"
#include "quant/transforms/panels.hpp"
#include "support/fail.hpp"

// The rounding of a panel is compiled twice, for AVX2 too; the CPU chooses when the program starts,
// which is before a sanitizer is ready. No FMA: it would round other bits than CPUs without it.
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define BERTCL_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define BERTCL_CLONES
#endif

namespace bertcl::quant {
namespace {

using Index = std::int64_t;

constexpr Index kBlock = 64;  // rows to which all rows before them are added as one GEMM

/// Rows in the order of rounding: the largest diagonal element stands first.
std::vector<Index> descending_diagonal(std::span<const float> gram, Index k) {
  std::vector<Index> order(k);
  std::iota(order.begin(), order.end(), Index{0});
  std::ranges::stable_sort(order,
                           [&](Index a, Index b) { return gram[a * k + a] < gram[b * k + b]; });
  std::ranges::reverse(order);
  return order;
}

/// The damped Gram matrix with its rows in the reverse of this order.
Panels damped(std::span<const float> gram, const std::vector<Index>& order, double damping) {
  const auto k = static_cast<Index>(order.size());
  Panels h = Panels::upper(k);
  double trace = 0.0;
  for (Index j = 0; j < k; ++j) {
    Eight* const panel = h.panel(j / 8);
    const float* const row = gram.data() + order[k - 1 - j] * k;
    for (Index i = 0; i <= j; ++i) panel[i].at[j % 8] = row[order[k - 1 - i]];
    trace += panel[j].at[j % 8];
  }
  // A channel that is always 0 leaves its row free; any positive number will do.
  const double mean = trace / static_cast<double>(k);
  for (Index i = 0; i < k; ++i) h.panel(i / 8)[i].at[i % 8] += mean > 0.0 ? damping * mean : 1.0;
  return h;
}

/// U = L^T of H = L L^T, of the damped Gram matrix with its rows in the reverse of this order.
Panels factor(std::span<const float> gram, const std::vector<Index>& order) {
  if (!std::ranges::all_of(gram, [](float x) { return std::isfinite(x); }))
    throw Error("the Gram matrix of the inputs of a MatMul holds NaN or infinite values");
  for (const double damping : {0.01, 0.1, 1.0})
    if (Panels h = damped(gram, order, damping); factor_upper(h)) return h;
  throw Error("the Gram matrix of the inputs of a MatMul is not positive definite");
}

/// The rounding of one weight, to integers of a scale and a zero point for each column.
struct Rounding {
  std::span<const float> weight;
  std::span<const float> scales;
  std::span<const std::int32_t> zero_points;
  double lowest, highest;
  std::int32_t* integers;
};

/// What `Rounding` has for the columns of a panel; columns of padding repeat the
/// last one, so that nothing divides by 0.
struct PanelOfWeight {
  Eight scale, zero_point;
  Index first = 0, columns = 0;
};

PanelOfWeight panel_of(const Rounding& r, Index n, Index p) {
  PanelOfWeight panel;
  panel.first = 8 * p;
  panel.columns = std::min<Index>(8, n - panel.first);
  const auto per_column = [](const auto& values, Index j) {
    return static_cast<double>(values[values.size() == 1 ? 0 : static_cast<std::size_t>(j)]);
  };
  for (Index j = 0; j < 8; ++j) {
    const Index column = panel.first + std::min(j, panel.columns - 1);
    panel.scale.at[j] = per_column(r.scales, column);
    panel.zero_point.at[j] = per_column(r.zero_points, column);
  }
  return panel;
}

/// Rounds the rows `begin` to `end`, counted in the order of rounding, of one panel. `carried`:
/// what the rows before `begin` have left for each, times the diagonal; `l`: the columns `begin` to
/// `end` of L; `missed`: W - Q of the rows that are done.
BERTCL_CLONES void round_panel(const Rounding& r, const std::vector<Index>& order, Index n,
                               const PanelOfWeight& panel, const Eight* carried, const Panels& l,
                               Index begin, Index end, Eight* missed) {
  for (Index i = begin; i < end; ++i) {
    const Eight* const column = l.panel((i - begin) / 8);
    const Index lane = (i - begin) % 8;
    Eight sum = carried[i - begin];
    for (Index d = begin; d < i; ++d)
      for (Index j = 0; j < 8; ++j) sum.at[j] += column[d].at[lane] * missed[d].at[j];
    const Index at = order[i] * n + panel.first;
    Eight w, q;
    for (Index j = 0; j < panel.columns; ++j) w.at[j] = r.weight[at + j];
    for (Index j = 0; j < 8; ++j) {
      const double wanted = w.at[j] + sum.at[j] / column[i].at[lane];
      q.at[j] = std::clamp(std::nearbyint(wanted / panel.scale.at[j]) + panel.zero_point.at[j],
                           r.lowest, r.highest);
      missed[i].at[j] = w.at[j] - (q.at[j] - panel.zero_point.at[j]) * panel.scale.at[j];
    }
    for (Index j = 0; j < panel.columns; ++j)
      r.integers[at + j] = static_cast<std::int32_t>(q.at[j]);
  }
}

/// The columns `begin` to `end` of L, rows and columns counted in the order of rounding.
Panels columns_of_l(const Panels& u, Index begin, Index end) {
  const Index last = u.rows() - 1;
  Panels l(end, end - begin);
  for (Index p = 0; p < l.count(); ++p) {
    const Index first = begin + 8 * p;
    for (Index d = 0; d < std::min(first + 8, end); ++d)
      for (Index i = std::max(first, d); i < std::min(first + 8, end); ++i)
        l.panel(p)[d].at[i - first] = u.at(last - i, last - d);
  }
  return l;
}

}  // namespace

struct GramFactor::Data {
  std::vector<Index> order;
  Panels u;
};

GramFactor::GramFactor(std::span<const float> gram) {
  const auto k = static_cast<Index>(std::lround(std::sqrt(static_cast<double>(gram.size()))));
  if (static_cast<std::size_t>(k * k) != gram.size())
    fail("a Gram matrix of {} elements is not square", gram.size());
  std::vector<Index> order = descending_diagonal(gram, k);
  Panels u = factor(gram, order);
  data_ = std::make_unique<const Data>(Data{std::move(order), std::move(u)});
}
GramFactor::GramFactor(GramFactor&&) noexcept = default;
GramFactor::~GramFactor() = default;

std::vector<std::int32_t> gptq_round(std::span<const float> weight, const GramFactor& gram,
                                     std::span<const float> scales,
                                     std::span<const std::int32_t> zero_points, std::int32_t lowest,
                                     std::int32_t highest) {
  const auto& [order, u] = *gram.data_;
  const Index k = u.rows();
  if (k == 0 || weight.size() % static_cast<std::size_t>(k) != 0)
    fail("a weight of {} elements does not match a Gram matrix of {} rows", weight.size(), k);
  const auto n = static_cast<Index>(weight.size()) / k;

  std::vector<std::int32_t> integers(weight.size());
  const Rounding rounding{weight,
                          scales,
                          zero_points,
                          static_cast<double>(lowest),
                          static_cast<double>(highest),
                          integers.data()};
  Panels missed(k, n);
  for (Index begin = 0; begin < k; begin += kBlock) {
    const Index end = std::min(begin + kBlock, k);
    const Panels l = columns_of_l(u, begin, end);
    Panels carried((end - begin + 7) / 8 * 8, n);
    add_transposed_product(carried, l, missed, begin);
    for (Index p = 0; p < missed.count(); ++p)
      round_panel(rounding, order, n, panel_of(rounding, n, p), carried.panel(p), l, begin, end,
                  missed.panel(p));
  }
  return integers;
}

}  // namespace bertcl::quant
