// SPDX-License-Identifier: Apache-2.0
// Statistics of channels and GPTQ against plain C++.
#include <Eigen/LU>
#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "kernels/bind.hpp"
#include "kernels/contracts/observe.hpp"
#include "quant/calibration/channel_statistics.hpp"
#include "quant/transforms/gptq.hpp"
#include "support/ceil_div.hpp"
#include "tests/kernels_cl/device_test.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::quant::tests {
namespace {

using bertcl::tests::device, bertcl::tests::normal_values, bertcl::tests::upload;
using Matrix = Eigen::MatrixXd;

/// Rows of x in batches of these sizes.
constexpr std::int64_t kBatches[] = {1, 7, 16, 3};

TEST(ChannelObserver, EqualsPlainStatistics) {
  for (const std::int64_t channels : {1, 7, 15, 16, 17, 100}) {
    ChannelObserver observer(device(), "t");
    std::vector<double> squares(channels, 0.0);
    std::vector<float> low(channels, INFINITY), high(channels, -INFINITY);
    std::int64_t rows = 0;
    for (const auto batch : kBatches) {
      const auto x = normal_values(batch * channels, 5 + static_cast<unsigned>(rows));
      observer.observe(upload(x), batch, channels);
      for (std::size_t i = 0; i < x.size(); ++i) {
        const std::size_t c = i % channels;
        low[c] = std::min(low[c], x[i]);
        high[c] = std::max(high[c], x[i]);
        squares[c] += x[i] * x[i];
      }
      rows += batch;
    }
    const ChannelStatistics s = observer.statistics();
    EXPECT_EQ(s.rows, rows);
    EXPECT_EQ(s.low, low) << channels;
    EXPECT_EQ(s.high, high) << channels;
    for (std::int64_t c = 0; c < channels; ++c)
      EXPECT_NEAR(s.mean_square[c] * static_cast<float>(rows) / squares[c], 1.0, 1e-5) << channels;
  }
}

TEST(ChannelObserver, RefusesNanAndNothing) {
  ChannelObserver observer(device(), "/layer/x");
  EXPECT_ERROR(HasSubstr("'/layer/x' has no range"), observer.statistics());
  std::vector<float> x(40, 1.0f);
  x[27] = NAN;
  observer.observe(upload(x), 2, 20);
  EXPECT_ERROR(HasSubstr("NaN"), observer.statistics());
  EXPECT_ERROR(HasSubstr("had 20 channels and now has 10"), observer.observe(upload(x), 4, 10));
}

TEST(GramObserver, EqualsPlainProduct) {
  for (const std::int64_t channels : {1, 5, 8, 15, 16, 17, 33, 72, 191, 193}) {
    GramObserver observer(device(), "t");
    Matrix expected = Matrix::Zero(channels, channels);
    for (const std::int64_t batch : {1, 7, 515, 3}) {  // more rows than are kept together, too
      const auto x = normal_values(batch * channels, 3 + static_cast<unsigned>(batch));
      observer.observe(upload(x), batch, channels);
      const auto m = Eigen::Map<const Eigen::MatrixXf>(x.data(), channels, batch).cast<double>();
      expected += m * m.transpose();
    }
    const auto gram = observer.gram();
    for (std::int64_t i = 0; i < channels; ++i)
      for (std::int64_t j = 0; j < channels; ++j)
        ASSERT_NEAR(gram[i * channels + j], expected(i, j), 2e-3)
            << channels << ": " << i << ", " << j;
  }
}

// Tiles of both widths of vectors, whatever the CPU has; below the diagonal may stand anything.
TEST(GramPortable, EqualsPlainProductInBothWidths) {
  for (const int lanes : {8, 16})
    for (const std::int64_t channels : {1, 6, 13, 31, 32, 33, 203, 392}) {
      const std::int64_t rows = 37;
      const auto x = normal_values(rows * channels, 4);
      const std::int64_t guard = 64;  // floats after the matrix
      std::vector<float> sums(channels * channels + guard, 1.0f);
      std::fill(sums.end() - guard, sums.end(), NAN);
      const auto values = upload(x), gram = upload(sums);
      auto kernel = device().kernel("observe_gram_portable", "observe_gram", {{"LANES", lanes}});
      kernels::set(kernel, kernels::ObserveGram<opencl::KernelArgument>{
                               .x = values,
                               .gram = gram,
                               .rows = static_cast<std::int32_t>(rows),
                               .channels = static_cast<std::int32_t>(channels)});
      device().queue().launch_items(
          kernel,
          {static_cast<std::size_t>(ceil_div(channels, kPortableGramTile.columns)),
           static_cast<std::size_t>(ceil_div(channels, kPortableGramTile.rows)), 1},
          "observe_gram");
      gram.read(std::as_writable_bytes(std::span(sums)));
      const auto m = Eigen::Map<const Eigen::MatrixXf>(x.data(), channels, rows).cast<double>();
      const Matrix expected = m * m.transpose();
      for (std::int64_t i = 0; i < channels; ++i)
        for (std::int64_t j = i; j < channels; ++j)
          ASSERT_NEAR(sums[i * channels + j], expected(i, j) + 1.0, 1e-3)
              << lanes << " lanes, " << channels << " channels: " << i << ", " << j;
      for (std::int64_t g = 0; g < guard; ++g) ASSERT_TRUE(std::isnan(*(sums.end() - 1 - g)));
    }
}

/// Correlated inputs, as activations are.
Matrix gram_of(std::int64_t channels, std::int64_t rows, int seed) {
  const auto noise = normal_values(channels * rows, seed);
  const auto common = normal_values(rows, seed + 1);
  Matrix x(rows, channels);
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < channels; ++c)
      x(r, c) = noise[r * channels + c] * (1.0 + static_cast<double>(c % 5)) + 4.0 * common[r];
  return x.transpose() * x;
}

