// SPDX-License-Identifier: Apache-2.0
// Scale, zero point and integers against numbers of onnxruntime 1.31.1.
#include <array>
#include <cmath>
#include <limits>

#include "bertcl/error.hpp"
#include "quant/calibration/parameters.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::quant::tests {
namespace {

using ir::DType;

struct Case {
  float low, high;
  std::array<Parameters, 4> expected;  // u8, symmetric u8, i8, symmetric i8
};

// compute_scale_zp(low, high, *get_qmin_qmax_for_qType(type, False, symmetric), symmetric)
// of onnxruntime.quantization.quant_utils, onnxruntime 1.31.1, numpy 2.4.6.
const Case kCases[] = {
    {0.0f, 0.0f, {{{1.0f, 0}, {1.0f, 0}, {1.0f, 0}, {1.0f, 0}}}},
    {-1.0f,
     1.0f,
     {{{0x1.010102p-7f, 128}, {0x1.010102p-7f, 128}, {0x1.010102p-7f, 0}, {0x1.020408p-7f, 0}}}},
    {-0.1f,
     2.7f,
     {{{0x1.67ce36p-7f, 9}, {0x1.5af48ep-6f, 128}, {0x1.67ce36p-7f, -119}, {0x1.5c523ep-6f, 0}}}},
    {0.3f,
     6.1f,
     {{{0x1.87ee54p-6f, 0}, {0x1.87ee54p-5f, 128}, {0x1.87ee54p-6f, -128}, {0x1.897958p-5f, 0}}}},
    {-5.25f,
     -1.0f,
     {{{0x1.515152p-6f, 255}, {0x1.515152p-5f, 128}, {0x1.515152p-6f, 127}, {0x1.52a54ap-5f, 0}}}},
    {-3.4e38f,
     3.4e38f,
     {{{0x1.00ca68p+121f, 127},
       {0x1.00ca68p+121f, 128},
       {0x1.00ca68p+121f, -1},
       {0x1.01cd38p+121f, 0}}}},
    {0.0f, 1e-38f, {{{1.0f, 0}, {1.0f, 0}, {1.0f, 0}, {1.0f, 0}}}},
    {0.0f,
     1e-35f,
     {{{0x1.ab0562p-125f, 0},
       {0x1.ab0562p-124f, 128},
       {0x1.ab0562p-125f, -128},
       {0x1.acb3c4p-124f, 0}}}},
    {-21.7f,
     0.013f,
     {{{0x1.5cc538p-4f, 255}, {0x1.5c8fc4p-3f, 128}, {0x1.5cc538p-4f, 127}, {0x1.5def12p-3f, 0}}}},
    {-0.001f,
     255.0f,
     {{{0x1.000042p+0f, 0}, {0x1p+1f, 128}, {0x1.000042p+0f, -128}, {0x1.010204p+1f, 0}}}},
    {0.0f,
     1.0f,
     {{{0x1.010102p-8f, 0}, {0x1.010102p-7f, 128}, {0x1.010102p-8f, -128}, {0x1.020408p-7f, 0}}}},
    {-127.5f, 127.5f, {{{1.0f, 128}, {1.0f, 128}, {1.0f, 0}, {0x1.010204p+0f, 0}}}},
    {0.1f,
     0.1f,
     {{{0x1.9b34cep-12f, 0},
       {0x1.9b34cep-11f, 128},
       {0x1.9b34cep-12f, -128},
       {0x1.9cd34p-11f, 0}}}},
    {-0.70710678f,
     13.999f,
     {{{0x1.d870dep-5f, 12}, {0x1.c1b988p-4f, 128}, {0x1.d870dep-5f, -116}, {0x1.c37eccp-4f, 0}}}},
};

TEST(Parameters, AreThoseOfOnnxruntime) {
  const Scheme schemes[] = {
      {DType::u8, false}, {DType::u8, true}, {DType::i8, false}, {DType::i8, true}};
  for (const Case& c : kCases)
    for (std::size_t s = 0; s < 4; ++s) {
      const Parameters p = parameters_of({c.low, c.high}, schemes[s]);
      EXPECT_EQ(p.scale, c.expected[s].scale) << c.low << " .. " << c.high << " scheme " << s;
      EXPECT_EQ(p.zero_point, c.expected[s].zero_point)
          << c.low << " .. " << c.high << " scheme " << s;
    }
}

// compute_scale_zp with min_real_range, of the same onnxruntime.
TEST(Parameters, OfShortRangesAreThoseOfOnnxruntime) {
  struct Short {
    Range range;
    float shortest;
    Parameters u8, i8;
  };
  for (const Short& c : {Short{{-0.01f, 0.02f}, 0.1f, {0x1.9b34dp-12f, 25}, {0x1.738aeep-11f, 0}},
                         Short{{0, 0}, 1e-4f, {0x1.a51342p-22f, 0}, {0x1.a6bba6p-21f, 0}},
                         Short{{-3, 1}, 2.5f, {0x1.010102p-6f, 191}, {0x1.83060cp-6f, 0}},
                         Short{{-0.3f, -0.2f}, 1, {0x1.010102p-8f, 77}, {0x1.6938d8p-8f, 0}}}) {
    EXPECT_EQ(parameters_of(c.range, {.type = DType::u8, .min_range = c.shortest}), c.u8);
    EXPECT_EQ(parameters_of(c.range, {DType::i8, true, Steps::standard, 8, c.shortest}), c.i8);
  }
}

TEST(Parameters, RefusesWhatIsNoRange) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const Range r : {Range{1.0f, -1.0f}, Range{-inf, 1.0f}, Range{0.0f, NAN}})
    EXPECT_THROW(parameters_of(r, {}), Error) << r.low << " .. " << r.high;
  EXPECT_THROW(parameters_of({0, 1}, {DType::i32, false}), Error);
}

