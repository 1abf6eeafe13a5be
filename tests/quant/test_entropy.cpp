// SPDX-License-Identifier: Apache-2.0
// Entropy against its definitions, bin by bin, and against ranges of onnxruntime 1.31.1.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "bertcl/error.hpp"
#include "quant/calibration/observer.hpp"
#include "tests/quant/observed.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::quant::tests {
namespace {

MethodOptions with(int bins, int quantized_bins) {
  MethodOptions options;
  options.bins = bins;
  options.quantized_bins = quantized_bins;
  return options;
}

struct Golden {
  bool peaked;
  int bins, quantized_bins;
  Range range;
  double tolerance = 1e-6;  // relative
};

// HistogramCollector('entropy', False, bins, quantized_bins, ...) of onnxruntime 1.31.1, one
// collect() for each batch.
const Golden kGolden[] = {
    {false, 128, 128, {-0x1.8ep+1f, 0x1.e6c0cp+4f}},
    {false, 512, 128, {-0x1.8ep+1f, 0x1.e69490p+4f}},
    // Two neighbours of 11,385 candidates differ by less than onnxruntime's float sums: one bin.
    {false, 2048, 128, {-0x1.8ep+1f, 0x1.eba10cp+4f}, 1e-4},
    {false, 1001, 255, {-0x1.8ep+1f, 0x1.e4082cp+4f}},
    {false, 2001, 128, {-0x1.8ep+1f, 0x1.ec11acp+4f}},
    {true, 128, 128, {-0x1.0p+0f, 0x1.04p+0f}},
    {true, 512, 128, {-0x1.01p+0f, 0x1.02p+0f}},
    {true, 2048, 128, {-0x1.11cp+0f, 0x1.12p+0f}},
    {true, 1001, 255, {-0x1.06a63cp+0f, 0x1.06a63cp+0f}},
    {true, 2001, 128, {-0x1.286d84p+0f, 0x1.286d86p+0f}},
};

TEST(Entropy, IsThatOfOnnxruntime) {
  for (const Golden& g : kGolden) {
    SCOPED_TRACE(std::to_string(g.bins) + "/" + std::to_string(g.quantized_bins));
    const Range range = range_by("entropy", with(g.bins, g.quantized_bins),
                                 g.peaked ? peaked_batches() : batches());
    EXPECT_NEAR(range.low, g.range.low, g.tolerance * std::abs(g.range.low));
    EXPECT_NEAR(range.high, g.range.high, g.tolerance * std::abs(g.range.high));
  }
}

/// Smoothed as `smooth_distribution`; empty if there is nothing to smooth.
std::vector<double> smoothed(std::vector<double> p) {
  const auto zeros = static_cast<double>(std::count(p.begin(), p.end(), 0.0));
  const double filled = static_cast<double>(p.size()) - zeros;
  if (filled == 0) return {};
  for (double& v : p) v = v == 0 ? 1e-4 : v - 1e-4 * zeros / filled;
  return p;
}

double divergence_of(const std::vector<double>& p, const std::vector<double>& q) {
  const double ps = std::accumulate(p.begin(), p.end(), 0.0);
  const double qs = std::accumulate(q.begin(), q.end(), 0.0);
  double d = 0;
  for (std::size_t i = 0; i < p.size(); ++i)
    if (p[i] > 0)
      d += q[i] > 0 ? p[i] / ps * std::log(p[i] / ps / (q[i] / qs))
                    : std::numeric_limits<double>::infinity();
  return d;
}

/// `get_entropy_threshold`, step by step.
Range plain_entropy(const Histogram& h, std::size_t merged) {
  const std::vector<double> hist(h.counts().begin(), h.counts().end());
  const std::size_t n = hist.size(), zero = n / 2;
  double least = std::numeric_limits<double>::infinity();
  Range best;
  for (std::size_t i = merged / 2; i <= zero; ++i) {
    const std::size_t start = zero - i, end = std::min(zero + i + 1, n), size = end - start;
    const auto at = [&](std::size_t k) { return hist.begin() + static_cast<std::ptrdiff_t>(k); };
    const std::vector<double> slice(at(start), at(end));
    std::vector<double> p = slice, q(size, 0.0);
    p.front() += std::accumulate(at(0), at(start), 0.0);
    p.back() += std::accumulate(at(end), at(n), 0.0);
    for (std::size_t g = 0, each = size / merged; g < merged; ++g) {
      double sum = 0, filled = 0;
      for (std::size_t k = g * each; k < (g + 1 == merged ? size : (g + 1) * each); ++k)
        sum += slice[k];
      for (std::size_t k = g * each; k < (g + 1) * each; ++k) filled += p[k] != 0;
      for (std::size_t k = g * each; k < (g + 1) * each; ++k)
        if (filled > 0) q[k] = std::trunc(sum / filled);
    }
    p = smoothed(p);
    q = smoothed(q);
    const double d =
        p.empty() || q.empty() ? std::numeric_limits<double>::infinity() : divergence_of(p, q);
    if (d < least || i == merged / 2) least = d, best = {h.edges()[start], h.edges()[end]};
  }
  return {std::max(best.low, h.bounds().low), std::min(best.high, h.bounds().high)};
}

TEST(Entropy, IsItsDefinitionOnManyHistograms) {
  for (const auto& [bins, merged] :
       {std::pair{2, 2}, {9, 3}, {64, 16}, {127, 128 - 1}, {300, 31}, {1024, 128}, {1500, 2}}) {
    for (unsigned seed = 0; seed < 6; ++seed) {
      auto data = std::vector{bertcl::tests::normal_values(40 + 3000 * (seed % 3), seed),
                              bertcl::tests::normal_values(2000, seed + 50, 1.3f)};
      if (seed % 2 == 1)  // one-sided with an outlier: most bins stay empty
        for (auto& x : data)
          for (float& v : x) v = v > 2.5f ? 40.0f * v : 0.1f * std::abs(v);
      const Histogram h = histogram_of(data, bins, Binning::two_sided);
      EXPECT_EQ(range_by("entropy", with(bins, merged), data),
                plain_entropy(h, static_cast<std::size_t>(merged)))
          << bins << "/" << merged << ", seed " << seed;
    }
  }
}

TEST(Entropy, SymmetricTakesTheLargerEnd) {
  MethodOptions options = with(512, 128);
  const Range range = range_by("entropy", options);
  options.symmetric = true;
  EXPECT_EQ(range_by("entropy", options), (Range{-range.high, range.high}));
}

TEST(Entropy, NamesTheFault) {
  EXPECT_THROW(method("entropy").observer(device(), with(64, 128), "t"), Error);
  EXPECT_THROW(method("entropy").observer(device(), with(64, 1), "t"), Error);
  EXPECT_ERROR(HasSubstr("'hidden'"), method("entropy").observer(device(), {}, "hidden")->range());
}

/// `_compute_amax_entropy` of pytorch-quantization, step by step; the end of the best stretch.
std::size_t plain_torch_entropy(const Histogram& h, std::size_t start, std::size_t stride) {
  std::vector<double> bins(h.counts().begin(), h.counts().end());
  bins[0] = bins[1];
  double least = std::numeric_limits<double>::infinity();
  std::size_t best = start;
  for (std::size_t i = start; i <= bins.size(); i += stride) {
    std::vector<double> sums(128, 0.0), filled(128, 0.0), density(i, 0.0);
    const auto cell = [&](std::size_t k) {  // digitize(range(i), linspace(0, i, 129)) - 1
      std::size_t c = 0;
      while (c + 1 < 128 &&
             static_cast<double>(c + 1) * (static_cast<double>(i) / 128) <= static_cast<double>(k))
        ++c;
      return c;
    };
    for (std::size_t k = 0; k < i; ++k)
      if (bins[k] > 0) sums[cell(k)] += bins[k], filled[cell(k)] += 1;
    for (std::size_t k = 0; k < i; ++k)
      if (bins[k] > 0) density[k] = sums[cell(k)] / filled[cell(k)];
    std::vector<double> reference(bins.begin(), bins.begin() + static_cast<std::ptrdiff_t>(i));
    reference.back() +=
        std::accumulate(bins.begin() + static_cast<std::ptrdiff_t>(i), bins.end(), 0.0);
    const double d = divergence_of(reference, density);
    if (d <= least) least = d, best = i;
  }
  return best;
}

TEST(TorchEntropy, IsItsDefinition) {
  for (unsigned seed = 0; seed < 4; ++seed)
    for (const auto& [bins, start, stride] :
         {std::tuple{200, 128, 1}, {700, 128, 1}, {600, 130, 7}}) {
      const std::vector data{bertcl::tests::normal_values(5000, seed),
                             bertcl::tests::normal_values(7000, seed + 9, 1.2f)};
      MethodOptions options;
      options.bins = bins;
      options.start_bin = start;
      options.stride = stride;
      options.symmetric = true;
      const Histogram h = histogram_of(data, bins, Binning::from_zero);
      const float bound = h.edges()[plain_torch_entropy(h, static_cast<std::size_t>(start),
                                                        static_cast<std::size_t>(stride))];
      EXPECT_EQ(range_by("torch-entropy", options, data), (Range{-bound, bound}))
          << bins << ", seed " << seed;
    }
}

}  // namespace
}  // namespace bertcl::quant::tests
