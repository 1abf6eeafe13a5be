// SPDX-License-Identifier: Apache-2.0
// Weight scales of least squared error against a search that takes one value after the other.
#include <algorithm>
#include <limits>
#include <random>

#include "quant/encoding/encode.hpp"
#include "quant/encoding/weight_scale.hpp"
#include "tests/quant/graphs.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::quant::tests {
namespace {

using ir::DType;

/// A matrix of normal numbers with a few that are `outlier` times as large.
ir::Tensor random_matrix(std::int64_t rows, std::int64_t columns, unsigned seed,
                         float outlier = 6.0f) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0.01f, 0.1f);
  std::vector<float> values(static_cast<std::size_t>(rows * columns));
  for (float& x : values) x = normal(generator) * (generator() % 97 == 0 ? outlier : 1.0f);
  return ir::Tensor::of<float>({rows, columns}, std::move(values));
}

/// Integer of one value: the parameters' meaning, saturated by hand.
std::int32_t integer_of(float x, Parameters p, Scheme scheme) {
  std::int32_t low = scheme.type == DType::i8 ? -128 : 0, high = low + 255;
  if (scheme.steps == Steps::reduced) {
    low = scheme.type == DType::i8 ? -64 : 0;
    high = scheme.type == DType::i8 ? 64 : 127;
  } else if (scheme.bits < 8) {
    const std::int32_t middle = scheme.type == DType::i8 ? 0 : 128, half = 1 << (scheme.bits - 1);
    low = middle - half + (scheme.symmetric ? 1 : 0);
    high = middle + half - 1;
  }
  return std::clamp(quantize_value(x, p, scheme.type), low, high);
}

double error_of(const std::vector<float>& values, Parameters p, Scheme scheme) {
  double sum = 0.0;
  for (const float x : values) {
    const double back = static_cast<float>(integer_of(x, p, scheme) - p.zero_point) * p.scale;
    sum += (back - x) * (back - x);
  }
  return sum;
}

/// The best of all parts of the range, the larger one of equals.
Parameters best_of(const std::vector<float>& values, Scheme scheme) {
  Range range;
  for (const float x : values) range = {std::min(range.low, x), std::max(range.high, x)};
  double least = std::numeric_limits<double>::infinity();
  Parameters best;
  for (int percent = 100; percent >= 20; --percent) {
    const float part = static_cast<float>(percent) / 100.0f;
    const Parameters p = parameters_of({range.low * part, range.high * part}, scheme);
    if (const double e = error_of(values, p, scheme); e < least) least = e, best = p;
  }
  return best;
}

std::vector<float> channel(const ir::Tensor& matrix, int axis, std::int64_t c) {
  const auto all = matrix.as<float>();
  const std::int64_t columns = matrix.shape()[1];
  std::vector<float> values;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(all.size()); ++i)
    if (axis < 0 || (axis == 0 ? i / columns : i % columns) == c)
      values.push_back(all[static_cast<std::size_t>(i)]);
  return values;
}

const std::vector<Scheme> kAllSchemes = {{DType::i8, true},
                                         {DType::i8, true, Steps::full},
                                         {DType::i8, true, Steps::reduced},
                                         {DType::i8, false},
                                         {DType::i8, true, {}, 4},
                                         {DType::i8, true, {}, 2},
                                         {DType::u8, true},
                                         {DType::u8, false},
                                         {DType::u8, false, Steps::reduced},
                                         {DType::u8, true, {}, 5}};

class WeightScales : public testing::TestWithParam<int> {};

TEST_P(WeightScales, AreThoseOfASlowSearch) {
  const int axis = GetParam();
  unsigned seed = 0;
  for (const Scheme given : kAllSchemes)
    for (const auto& [rows, columns] :
         {std::pair<std::int64_t, std::int64_t>{1, 1}, {1, 7}, {37, 5}, {64, 3}}) {
      SCOPED_TRACE(testing::Message()
                   << ir::name_of(given.type) << " symmetric " << given.symmetric << " bits "
                   << given.bits << " steps " << static_cast<int>(given.steps) << ", " << rows
                   << " x " << columns);
      Scheme scheme = given;
      if (axis >= 0) scheme.symmetric = true;
      const ir::Tensor matrix = random_matrix(rows, columns, ++seed);
      const QuantizedConstant found = quantize_by_min_error(matrix, axis, "w", given);
      const std::int64_t count = axis < 0 ? 1 : axis == 0 ? rows : columns;
      ASSERT_EQ(static_cast<std::int64_t>(found.scales.size()), count);
      ASSERT_EQ(found.values.dtype(), scheme.type);
      EXPECT_EQ(found.axis, axis);
      const auto integers = found.values.to_ints();
      for (std::int64_t c = 0; c < count; ++c) {
        const auto at = static_cast<std::size_t>(c);
        const Parameters p{found.scales[at], found.zero_points[at]};
        EXPECT_EQ(p, best_of(channel(matrix, axis, c), scheme)) << "channel " << c;
      }
      for (std::size_t i = 0; i < integers.size(); ++i) {
        const auto place = static_cast<std::int64_t>(i);
        const auto c = static_cast<std::size_t>(axis < 0    ? 0
                                                : axis == 0 ? place / columns
                                                            : place % columns);
        ASSERT_EQ(integers[i], integer_of(matrix.as<float>()[i],
                                          {found.scales[c], found.zero_points[c]}, scheme))
            << "at " << i;
      }
    }
}
INSTANTIATE_TEST_SUITE_P(Axes, WeightScales, testing::Values(-1, 0, 1));

