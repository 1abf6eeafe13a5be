// SPDX-License-Identifier: Apache-2.0
// MSE against its definition, bin by bin and bound by bound.
#include <algorithm>
#include <cmath>

#include "bertcl/error.hpp"
#include "quant/calibration/observer.hpp"
#include "tests/quant/observed.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::quant::tests {
namespace {

MethodOptions with(int bins, Scheme scheme) {
  MethodOptions options;
  options.bins = bins;
  options.scheme = scheme;
  return options;
}

/// `_compute_amax_mse` of pytorch-quantization for 8 bits.
float plain_bound(const Histogram& h, std::size_t start, std::size_t stride) {
  double least = std::numeric_limits<double>::infinity();
  float bound = 0;
  const auto centres = h.centres();
  for (std::size_t i = start; i < centres.size(); i += stride) {
    const float scale = 127.0f / centres[i];
    double error = 0;
    for (std::size_t k = 0; k < centres.size(); ++k) {
      const float q = std::clamp(std::nearbyint(centres[k] * scale), -128.0f, 127.0f) / scale;
      const double d = static_cast<double>(q) - static_cast<double>(centres[k]);
      error += d * d * static_cast<double>(h.counts()[k]);
    }
    if (error < least) least = error, bound = centres[i];
  }
  return bound;
}

TEST(Mse, SymmetricIsItsDefinition) {
  for (const auto& data : {batches(), peaked_batches()})
    for (const auto& [bins, start, stride] :
         {std::tuple{129, 128, 1}, {500, 128, 1}, {300, 1, 1}, {777, 140, 5}}) {
      MethodOptions options = with(bins, {ir::DType::i8, true});
      options.start_bin = start;
      options.stride = stride;
      const float bound =
          plain_bound(histogram_of(data, bins, Binning::from_zero), static_cast<std::size_t>(start),
                      static_cast<std::size_t>(stride));
      EXPECT_EQ(range_by("mse", options, data), (Range{-bound, bound})) << bins;
    }
}

TEST(Mse, TheLargestFloatsHaveARange) {
  constexpr float largest = std::numeric_limits<float>::max();
  for (const bool symmetric : {true, false}) {
    const Range range =
        range_by("mse", with(256, {ir::DType::i8, symmetric}), {{-largest, 1.0f, 2.0f, -3.0f}});
    EXPECT_TRUE(std::isfinite(range.high)) << symmetric;
    EXPECT_LT(range.low, -0.9f * largest) << symmetric;
  }
}

/// What quantizing the centres with a range costs.
double plain_error(const Histogram& h, Range range, Scheme scheme) {
  const Parameters p = parameters_of(range, scheme);
  const auto centres = h.centres();
  double error = 0;
  for (std::size_t k = 0; k < centres.size(); ++k) {
    const float back =
        static_cast<float>(quantize_value(centres[k], p, scheme.type) - p.zero_point) * p.scale;
    const double d = static_cast<double>(back) - static_cast<double>(centres[k]);
    error += d * d * static_cast<double>(h.counts()[k]);
  }
  return error;
}

/// Least over all pairs of edges.
double min_error(const Histogram& h, Scheme scheme) {
  std::vector<float> lows{std::min(0.0f, h.bounds().low)}, highs{std::max(0.0f, h.bounds().high)};
  for (const float e : h.edges()) {
    if (e < 0 && e >= h.bounds().low) lows.push_back(e);
    if (e > 0 && e <= h.bounds().high) highs.push_back(e);
  }
  double least = std::numeric_limits<double>::infinity();
  for (const float low : lows)
    for (const float high : highs) least = std::min(least, plain_error(h, {low, high}, scheme));
  return least;
}

// The search goes along one bound at a time; all pairs are the reference.
TEST(Mse, AsymmetricFindsTheBestPairOrOneAsGood) {
  for (const ir::DType type : {ir::DType::u8, ir::DType::i8})
    for (unsigned seed = 0; seed < 4; ++seed) {
      std::vector data{bertcl::tests::normal_values(3000, seed),
                       bertcl::tests::normal_values(3000, seed + 20, 1.5f)};
      for (auto& x : data)
        for (float& v : x) {
          if (seed % 2 == 1 && v < 0) v *= 0.2f;  // as GELU leaves it
          v = v * v * v;
        }
      const Scheme scheme{type, false};
      const Histogram h = histogram_of(data, 128, Binning::two_sided);
      const MethodOptions options = with(128, scheme);
      const Range range = range_by("mse", options, data);
      const double found = plain_error(h, range, scheme), best = min_error(h, scheme);
      EXPECT_LE(found, 1.05 * best)
          << ir::name_of(type) << ", seed " << seed << ": " << range.low << " .. " << range.high;
      EXPECT_LT(found, plain_error(h, {h.bounds().low, h.bounds().high}, scheme))
          << "clipping pays on these values";
    }
}

TEST(Mse, FollowsTheIntegersUnlessToldOtherwise) {
  MethodOptions options = with(512, {ir::DType::u8, false});
  const Range two = range_by("mse", options, peaked_batches());
  EXPECT_NE(two.low, -two.high);
  options.symmetric = true;  // one bound, cut to what was seen for asymmetric integers
  const Range one = range_by("mse", options, batches());
  EXPECT_EQ(one.low, -0x1.8ep+1f);
  EXPECT_GT(one.high, 20.0f);
}

TEST(Mse, ConstantTensors) {
  for (const float value : {0.0f, 3.3f, -1e-20f, 1e30f})
    for (const Scheme scheme : {Scheme{ir::DType::u8, false}, Scheme{ir::DType::i8, true}})
      for (const Method& m : methods()) {
        MethodOptions options;
        options.scheme = scheme;
        const Range range = range_by(m.name, options, {std::vector<float>(50, value)});
        EXPECT_LE(range.low, range.high) << m.name << " " << value;
        EXPECT_TRUE(std::isfinite(range.low) && std::isfinite(range.high)) << m.name;
        EXPECT_NO_THROW(parameters_of(range, scheme)) << m.name << " " << value;
      }
}

TEST(Mse, NamesTheFault) {
  MethodOptions options = with(128, {ir::DType::i8, true});
  EXPECT_ERROR(HasSubstr("'start_bin' is 128 and must be 1 to 127"),
               method("mse").observer(device(), options, "t"));
  options.bins = 2048;
  options.stride = 0;
  EXPECT_THROW(method("mse").observer(device(), options, "t"), Error);
  EXPECT_ERROR(HasSubstr("'hidden'"), method("mse").observer(device(), {}, "hidden")->range());
}

}  // namespace
}  // namespace bertcl::quant::tests
