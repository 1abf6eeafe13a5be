// SPDX-License-Identifier: Apache-2.0
// Ranges on the device against plain C++.
#include <algorithm>
#include <cmath>

#include "bertcl/error.hpp"
#include "quant/calibration/device_min_max.hpp"
#include "quant/calibration/observer.hpp"
#include "tests/quant/observed.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::quant::tests {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

TEST(DeviceMinMax, AnySizeAndAnyPlace) {
  for (const std::size_t size : {1, 15, 16, 17, 4095, 4096, 4097, 100003}) {
    auto x = bertcl::tests::normal_values(size, 1);
    for (const std::size_t place : {std::size_t{0}, size / 2, size - 1}) {
      auto y = x;
      y[place] = 9.0f;
      y[size - 1 - place] = size == 1 ? 9.0f : -8.0f;
      DeviceMinMax range(device(), "t");
      const ElementRange all{0, size};
      range.add(upload(y), {&all, 1});
      const ValueBounds e = range.read();
      const auto [low, high] = std::minmax_element(y.begin(), y.end());
      EXPECT_EQ(e.low, *low) << size;
      EXPECT_EQ(e.high, *high) << size;
      float nearest = kInf;
      for (const float v : y) nearest = std::min(nearest, std::abs(v));
      EXPECT_EQ(e.nearest, nearest) << size;
    }
  }
}

TEST(DeviceMinMax, JoinsSamplesAndMeasuresEach) {
  const auto x = upload(std::vector<float>{99, 2, 3, -1, 1, 99, 7});
  DeviceMinMax range(device(), "t");
  const std::vector<ElementRange> first{{1, 2}}, more{{3, 2}, {6, 0}};  // the 99s lie between
  range.add(x, first);
  range.add(x, more);
  EXPECT_EQ(range.read().low, -1.0f);
  EXPECT_EQ(range.read().high, 3.0f);
  const std::vector<ElementRange> each{{6, 1}, {1, 3}, {0, 0}, {2, 3}, {0, 7}};
  const auto extents = range.measure(x, each);
  ASSERT_EQ(extents.size(), each.size());
  EXPECT_EQ(extents[0].low, 7.0f);
  EXPECT_EQ(extents[1].low, -1.0f);
  EXPECT_EQ(extents[1].high, 3.0f);
  EXPECT_EQ(extents[3].nearest, 1.0f);
  EXPECT_EQ(extents[4].high, 99.0f);
  EXPECT_EQ(range.read().high, 3.0f) << "measuring leaves the running bounds alone";
}

TEST(MinMax, IsTheRangeOfAllBatches) {
  float low = kInf, high = -kInf;
  for (const auto& x : batches())
    for (const float v : x) low = std::min(low, v), high = std::max(high, v);
  EXPECT_EQ(range_by("minmax", {}), (Range{low, high}));
}

TEST(MinMax, NamesATensorWithoutRange) {
  const auto message = [](const std::vector<float>& x) {
    const auto observer = method("minmax").observer(device(), {}, "hidden");
    if (!x.empty()) observe(*observer, x);
    return error_of([&] { observer->range(); });
  };
  EXPECT_THAT(message({}), AllOf(HasSubstr("'hidden'"), HasSubstr("no calibration sample")));
  EXPECT_THAT(message({1, kNan, 2}), HasSubstr("NaN"));
  EXPECT_THAT(message({1, -kInf, 2}), HasSubstr("infinite"));
  EXPECT_EQ(message({1, 2}), kNoError);
}

TEST(MinMax, Symmetric) {
  MethodOptions options;
  options.symmetric = true;
  const Range all = range_by("minmax", {}), range = range_by("minmax", options);
  EXPECT_EQ(range.high, std::max(-all.low, all.high));
  EXPECT_EQ(range.low, -range.high);
}

// `MinMaxCalibrater` given moving_average: means within a call of collect_data, then the average
// moves.
TEST(MinMax, MovingAverage) {
  for (const int together : {0, 1, 2, 5, 9})
    for (const bool symmetric : {false, true})
      for (const double constant : {0.0, 0.01, 0.3, 1.0}) {
        MethodOptions options;
        options.moving_average = true;
        options.averaging_constant = constant;
        options.averaged_samples = together;
        options.symmetric = symmetric;
        const auto data = batches();
        const std::size_t call = together == 0 ? data.size() : static_cast<std::size_t>(together);
        double low = 0, high = 0;
        for (std::size_t i = 0; i < data.size(); i += call) {
          const std::size_t end = std::min(i + call, data.size());
          double l = 0, h = 0;
          for (std::size_t k = i; k < end; ++k) {
            l += bounds_of(data[k]).low / static_cast<double>(end - i);
            h += bounds_of(data[k]).high / static_cast<double>(end - i);
          }
          if (symmetric) h = std::max(-l, h), l = -h;
          low = i == 0 ? l : low + constant * (l - low);
          high = i == 0 ? h : high + constant * (h - high);
        }
        const Range range = range_by("minmax", options);
        EXPECT_NEAR(range.low, low, 1e-6 * std::abs(low)) << together << " " << constant;
        EXPECT_NEAR(range.high, high, 1e-6 * std::abs(high)) << together << " " << constant;
      }
}

TEST(MinMax, MovingAverageNamesTheFault) {
  MethodOptions options;
  options.moving_average = true;
  EXPECT_ERROR(HasSubstr("'hidden'"),
               method("minmax").observer(device(), options, "hidden")->range());
  options.averaging_constant = 1.5;
  EXPECT_THROW(method("minmax").observer(device(), options, "t"), Error);
  options = {};
  options.moving_average = true;
  options.averaged_samples = -1;
  EXPECT_THROW(method("minmax").observer(device(), options, "t"), Error);
}

}  // namespace
}  // namespace bertcl::quant::tests