TEST(QuantizeValue, RoundsHalfToEvenThenAddsZeroPointThenSaturates) {
  const Parameters p{0.5f, 3};
  EXPECT_EQ(quantize_value(0.25f, p, DType::u8), 3);   // 0.5 -> 0
  EXPECT_EQ(quantize_value(0.75f, p, DType::u8), 5);   // 1.5 -> 2
  EXPECT_EQ(quantize_value(-0.25f, p, DType::u8), 3);  // -0.5 -> 0
  EXPECT_EQ(quantize_value(-100.0f, p, DType::u8), 0);
  EXPECT_EQ(quantize_value(1e30f, p, DType::u8), 255);
  EXPECT_EQ(quantize_value(-1e30f, p, DType::i8), -128);
  EXPECT_EQ(quantize_value(1e30f, p, DType::i8), 127);
}

// Columns of quantize_data(w[:, c], INT8, symmetric) of the same onnxruntime. The middle column is
// zero: scale 1.
TEST(PerChannel, IsThatOfOnnxruntime) {
  std::vector<float> w(12);
  for (int i = 0; i < 12; ++i)
    w[static_cast<std::size_t>(i)] =
        i % 3 == 1 ? 0.0f : static_cast<float>((i * 37) % 101 - 50) / 16.0f;
  const auto q = quantize_per_channel(ir::Tensor::of<float>({4, 3}, w), 1, "w");
  EXPECT_THAT(q.scales, ElementsAre(0x1.93264cp-6f, 1.0f, 0x1.7af5ecp-6f));
  EXPECT_THAT(q.zero_points, Each(0));
  EXPECT_EQ(q.zero_channels, 1);
  EXPECT_EQ(q.values.shape(), (ir::Sizes{4, 3}));
  EXPECT_THAT(q.values.as<std::int8_t>(),
              ElementsAre(-127, 0, 65, -102, 0, 92, -76, 0, 119, -51, 0, -127));
}

TEST(PerChannel, FirstAndMiddleAxis) {
  const auto t = ir::Tensor::of<float>({2, 2, 2}, {1, -2, 4, 8, 16, 32, -64, 127});
  EXPECT_THAT(quantize_per_channel(t, 0, "t").values.as<std::int8_t>(),
              ElementsAre(16, -32, 64, 127, 16, 32, -64, 127));
  EXPECT_THAT(quantize_per_channel(t, 1, "t").scales,
              ElementsAre(static_cast<float>(32.0 / 127), 1.0f));
}

TEST(PerChannel, NamesWhatItCannotQuantize) {
  const auto good = ir::Tensor::of<float>({2, 2}, {1, 2, 3, 4});
  EXPECT_ERROR(HasSubstr("'w'"), quantize_per_channel(good, 2, "w"));
  const auto bad = ir::Tensor::of<float>({2}, {1, NAN});
  EXPECT_ERROR(HasSubstr("at index 1"), quantize_per_channel(bad, 0, "w"));
  EXPECT_THROW(quantize_per_channel(good.converted(DType::f16), 0, "w"), Error);
}

TEST(FewerBits, NoIntegerIsBeyondThem) {
  const auto t = ir::Tensor::of<float>({3}, {-3.5f, 11.5f, 4.0f});  // the ends are ties
  EXPECT_THAT(quantize_per_tensor(t, {DType::i8, false, Steps::standard, 4}, "t").values.to_ints(),
              Each(AllOf(testing::Ge(-8), testing::Le(7))));
  EXPECT_THAT(quantize_per_tensor(t, {DType::i8, true, Steps::standard, 4}, "t", Range{-1, 1})
                  .values.to_ints(),
              ElementsAre(-7, 7, 7));
  EXPECT_ERROR(HasSubstr("cannot be combined with 4 bits"),
               saturation_of({DType::i8, true, Steps::reduced, 4}));
}

TEST(PerTensor, UsesTheActivationType) {
  const auto t = ir::Tensor::of<float>({5}, {-1.0f, 0.0f, 0.5f, 1.5f, 1.55f});
  const auto q = quantize_per_tensor(t, {DType::u8, false}, "t");  // scale 0.01
  EXPECT_EQ(q.axis, -1);
  EXPECT_THAT(q.scales, ElementsAre(static_cast<float>((1.0 + 1.55f) / 255)));
  EXPECT_THAT(q.zero_points, ElementsAre(100));
  EXPECT_THAT(q.values.as<std::uint8_t>(), ElementsAre(0, 100, 150, 250, 255));
  EXPECT_EQ(quantize_per_tensor(ir::Tensor::of<float>({2}, {0, 0}), {DType::i8, true}, "z").scales,
            std::vector<float>{1.0f});
}

}  // namespace
}  // namespace bertcl::quant::tests