std::vector<float> row_major(const Matrix& m) {
  std::vector<float> values;
  for (Eigen::Index i = 0; i < m.rows(); ++i)
    for (Eigen::Index j = 0; j < m.cols(); ++j) values.push_back(static_cast<float>(m(i, j)));
  return values;
}

/// GPTQ as the paper writes it, with the inverse of H recomputed at each step.
std::vector<std::int32_t> slow_gptq(const std::vector<float>& weight, Matrix h, std::int64_t n,
                                    const std::vector<float>& scales) {
  const std::int64_t k = h.rows();
  h.diagonal().array() += 0.01 * h.trace() / static_cast<double>(k);
  std::vector<std::int64_t> order(k);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return h(a, a) < h(b, b); });
  std::vector<double> w(weight.begin(), weight.end());
  std::vector<std::int32_t> q(weight.size());
  while (!order.empty()) {
    const auto count = static_cast<Eigen::Index>(order.size());
    Matrix left(count, count);
    for (Eigen::Index a = 0; a < count; ++a)
      for (Eigen::Index b = 0; b < count; ++b) left(a, b) = h(order[a], order[b]);
    const Matrix inverse = left.inverse();
    const auto row = order.back();
    for (std::int64_t j = 0; j < n; ++j) {
      const double rounded = std::clamp(std::nearbyint(w[row * n + j] / scales[j]), -127.0, 127.0);
      q[row * n + j] = static_cast<std::int32_t>(rounded);
      const double error = (w[row * n + j] - rounded * scales[j]) / inverse(count - 1, count - 1);
      for (Eigen::Index a = 0; a + 1 < count; ++a)
        w[order[a] * n + j] -= error * inverse(a, count - 1);
    }
    order.pop_back();
  }
  return q;
}

std::vector<float> column_scales(const std::vector<float>& w, std::int64_t n) {
  std::vector<float> scales(n, 1e-6f);
  for (std::size_t i = 0; i < w.size(); ++i)
    scales[i % n] = std::max(scales[i % n], std::abs(w[i]) / 127.0f);
  return scales;
}

/// sum over columns of (W - Q)^T H (W - Q).
double output_error(const std::vector<float>& w, const std::vector<std::int32_t>& q,
                    const std::vector<float>& scales, const Matrix& h) {
  const auto n = static_cast<Eigen::Index>(scales.size());
  Matrix e(h.rows(), n);
  for (Eigen::Index i = 0; i < e.size(); ++i)
    e(i / n, i % n) = w[i] - static_cast<double>(q[i]) * scales[i % n];
  return (e.transpose() * h * e).trace();
}

TEST(Gptq, EqualsThePaper) {
  for (const std::int64_t k : {1, 2, 13, 64, 65, 130}) {
    const std::int64_t n = 9;
    const auto w = normal_values(k * n, 11);
    const auto scales = column_scales(w, n);
    const Matrix h = gram_of(k, 2 * k + 3, 21);
    const auto fast =
        gptq_round(w, GramFactor(row_major(h)), scales, std::vector<std::int32_t>(n, 0), -127, 127);
    const auto slow = slow_gptq(w, h, n, scales);
    // Ties and the last bits of the inverse move single values.
    int different = 0;
    for (std::size_t i = 0; i < fast.size(); ++i) {
      EXPECT_LE(std::abs(fast[i] - slow[i]), 1) << k << ": " << i;
      different += fast[i] != slow[i];
    }
    EXPECT_LE(different, static_cast<int>(fast.size() / 100)) << k;
  }
}

