// SPDX-License-Identifier: Apache-2.0
// Histograms on the device and their growth against plain C++.
#include <algorithm>
#include <cmath>
#include <limits>

#include "quant/calibration/device_histogram.hpp"
#include "tests/quant/observed.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::quant::tests {
namespace {

TEST(DeviceHistogram, CountsAsNumpyWhereNothingGrows) {
  // The largest batch comes first, so that all later ones fall into its bins.
  for (const Binning binning : {Binning::absolute, Binning::from_zero, Binning::two_sided})
    for (const int bins : {2, 7, 128, 2048}) {
      const bool absolute = binning != Binning::two_sided;
      std::vector<std::vector<float>> data{bertcl::tests::normal_values(5000, 1, 3.0f)};
      data[0][0] = 40.0f;
      data[0][1] = 0.0f;
      for (const std::size_t size : {1, 8, 385, 9000})
        data.push_back(bertcl::tests::normal_values(size, static_cast<unsigned>(size)));
      DeviceHistogram histogram(device(), "t", bins, binning);
      for (const auto& x : data) {
        const ElementRange all{0, x.size()};
        histogram.observe(upload(x), {&all, 1});
      }
      const Histogram& h = histogram.read();
      expect_equal(h.edges(), even_edges(absolute ? 0.0f : -40.0f, 40.0f, bins), "edges");
      expect_equal(h.counts(), count_plainly(data, h.edges(), absolute), "counts");
      expect_equal(histogram.read().counts(), h.counts(), "second reading");
    }
}

// Devices with many work-items share one histogram by atomics; those with few do not. Both here.
TEST(ObserveHistogram, SharedAndExclusiveCopies) {
  const auto x = bertcl::tests::normal_values(5000, 4);
  const auto edges = even_edges(-2.0f, 2.5f, 37);  // some values lie outside
  const auto expected = count_plainly({x}, edges, false);
  for (const int copies : {1, 3, 64})
    for (const std::int32_t chunk : {100, 333, 5000}) {
      const auto items = bertcl::tests::ceil_div(x.size(), static_cast<std::size_t>(chunk));
      const bool exclusive = items <= static_cast<std::size_t>(copies);
      const auto size = static_cast<std::size_t>(copies) * 37;
      const auto counts = upload(std::vector<std::uint32_t>(size, 5));
      auto kernel = device().kernel("observe", "observe_histogram",
                                    {{"COPIES", copies}, {"EXCLUSIVE", exclusive}});
      kernel.args(upload(x), upload(edges), counts, 0, 5000, chunk, 37, 0, 37 / 4.5f);
      bertcl::tests::run(kernel, items);
      std::vector<std::uint64_t> sums(37, 0);
      const auto made = counts.download<std::uint32_t>();
      for (std::size_t i = 0; i < size; ++i) sums[i % 37] += made[i] - 5;
      expect_equal(sums, expected, std::to_string(copies) + " copies");
    }
}

// Growth adds bins of the width that there is; only coarsening makes them wider. The middle bin,
// since the outer ones of a range are the least exact.
float bin_width(const Histogram& h) {
  const std::size_t middle = h.counts().size() / 2;
  return h.edges()[middle + 1] - h.edges()[middle];
}

TEST(DeviceHistogram, GrowsAsTheReference) {
  for (const Binning binning : {Binning::absolute, Binning::from_zero, Binning::two_sided}) {
    DeviceHistogram histogram(device(), "t", 64, binning);
    for (const auto& x : batches()) {
      const ElementRange all{0, x.size()};
      histogram.observe(upload(x), {&all, 1});
    }
    const Histogram reference = histogram_of(batches(), 64, binning);
    expect_equal(histogram.read().edges(), reference.edges(), "edges");
    expect_equal(histogram.read().counts(), reference.counts(), "counts");
    EXPECT_GT(histogram.read().counts().size(), 64u);
    EXPECT_NEAR(bin_width(histogram.read()) / bin_width(histogram_of({batches()[0]}, 64, binning)),
                1.0f, 1e-3f)
        << "it grew, and was not made coarser";
  }
}

// Samples leave the same histogram alone, eight at a time and in a ragged batch, growth included.
TEST(DeviceHistogram, DoesNotDependOnTheBatches) {
  std::vector<std::vector<float>> samples;
  for (unsigned i = 0; i < 21; ++i)
    samples.push_back(
        bertcl::tests::normal_values(100 + 77 * (i % 5), i, 1.0f + 0.1f * static_cast<float>(i)));
  for (const Binning binning : {Binning::absolute, Binning::from_zero, Binning::two_sided}) {
    const Histogram expected = histogram_of(samples, 256, binning);
    for (const std::size_t together : {1, 8, 21}) {
      DeviceHistogram histogram(device(), "t", 256, binning);
      for (std::size_t first = 0; first < samples.size(); first += together) {
        std::vector<float> values{1e9f};  // no part of any sample
        std::vector<ElementRange> slices;
        for (std::size_t i = first; i < std::min(first + together, samples.size()); ++i) {
          slices.push_back({values.size(), samples[i].size()});
          values.insert(values.end(), samples[i].begin(), samples[i].end());
        }
        histogram.observe(upload(values), slices);
      }
      expect_equal(histogram.read().edges(), expected.edges(), std::to_string(together) + " edges");
      expect_equal(histogram.read().counts(), expected.counts(), std::to_string(together));
      EXPECT_EQ(histogram.read().bounds().low, expected.bounds().low);
      EXPECT_EQ(histogram.read().bounds().high, expected.bounds().high);
    }
  }
}

// torch.histc over 0 .. max, then ceil(max / width) bins of that width.
TEST(Histogram, FromZeroHasTheBinsOfPytorchQuantization) {
  const Histogram h = histogram_of(batches(), 100, Binning::from_zero);
  const float width = bounds_of(batches()[0]).high / 100;
  const float largest = bounds_of(batches()[4]).high;
  EXPECT_EQ(h.counts().size(), static_cast<std::size_t>(std::ceil(largest / width)));
  EXPECT_EQ(h.edges().front(), 0.0f);
  EXPECT_GE(h.edges().back(), largest);
  EXPECT_LT(h.edges().back(), largest + 2 * width);
  std::uint64_t total = 0, all = 0;
  for (const auto c : h.counts()) total += c;
  for (const auto& x : batches()) all += x.size();
  EXPECT_EQ(total, all) << "from 0, nothing is lost";
}

// Zeros say nothing of the width of bins: the first other value does.
TEST(Histogram, BeginsAnewAfterZeros) {
  for (const Binning binning : {Binning::from_zero, Binning::two_sided}) {
    Histogram h = histogram_of({{0, 0, 0}, {0.001f, 0.0005f}}, 64, binning);
    EXPECT_EQ(h.counts().size(), 64u);
    EXPECT_EQ(h.edges().back(), 0.001f);
    EXPECT_EQ(h.counts()[binning == Binning::from_zero ? 0 : 32], 3u);
  }
}

TEST(Histogram, StaysBoundedWhenTheRangeExplodes) {
  for (const Binning binning : {Binning::absolute, Binning::from_zero, Binning::two_sided}) {
    Histogram h(16, binning, 64);
    h.extend({-1.0f, 1.0f, 0.0f});
    std::vector<std::uint32_t> counts(16, 3);
    h.add(counts);
    const float first_width = bin_width(h);
    for (const float largest : {100.0f, 101.0f, 1e6f, 1e30f}) {
      h.extend({-largest, largest, 0.0f});
      EXPECT_LE(h.counts().size(), 64u);
      EXPECT_GE(h.edges().back(), largest);
      EXPECT_TRUE(std::is_sorted(h.edges().begin(), h.edges().end()));
      std::uint64_t total = 0;
      for (const auto c : h.counts()) total += c;
      EXPECT_EQ(total, 48u);
    }
    EXPECT_GT(bin_width(h), 1.5f * first_width) << "made coarser";
  }
}

// Masks add the smallest float to scores; twice the largest is not a float.
TEST(Histogram, HoldsTheLargestFloats) {
  constexpr float largest = std::numeric_limits<float>::max();
  for (const Binning binning : {Binning::absolute, Binning::from_zero, Binning::two_sided})
    for (const float before : {0.0f, 0.6f * largest, 0.95f * largest}) {
      std::vector<std::vector<float>> data{{-largest, 0.5f, 2.0f, 0.75f * largest}};
      if (before > 0.0f) data.insert(data.begin(), {-before, 1.0f, 0.9f * before});
      const Histogram h = histogram_of(data, 64, binning);
      for (std::size_t i = 0; i < h.counts().size(); ++i) {
        EXPECT_LT(h.edges()[i], h.edges()[i + 1]) << before << " bin " << i;
        EXPECT_GE(h.centres()[i], h.edges()[i]) << before;
        EXPECT_LE(h.centres()[i], h.edges()[i + 1]) << before;
      }
      EXPECT_EQ(h.edges().back(), largest) << before;
      DeviceHistogram counted(device(), "t", 64, binning);
      for (const auto& x : data) {
        const ElementRange all{0, x.size()};
        counted.observe(upload(x), {&all, 1});
      }
      expect_equal(counted.read().counts(), h.counts(), std::to_string(before));
    }
}

// What coarsening moves: no count by more than one of the new bins.
TEST(Histogram, CoarseBinsHoldTheirValuesToWithinABin) {
  for (const Binning binning : {Binning::from_zero, Binning::two_sided}) {
    const bool absolute = binning == Binning::from_zero;
    const auto small = bertcl::tests::normal_values(3000, 1),
               large = bertcl::tests::normal_values(3000, 2, 9.0f);
    Histogram h(64, binning, 128);
    float first_width = 0.0f;
    for (const auto& x : {small, large}) {
      h.extend(bounds_of(x));
      if (first_width == 0.0f) first_width = bin_width(h);
      std::vector<std::uint32_t> counts;
      for (const auto c : count_plainly({x}, h.edges(), absolute))
        counts.push_back(static_cast<std::uint32_t>(c));
      h.add(counts);
    }
    ASSERT_GT(bin_width(h), 1.5f * first_width) << "made coarser";
    ASSERT_EQ(h.counts().size(), 64u) << "half of the most";
    const auto exact = count_plainly({small, large}, h.edges(), absolute);
    std::int64_t sum = 0, exact_sum = 0;
    for (std::size_t i = 0; i < exact.size(); ++i) {
      const std::int64_t before = exact_sum;
      sum += static_cast<std::int64_t>(h.counts()[i]);
      exact_sum += static_cast<std::int64_t>(exact[i]);
      const std::int64_t after =
          i + 1 < exact.size() ? exact_sum + static_cast<std::int64_t>(exact[i + 1]) : exact_sum;
      EXPECT_GE(sum, before) << i;
      EXPECT_LE(sum, after) << i;
    }
    EXPECT_EQ(sum, 6000);
  }
}

}  // namespace
}  // namespace bertcl::quant::tests
