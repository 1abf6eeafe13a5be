// SPDX-License-Identifier: Apache-2.0
// Element conversion against the definition, for every half there is.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "bertcl/error.hpp"
#include "ir/tensor.hpp"

namespace bertcl::ir {
namespace {

TEST(Half, EveryHalfSurvivesTheRoundTrip) {
  for (std::uint32_t h = 0; h < 0x10000u; ++h) {
    const auto half = static_cast<std::uint16_t>(h);
    const float f = half_to_float(half);
    if ((h & 0x7fffu) > 0x7c00u) {
      EXPECT_TRUE(std::isnan(f));
      continue;
    }
    const int exponent = (h >> 10) & 31;
    const double mantissa = h & 0x3ffu;
    double expected =
        exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
    if (exponent == 31) expected = std::numeric_limits<double>::infinity();
    ASSERT_EQ(f, static_cast<float>(h & 0x8000u ? -expected : expected)) << h;
    ASSERT_EQ(float_to_half(f), half);
  }
}

TEST(Half, RoundsToNearestEven) {
  for (std::uint32_t h = 0; h < 0x7bffu; ++h) {
    const auto low = static_cast<std::uint16_t>(h), high = static_cast<std::uint16_t>(h + 1);
    const float middle = (half_to_float(low) + half_to_float(high)) / 2;
    ASSERT_EQ(float_to_half(middle), h % 2 == 0 ? low : high) << h;
    ASSERT_EQ(float_to_half(std::nextafter(middle, 1e9f)), high);
    ASSERT_EQ(float_to_half(std::nextafter(middle, -1e9f)), low);
  }
  EXPECT_EQ(float_to_half(65520.0f), 0x7c00u);
  EXPECT_EQ(float_to_half(65519.0f), 0x7bffu);
}

TEST(Tensor, Conversion) {
  const Tensor t = Tensor::of<float>({4}, {-1.5f, 0.0f, 3.9f, 250.0f});
  EXPECT_EQ(t.converted(DType::i32).to_ints(), (std::vector<std::int64_t>{-1, 0, 3, 250}));
  EXPECT_EQ(t.converted(DType::boolean).to_ints(), (std::vector<std::int64_t>{1, 0, 1, 1}));
  EXPECT_EQ(t.converted(DType::bf16).to_doubles(), (std::vector<double>{-1.5, 0, 3.90625, 250}));
  EXPECT_THROW(t.as<std::int32_t>(), Error);
}

TEST(Tensor, BytesMustFitTheShape) {
  const auto owner = std::make_shared<std::vector<float>>(5);
  EXPECT_THROW(Tensor(DType::f32, {2, 3}, owner, std::as_bytes(std::span(*owner))), Error);
}

}  // namespace
}  // namespace bertcl::ir