TEST(WeightScale, ClipsWhatCostsMoreThanItHolds) {
  std::vector<float> values(4000);
  std::mt19937 generator(1);
  std::uniform_real_distribution<float> uniform(-1.0f, 1.0f);
  for (float& x : values) x = uniform(generator);
  values[17] = 2.0f;
  const ir::Tensor weight = ir::Tensor::of<float>({4000, 1}, values);
  const Scheme four_bits{DType::i8, true, {}, 4};
  const auto clipped = quantize_by_min_error(weight, 1, "w", four_bits);
  EXPECT_NEAR(clipped.scales[0], 1.0f / 7.0f, 0.02f) << "one of 4,000 values is clipped";
  EXPECT_EQ(clipped.values.to_ints()[17], 7);
  EXPECT_EQ(quantize_per_channel(weight, 1, "w", four_bits).scales[0], 2.0f / 7.0f);
  const auto fine = quantize_by_min_error(weight, 1, "w", {DType::i8, true});
  EXPECT_EQ(fine.scales[0], 2.0f / 127.0f) << "in 8 bits clipping costs more than coarse steps";
}

TEST(WeightScale, ZerosHaveTheScaleOne) {
  const ir::Tensor weight = ir::Tensor::of<float>({2, 2}, {0, 1, 0, -2});
  const auto found = quantize_by_min_error(weight, 1, "w", {DType::i8, true});
  EXPECT_EQ(found.scales[0], 1.0f);
  EXPECT_EQ(found.zero_channels, 1);
}

TEST(WeightScale, RefusesAsOtherScalesDo) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto quantized = [](const ir::Tensor& weight, int axis) {
    return quantize_by_min_error(weight, axis, "w", {DType::i8, true});
  };
  EXPECT_ERROR(HasSubstr("'w' holds nan at index 1"),
               quantized(ir::Tensor::of<float>({2}, {1, nan}), -1));
  EXPECT_ERROR(HasSubstr("no axis 1"), quantized(ir::Tensor::of<float>({2}, {1, 2}), 1));
}

/// Of x -> MatMul(w) -> y.
QuantizedConstant encoded(const ir::Tensor& weight, const WeightOptions& options,
                          const Ranges& more = {}) {
  const auto all = weight.as<float>();
  const std::int64_t k = weight.shape()[0], n = weight.shape()[1];
  GraphBuilder g;
  g.input("x", {2, k});
  g.node("MatMul", {"x", g.weight("w", {k, n}, {all.begin(), all.end()})}, "y");
  g.output("y");
  Analysed a(std::move(g));
  Placement p = place(a);
  Ranges ranges = more;
  ranges["x"] = {-1.0f, 1.0f};
  return encode(p, a.index, a.constants, ranges, {{DType::u8, false}, options})
      .at({"w", Role::weight})
      .constant;
}

TEST(WeightScale, IsAnOptionOfWeights) {
  const ir::Tensor weight = random_matrix(40, 3, 5, 20.0f);
  WeightOptions options;
  options.scheme.bits = 4;
  EXPECT_EQ(encoded(weight, options).scales,
            quantize_per_channel(weight, 1, "w", options.scheme).scales);
  options.scale = WeightScale::mse;
  const auto least = quantize_by_min_error(weight, 1, "w", options.scheme);
  EXPECT_EQ(encoded(weight, options).scales, least.scales);
  EXPECT_EQ(encoded(weight, options).values.to_ints(), least.values.to_ints());
  options.per_channel = false;
  EXPECT_EQ(encoded(weight, options).scales,
            quantize_by_min_error(weight, -1, "w", options.scheme).scales);
  EXPECT_EQ(encoded(weight, options, {{"w", {-7.0f, 7.0f}}}).scales, std::vector<float>{1.0f})
      << "a range that is known comes first";
}

}  // namespace
}  // namespace bertcl::quant::tests
