// SPDX-License-Identifier: Apache-2.0
// The observers on the device against plain C++ and against ranges of onnxruntime 1.31.1.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "bertcl/error.hpp"
#include "quant/device_histogram.hpp"
#include "quant/device_range.hpp"
#include "quant/observer.hpp"
#include "tests/kernels_cl/device_test.hpp"

namespace bertcl::quant {
namespace {

using tests::device;
using tests::expect_equal;
using tests::upload;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

/// Integers spread over 0 .. 1008, shifted and scaled: the same in C++ and numpy.
std::vector<float> batch(std::int64_t seed, std::int64_t count, float scale, float offset) {
  std::vector<float> x;
  for (std::int64_t i = 0; i < count; ++i)
    x.push_back((static_cast<float>((i * i * 31 + i * 17 + seed * 101) % 1009) - offset) * scale);
  return x;
}

/// Five batches: growth, a ragged one, growth again, none, much growth.
std::vector<std::vector<float>> batches() {
  return {batch(0, 1000, 1.0f / 256, 300), batch(1, 7, 1.0f / 64, 300),
          batch(2, 5000, 1.0f / 128, 300), batch(3, 333, 1.0f / 512, 700),
          batch(4, 4097, 1.0f / 32, 20)};
}

Range range_by(const Method& m, const MethodOptions& options) {
  const auto observer = m.observer(device(), options, "t");
  for (const auto& x : batches()) observer->observe(upload(x), x.size());
  return observer->range();
}

TEST(DeviceRange, AnySizeAndAnyPlace) {
  for (const std::size_t size : {1, 15, 16, 17, 4095, 4096, 4097, 100003}) {
    auto x = tests::normal_values(size, 1);
    for (const std::size_t place : {std::size_t{0}, size / 2, size - 1}) {
      auto y = x;
      y[place] = 9.0f;
      y[size - 1 - place] = size == 1 ? 9.0f : -8.0f;
      DeviceRange range(device(), "t");
      range.join(upload(y), size);
      const Extent e = range.read();
      const auto [low, high] = std::minmax_element(y.begin(), y.end());
      EXPECT_EQ(e.low, *low) << size;
      EXPECT_EQ(e.high, *high) << size;
      float nearest = kInf;
      for (const float v : y) nearest = std::min(nearest, std::abs(v));
      EXPECT_EQ(e.nearest, nearest) << size;
    }
  }
}

TEST(DeviceRange, JoinsAndRestarts) {
  DeviceRange range(device(), "t");
  range.join(upload(std::vector<float>{2, 3}), 2);
  range.join(upload(std::vector<float>{-1, 1, 99}), 2);  // the third lies behind the count
  EXPECT_EQ(range.read().low, -1.0f);
  EXPECT_EQ(range.read().high, 3.0f);
  range.join(upload(std::vector<float>{7}), 0);
  EXPECT_EQ(range.read().high, 3.0f);
  range.restart(upload(std::vector<float>{5}), 1);
  EXPECT_EQ(range.read().low, 5.0f);
}

TEST(MinMax, IsTheRangeOfAllBatches) {
  float low = kInf, high = -kInf;
  for (const auto& x : batches())
    for (const float v : x) low = std::min(low, v), high = std::max(high, v);
  EXPECT_EQ(range_by(minmax, {}), (Range{low, high}));
}

TEST(MinMax, NamesATensorWithoutRange) {
  const auto message = [](const std::vector<float>& x) -> std::string {
    const auto observer = minmax.observer(device(), {}, "hidden");
    if (!x.empty()) observer->observe(upload(x), x.size());
    try {
      observer->range();
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_THAT(message({}), testing::AllOf(testing::HasSubstr("'hidden'"),
                                          testing::HasSubstr("no calibration sample")));
  EXPECT_THAT(message({1, kNan, 2}), testing::HasSubstr("NaN"));
  EXPECT_THAT(message({1, -kInf, 2}), testing::HasSubstr("infinite"));
  EXPECT_EQ(message({1, 2}), "");
}

/// numpy.histogram with given edges.
std::vector<std::uint64_t> count_plainly(const std::vector<std::vector<float>>& data,
                                         const std::vector<float>& edges, bool absolute) {
  std::vector<std::uint64_t> counts(edges.size() - 1, 0);
  for (const auto& x : data)
    for (float v : x) {
      if (absolute) v = std::abs(v);
      if (v < edges.front() || v > edges.back()) continue;
      const auto after = std::upper_bound(edges.begin(), edges.end(), v) - edges.begin();
      ++counts[std::min(static_cast<std::size_t>(after), counts.size()) - 1];
    }
  return counts;
}

TEST(DeviceHistogram, CountsAsNumpyWhereNothingGrows) {
  // The largest batch comes first, so that all later ones fall into its bins.
  for (const bool absolute : {true, false})
    for (const int bins : {2, 7, 128, 2048}) {
      std::vector<std::vector<float>> data{tests::normal_values(5000, 1, 3.0f)};
      data[0][0] = 40.0f;
      data[0][1] = 0.0f;
      for (const std::size_t size : {1, 8, 385, 9000})
        data.push_back(tests::normal_values(size, static_cast<unsigned>(size)));
      DeviceHistogram histogram(device(), "t", bins, absolute);
      for (const auto& x : data) histogram.observe(upload(x), x.size());
      const Histogram& h = histogram.read();
      expect_equal(h.edges(), even_edges(absolute ? 0.0f : -40.0f, 40.0f, bins), "edges");
      expect_equal(h.counts(), count_plainly(data, h.edges(), absolute), "counts");
      expect_equal(histogram.read().counts(), h.counts(), "second reading");
    }
}

// Devices with many work-items share one histogram by atomics; those with few do not. Both here.
TEST(ObserveHistogram, SharedAndExclusiveCopies) {
  const auto x = tests::normal_values(5000, 4);
  const auto edges = even_edges(-2.0f, 2.5f, 37);  // some values lie outside
  const auto expected = count_plainly({x}, edges, false);
  for (const int copies : {1, 3, 64})
    for (const std::int32_t chunk : {100, 333, 5000}) {
      const auto items = tests::ceil_div(x.size(), static_cast<std::size_t>(chunk));
      const bool exclusive = items <= static_cast<std::size_t>(copies);
      const auto size = static_cast<std::size_t>(copies) * 37;
      const auto counts = upload(std::vector<std::uint32_t>(size, 5));
      auto kernel = device().kernel("observe", "observe_histogram",
                                    {{"COPIES", copies}, {"EXCLUSIVE", exclusive}});
      kernel.args(upload(x), upload(edges), counts, 5000, chunk, 37, 0, 37 / 4.5f);
      tests::run(kernel, items);
      std::vector<std::uint64_t> sums(37, 0);
      const auto made = counts.download<std::uint32_t>();
      for (std::size_t i = 0; i < size; ++i) sums[i % 37] += made[i] - 5;
      expect_equal(sums, expected, std::to_string(copies) + " copies");
    }
}

TEST(DeviceHistogram, GrowsAsTheReference) {
  for (const bool absolute : {true, false}) {
    DeviceHistogram histogram(device(), "t", 64, absolute);
    Histogram reference(64, absolute);
    for (const auto& x : batches()) {
      histogram.observe(upload(x), x.size());
      const auto [low, high] = std::minmax_element(x.begin(), x.end());
      float nearest = kInf;
      for (const float v : x) nearest = std::min(nearest, std::abs(v));
      reference.extend({*low, *high, nearest});
      std::vector<std::uint32_t> counts;
      for (const auto c : count_plainly({x}, reference.edges(), absolute))
        counts.push_back(static_cast<std::uint32_t>(c));
      reference.add(counts);
    }
    expect_equal(histogram.read().edges(), reference.edges(), "edges");
    expect_equal(histogram.read().counts(), reference.counts(), "counts");
    EXPECT_FALSE(histogram.read().coarsened());
  }
}

// Without growth the division into batches leaves no trace: 1, 8 or ragged rows at a time.
TEST(DeviceHistogram, DoesNotDependOnTheBatches) {
  const std::size_t row = 384, rows = 21;
  auto x = tests::normal_values(row * rows, 5);
  x[17] = 30.0f;  // in the first row
  x[18] = 0.0f;
  std::vector<std::uint64_t> counts;
  for (const std::size_t batch_rows : {1, 8, 21}) {
    DeviceHistogram histogram(device(), "t", 2048, true);
    for (std::size_t first = 0; first < rows; first += batch_rows) {
      const std::size_t n = std::min(batch_rows, rows - first);
      const std::vector<float> part(x.begin() + static_cast<std::ptrdiff_t>(first * row),
                                    x.begin() + static_cast<std::ptrdiff_t>((first + n) * row));
      histogram.observe(upload(part), part.size());
    }
    if (counts.empty()) counts = histogram.read().counts();
    expect_equal(histogram.read().counts(), counts, std::to_string(batch_rows) + " rows");
  }
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
    DeviceHistogram histogram(device(), "t", c.bins, c.absolute);
    for (const auto& x : batches()) histogram.observe(upload(x), x.size());
    const auto& counts = histogram.read().counts();
    ASSERT_EQ(counts.size(), c.grown_bins);
    std::uint64_t total = 0, weighted = 0;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      total += counts[i];
      weighted += counts[i] * i % 1000003;
    }
    EXPECT_EQ(total, c.total);
    EXPECT_EQ(weighted, c.weighted);
    const Range range = range_by(percentile, {c.bins, c.percentile, c.absolute});
    EXPECT_NEAR(range.low, c.range.low, 1e-6 * std::abs(c.range.low));
    EXPECT_NEAR(range.high, c.range.high, 1e-6 * std::abs(c.range.high));
  }
}

// onnxruntime once lost the negative side of such ranges (its issue 10571).
TEST(Percentile, AtHundredPercentLacksAtMostOneBinOfMinMax) {
  const Range all = range_by(minmax, {});
  for (const bool absolute : {true, false}) {
    const Range range = range_by(percentile, {2048, 100.0, absolute});
    EXPECT_LE(range.low, all.low + 0.01f) << absolute;
    EXPECT_GE(range.high, all.high - 0.01f) << absolute;
  }
}

TEST(Percentile, ConstantTensors) {
  for (const float value : {0.0f, 3.3f, -1e-20f, 1e30f})
    for (const bool absolute : {true, false}) {
      const auto observer = percentile.observer(device(), {2048, 99.999, absolute}, "t");
      observer->observe(upload(std::vector<float>(50, value)), 50);
      const Range range = observer->range();
      EXPECT_LE(range.low, range.high) << value;
      EXPECT_GE(range.low, std::min(value, 0.0f) * 1.001f) << value;
      EXPECT_LE(range.high, std::max(value, 0.0f) * 1.001f) << value;
    }
}

TEST(Percentile, NamesTheFault) {
  EXPECT_THROW(percentile.observer(device(), {2048, 0.0, true}, "t"), Error);
  EXPECT_THROW(percentile.observer(device(), {2048, 100.5, true}, "t"), Error);
  EXPECT_THROW(percentile.observer(device(), {1, 99.0, true}, "t"), Error);
  const auto observer = percentile.observer(device(), {}, "hidden");
  EXPECT_THAT([&] { observer->range(); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("'hidden'")));
  EXPECT_THAT(
      [&] {
        observer->observe(upload(std::vector<float>{1, kNan}), 2);
      },
      testing::ThrowsMessage<Error>(testing::HasSubstr("'hidden'")));
}

TEST(Histogram, StaysBoundedWhenTheRangeExplodes) {
  for (const bool absolute : {true, false}) {
    Histogram h(16, absolute, 64);
    h.extend({-1.0f, 1.0f, 0.0f});
    std::vector<std::uint32_t> counts(16, 3);
    h.add(counts);
    for (const float largest : {100.0f, 101.0f, 1e6f, 1e30f}) {
      h.extend({-largest, largest, 0.0f});
      EXPECT_LE(h.counts().size(), 64u);
      EXPECT_GE(h.edges().back(), largest);
      EXPECT_TRUE(std::is_sorted(h.edges().begin(), h.edges().end()));
      std::uint64_t total = 0;
      for (const auto c : h.counts()) total += c;
      EXPECT_EQ(total, 48u);
    }
    EXPECT_TRUE(h.coarsened());
  }
}

TEST(Methods, AreFoundByName) {
  EXPECT_EQ(&method("percentile"), &method("percentile"));
  EXPECT_EQ(method("minmax").name, "minmax");
  EXPECT_THAT([] { method("maximum"); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("minmax, percentile")));
}

}  // namespace
}  // namespace bertcl::quant
