// SPDX-License-Identifier: Apache-2.0
// Rounds a weight to minimize the error of its MatMul, not of the weight itself.
#include "quant/transforms/gptq.hpp"

#include <fmt/format.h>

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "bertcl/error.hpp"

namespace bertcl::quant {
namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Eigen::Index;

constexpr Index kBlock = 64;  // rows whose influence on those before is added as one GEMM

/// Rows in the order of rounding, last first: the largest diagonal element stands last.
std::vector<Index> ascending_diagonal(std::span<const float> gram, Index k) {
  std::vector<Index> order(static_cast<std::size_t>(k));
  std::iota(order.begin(), order.end(), Index{0});
  std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) {
    return gram[static_cast<std::size_t>(a * k + a)] < gram[static_cast<std::size_t>(b * k + b)];
  });
  return order;
}

/// L of H = L L^T, of the damped Gram matrix with its rows in this order.
Matrix factor(std::span<const float> gram, const std::vector<Index>& order, double damping) {
  const auto k = static_cast<Index>(order.size());
  Matrix h(k, k);
  for (Index i = 0; i < k; ++i)
    for (Index j = 0; j < k; ++j)
      h(i, j) = gram[static_cast<std::size_t>(order[static_cast<std::size_t>(i)] * k +
                                              order[static_cast<std::size_t>(j)])];
  // A channel that is always 0 leaves its row free; any positive number will do.
  const double mean = h.trace() / static_cast<double>(k);
  h.diagonal().array() += mean > 0.0 ? damping * mean : 1.0;
  const bool finite = h.allFinite();
  const Eigen::LLT<Eigen::Ref<Matrix>> cholesky(h);  // in place
  if (!finite || cholesky.info() != Eigen::Success)
    throw Error(
        "the inputs of a MatMul have no positive definite Gram matrix: calibration met "
        "NaN or infinite values");
  return cholesky.matrixL();
}

}  // namespace

struct GramFactor::Data {
  std::vector<Index> order;
  Matrix l;
};

GramFactor::GramFactor(std::span<const float> gram, double damping) {
  const auto k = static_cast<Index>(std::lround(std::sqrt(static_cast<double>(gram.size()))));
  if (static_cast<std::size_t>(k * k) != gram.size())
    throw Error(fmt::format("a Gram matrix of {} elements is not square", gram.size()));
  std::vector<Index> order = ascending_diagonal(gram, k);
  Matrix l = factor(gram, order, damping);
  data_ = std::make_unique<const Data>(Data{std::move(order), std::move(l)});
}
GramFactor::GramFactor(GramFactor&&) noexcept = default;
GramFactor::~GramFactor() = default;

std::vector<std::int32_t> gptq_round(std::span<const float> weight, const GramFactor& gram,
                                     std::span<const float> scales,
                                     std::span<const std::int32_t> zero_points, std::int32_t lowest,
                                     std::int32_t highest) {
  const auto& [order, l] = *gram.data_;
  const Index k = l.rows();
  if (k == 0 || weight.size() % static_cast<std::size_t>(k) != 0)
    throw Error(fmt::format("a weight of {} elements does not match a Gram matrix of {} rows",
                            weight.size(), k));
  const auto n = static_cast<Index>(weight.size()) / k;
  const auto per_column = [&](const auto& values, Index j) {
    return values[values.size() == 1 ? 0 : static_cast<std::size_t>(j)];
  };

  std::vector<std::int32_t> integers(weight.size());
  Matrix missed = Matrix::Zero(k, n);  // W - Q of the rows that are done, in order
  for (Index end = k; end > 0;) {
    const Index begin = std::max<Index>(0, end - kBlock);
    // What the rows after this block have left for each of its rows.
    Matrix carried = Matrix::Zero(end - begin, n);
    if (end < k)
      carried.noalias() =
          l.block(end, begin, k - end, end - begin).transpose() * missed.bottomRows(k - end);
    for (Index i = end; i-- > begin;) {
      for (Index d = i + 1; d < end; ++d) carried.row(i - begin) += l(d, i) * missed.row(d);
      const Index row = order[static_cast<std::size_t>(i)];
      for (Index j = 0; j < n; ++j) {
        const auto at = static_cast<std::size_t>(row * n + j);
        const double scale = per_column(scales, j), zero_point = per_column(zero_points, j);
        const double wanted = weight[at] + carried(i - begin, j) / l(i, i);
        const double q = std::clamp(std::nearbyint(wanted / scale) + zero_point,
                                    static_cast<double>(lowest), static_cast<double>(highest));
        integers[at] = static_cast<std::int32_t>(q);
        missed(i, j) = weight[at] - (q - zero_point) * scale;
      }
    }
    end = begin;
  }
  return integers;
}

}  // namespace bertcl::quant