/// The same by plain loops over L, whose sums are those of the blocks, term after term.
std::vector<std::int32_t> plain_gptq(const std::vector<float>& weight,
                                     const std::vector<float>& gram, std::int64_t n,
                                     const std::vector<float>& scales) {
  const auto k = static_cast<std::int64_t>(weight.size()) / n;
  std::vector<std::int64_t> order(k);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](auto a, auto b) { return gram[a * k + a] < gram[b * k + b]; });
  Matrix u(k, k), missed(k, n);
  double trace = 0;
  for (std::int64_t i = 0; i < k; ++i) {
    for (std::int64_t j = 0; j < k; ++j) u(i, j) = gram[order[j] * k + order[i]];
    trace += u(i, i);
  }
  u.diagonal().array() += 0.01 * (trace / static_cast<double>(k));
  for (std::int64_t i = 0; i < k; ++i)
    for (std::int64_t j = i; j < k; ++j) {
      for (std::int64_t d = 0; d < i; ++d) u(i, j) -= u(d, i) * u(d, j);
      u(i, j) = j == i ? std::sqrt(u(i, j)) : u(i, j) / u(i, i);
    }
  std::vector<std::int32_t> q(weight.size());
  for (std::int64_t i = k - 1; i >= 0; --i)
    for (std::int64_t j = 0; j < n; ++j) {
      double carried = 0;
      for (std::int64_t d = k - 1; d > i; --d) carried += u(i, d) * missed(d, j);
      const double w = weight[order[i] * n + j], scale = scales[j];
      const double rounded =
          std::clamp(std::nearbyint((w + carried / u(i, i)) / scale), -127.0, 127.0);
      q[order[i] * n + j] = static_cast<std::int32_t>(rounded);
      missed(i, j) = w - rounded * scale;
    }
  return q;
}

// Sizes around those of panels, of blocks and of what stays in the cache.
TEST(Gptq, EqualsPlainLoopsInEachBit) {
  for (const std::int64_t k : {1, 3, 7, 8, 9, 63, 64, 65, 72, 127, 257, 321, 600})
    for (const std::int64_t n : {1, 8, 17}) {
      const auto w = normal_values(k * n, 3);
      const auto scales = column_scales(w, n);
      const auto gram = row_major(gram_of(k, 2 * k + 3, 5));
      EXPECT_EQ(gptq_round(w, GramFactor(gram), scales, std::vector<std::int32_t>(n, 0), -127, 127),
                plain_gptq(w, gram, n, scales))
          << k << " x " << n;
    }
}

TEST(Gptq, ErrsLessThanTheNearestIntegers) {
  const std::int64_t k = 96, n = 40;
  const auto w = normal_values(k * n, 4);
  const auto scales = column_scales(w, n);
  const Matrix h = gram_of(k, 400, 8);
  const auto rounded =
      gptq_round(w, GramFactor(row_major(h)), scales, std::vector<std::int32_t>(n, 0), -127, 127);
  std::vector<std::int32_t> nearest;
  for (std::size_t i = 0; i < w.size(); ++i)
    nearest.push_back(static_cast<std::int32_t>(std::nearbyint(w[i] / scales[i % n])));
  EXPECT_LT(output_error(w, rounded, scales, h), 0.6 * output_error(w, nearest, scales, h));
}

TEST(Gptq, IsTheNearestIntegerWhereInputsAreIndependent) {
  const std::int64_t k = 20, n = 3;
  const auto w = normal_values(k * n, 4);
  const auto q = gptq_round(w, GramFactor(row_major(Matrix::Identity(k, k))), std::vector{0.01f},
                            std::vector<std::int32_t>{128}, 0, 255);
  for (std::size_t i = 0; i < w.size(); ++i)
    EXPECT_EQ(q[i],
              std::clamp(std::nearbyint(static_cast<double>(w[i]) / 0.01f) + 128, 0.0, 255.0));
}

TEST(Gptq, RefusesWhatDoesNotFit) {
  EXPECT_ERROR(HasSubstr("does not match"),
               gptq_round(std::vector(6, 1.0f), GramFactor(std::vector(16, 1.0f)),
                          std::vector{1.0f}, std::vector<std::int32_t>{0}, -127, 127));
  EXPECT_ERROR(HasSubstr("NaN"),
               gptq_round(std::vector(4, 1.0f), GramFactor(std::vector{NAN, 0.f, 0.f, 1.f}),
                          std::vector{1.0f}, std::vector<std::int32_t>{0}, -127, 127));
}

// Sums of many equal rows in f32 may err by more than 1 % of the diagonal.
TEST(Gptq, DampsARoundedGramMatrixMore) {
  const auto with = [](float off_diagonal) {
    return GramFactor(std::vector{1.0f, off_diagonal, off_diagonal, 1.0f});
  };
  const std::vector w{0.3f, 0.7f};
  EXPECT_EQ(
      gptq_round(w, with(1.05f), std::vector{1.0f}, std::vector<std::int32_t>{0}, -127, 127).size(),
      2u);
  EXPECT_NO_THROW(with(1.9f));
  EXPECT_ERROR(HasSubstr("not positive definite"), with(2.5f));
}

}  // namespace
}  // namespace bertcl::quant::tests
