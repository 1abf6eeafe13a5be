// SPDX-License-Identifier: Apache-2.0
// Percentile against ranges of onnxruntime 1.31.1.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bertcl/error.hpp"
#include "quant/calibration/device_histogram.hpp"
#include "quant/calibration/observer.hpp"
#include "tests/quant/observed.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::quant::tests {
namespace {

MethodOptions with(int bins, double percentile, bool symmetric) {
  MethodOptions options;
  options.bins = bins;
  options.percentile = percentile;
  options.symmetric = symmetric;
  return options;
}

struct PercentileCase {
  bool absolute;
  double percentile;
  int bins;
  std::size_t grown_bins;
  std::uint64_t total, weighted;  // sum of counts; sum of (counts * index mod 1000003)
  Range range;
};

// HistogramCollector('percentile', absolute, bins, 128, percentile, 'same') of onnxruntime 1.31.1,
// one collect() for each of batches().
const PercentileCase kPercentiles[] = {
    {true, 99.999, 2048, 22926, 10418, 55795807, {-0x1.8ep+1f, 0x1.edfdb4p+4f}},
    {true, 99.0, 64, 717, 10418, 1738575, {-0x1.8ep+1f, 0x1.e35e8p+4f}},
    {true, 90.0, 64, 717, 10418, 1738575, {-0x1.8ep+1f, 0x1.719cp+4f}},
    {false, 99.999, 2048, 22896, 10437, 145780441, {-0x1.8ep+1f, 0x1.edf594p+4f}},
    {false, 99.0, 64, 716, 10437, 4553250, {-0x1.1f38p+1f, 0x1.e8d3p+4f}},
    {false, 90.0, 64, 716, 10437, 4553250, {-0x1.8dbp+0f, 0x1.b197p+4f}},
};

TEST(Percentile, IsThatOfOnnxruntime) {
  for (const PercentileCase& c : kPercentiles) {
    SCOPED_TRACE(std::to_string(c.percentile) + (c.absolute ? " of |x|" : " of x"));
    DeviceHistogram histogram(device(), "t", c.bins,
                              c.absolute ? Binning::absolute : Binning::two_sided);
    for (const auto& x : batches()) {
      const ElementRange all{0, x.size()};
      histogram.observe(upload(x), {&all, 1});
    }
    const auto& counts = histogram.read().counts();
    ASSERT_EQ(counts.size(), c.grown_bins);
    std::uint64_t total = 0, weighted = 0;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      total += counts[i];
      weighted += counts[i] * i % 1000003;
    }
    EXPECT_EQ(total, c.total);
    EXPECT_EQ(weighted, c.weighted);
    const Range range = range_by("percentile", with(c.bins, c.percentile, c.absolute));
    EXPECT_NEAR(range.low, c.range.low, 1e-6 * std::abs(c.range.low));
    EXPECT_NEAR(range.high, c.range.high, 1e-6 * std::abs(c.range.high));
  }
}

// onnxruntime once lost the negative side of such ranges (its issue 10571).
TEST(Percentile, AtHundredPercentLacksAtMostOneBinOfMinMax) {
  const Range all = range_by("minmax", {});
  for (const bool absolute : {true, false}) {
    const Range range = range_by("percentile", with(2048, 100.0, absolute));
    EXPECT_LE(range.low, all.low + 0.01f) << absolute;
    EXPECT_GE(range.high, all.high - 0.01f) << absolute;
  }
}

/// Nearly all values within 0.5 of 0, and few that are thousands of times as large.
std::vector<float> with_outliers() {
  std::vector<float> x = batch(5, 400000, 1.0f / 1008, 504);
  x[7] = 1600.0f;
  return x;
}

TEST(Percentile, OutliersDoNotLeaveTheOthersWithoutARange) {
  const auto x = with_outliers();
  for (const int bins : {8, 32, 64, 2048})
    for (const bool absolute : {true, false})
      for (const char* name : {"percentile", "torch-percentile"}) {
        SCOPED_TRACE(fmt::format("{} of {} bins, absolute {}", name, bins, absolute));
        MethodOptions options;
        options.bins = bins;
        options.symmetric = absolute;
        const auto observer = method(name).observer(device(), options, "t");
        observe(*observer, x);
        const Range range = observer->range();
        EXPECT_LE(range.low, -0.49f);
        EXPECT_GE(range.high, 0.49f);
        EXPECT_LE(range.high - range.low, static_cast<float>(8192 / bins))
            << "a bin is 3200 / bins wide at most";
        EXPECT_TRUE(observer->is_coarse());
      }
  const auto fine = method("percentile").observer(device(), {}, "t");
  for (const auto& other : batches()) observe(*fine, other);
  fine->range();
  EXPECT_FALSE(fine->is_coarse());
}

TEST(Percentile, ConstantTensors) {
  for (const float value : {0.0f, 3.3f, -1e-20f, 1e30f})
    for (const bool absolute : {true, false}) {
      const auto observer =
          method("percentile").observer(device(), with(2048, 99.999, absolute), "t");
      observe(*observer, std::vector<float>(50, value));
      const Range range = observer->range();
      EXPECT_LE(range.low, range.high) << value;
      EXPECT_GE(range.low, std::min(value, 0.0f) * 1.001f) << value;
      EXPECT_LE(range.high, std::max(value, 0.0f) * 1.001f) << value;
    }
}

TEST(Percentile, NamesTheFault) {
  EXPECT_THROW(method("percentile").observer(device(), with(2048, 0.0, true), "t"), Error);
  EXPECT_THROW(method("percentile").observer(device(), with(2048, 100.5, true), "t"), Error);
  EXPECT_THROW(method("percentile").observer(device(), with(1, 99.0, true), "t"), Error);
  const auto observer = method("percentile").observer(device(), {}, "hidden");
  EXPECT_ERROR(HasSubstr("'hidden'"), observer->range());
  EXPECT_ERROR(HasSubstr("'hidden'"), observe(*observer, {1, std::nanf("")}));
}

// `_compute_amax_percentile` on the histogram of absolute values from 0.
TEST(TorchPercentile, IsTheEdgeThatReachesTheShare) {
  for (const double share : {50.0, 90.0, 99.0, 99.99, 100.0}) {
    const Histogram h = histogram_of(batches(), 512, Binning::from_zero);
    double total = 0, sum = 0;
    for (const auto c : h.counts()) total += static_cast<double>(c);
    std::size_t bin = 0;
    while (bin < h.counts().size() &&
           (sum += static_cast<double>(h.counts()[bin]) / total) < share / 100)
      ++bin;
    const Range range = range_by("torch-percentile", with(512, share, true));
    EXPECT_EQ(range, (Range{-h.edges()[bin], h.edges()[bin]})) << share;
    const Range clipped = range_by("torch-percentile", with(512, share, false));
    EXPECT_EQ(clipped.low, std::max(range.low, h.bounds().low)) << share;
    EXPECT_EQ(clipped.high, std::min(range.high, h.bounds().high)) << share;
  }
}

TEST(Methods, AreFoundByName) {
  EXPECT_EQ(method("minmax").name, "minmax");
  for (const Method& m : methods()) EXPECT_EQ(&method(m.name), &m);
  EXPECT_ERROR(HasSubstr("minmax, percentile, entropy, mse"), method("maximum"));
}

}  // namespace
}  // namespace bertcl::quant::tests
