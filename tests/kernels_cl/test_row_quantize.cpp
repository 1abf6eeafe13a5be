// SPDX-License-Identifier: Apache-2.0
// quantize and dequantize against plain C++: per tensor, per axis, ties, ends.
#include "device_test.hpp"
#include "kernels/contracts/quantize.hpp"

namespace bertcl::tests {
namespace {

struct AxisView {
  int32_t outer, axis, inner;
  size_t count() const {
    return static_cast<size_t>(outer) * static_cast<size_t>(axis) * static_cast<size_t>(inner);
  }
  size_t at(size_t i) const { return i / static_cast<size_t>(inner) % static_cast<size_t>(axis); }
};

template <typename T>
std::vector<T> quantize(const std::vector<float>& x, const AxisView& view,
                        const std::vector<float>& scales, const std::vector<T>& zero_points,
                        int32_t chunk) {
  Output<T> out(x.size());
  run("quantize", "quantize", ceil_div(x.size(), static_cast<size_t>(chunk)),
      kernels::Quantize<KernelArgument>{
          .x = upload(x),
          .y = out.buffer(),
          .y_type = std::is_signed_v<T> ? kS8 : kU8,
          .scales = upload(scales),
          .zero_points = zero_points.empty() ? opencl::Buffer{} : upload(zero_points),
          .count = static_cast<int32_t>(x.size()),
          .axis = view.axis,
          .inner = view.inner,
          .chunk = chunk});
  return out.values();
}

template <typename T>
void expect_round_trip(const AxisView& view, int32_t chunk) {
  SCOPED_TRACE(std::to_string(view.outer) + " x " + std::to_string(view.axis) + " x " +
               std::to_string(view.inner) + ", chunk " + std::to_string(chunk));
  const auto x = normal_values(view.count(), 1, 3.0f);
  const auto axis = static_cast<size_t>(view.axis);
  std::vector<float> scales = normal_values(axis, 2);
  for (float& scale : scales) scale = 0.01f + std::abs(scale) * 0.02f;
  const auto zero_points =
      integers<T>(axis, 3, std::numeric_limits<T>::min(), std::numeric_limits<T>::max());
  std::vector<T> expected;
  std::vector<double> back;
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t a = view.at(i);
    expected.push_back(
        static_cast<T>(quantized(x[i] / scales[a], zero_points[a], std::is_signed_v<T>)));
    back.push_back(static_cast<double>(scales[a]) * (expected.back() - zero_points[a]));
  }
  expect_quantized(quantize(x, view, scales, zero_points, chunk), expected, "quantize");

  Output<float> out(x.size());
  run("quantize", "dequantize", ceil_div(x.size(), static_cast<size_t>(chunk)),
      kernels::Dequantize<KernelArgument>{.x = upload(expected),
                                          .x_type = std::is_signed_v<T> ? kS8 : kU8,
                                          .y = out.buffer(),
                                          .scales = upload(scales),
                                          .zero_points = upload(zero_points),
                                          .count = static_cast<int32_t>(x.size()),
                                          .axis = view.axis,
                                          .inner = view.inner,
                                          .chunk = chunk});
  expect_close(out.values(), back, "dequantize");
}

TEST(Quantize, PerTensorAndPerAxis) {
  for (const AxisView& view : {AxisView{1, 1, 1}, AxisView{1, 1, 1000}, AxisView{3, 7, 33},
                               AxisView{1, 64, 5}, AxisView{9, 40, 1}, AxisView{2, 3, 257}})
    for (int32_t chunk : {1, 16, 50, 100000}) {
      expect_round_trip<int8_t>(view, chunk);
      expect_round_trip<uint8_t>(view, chunk);
    }
}

TEST(Quantize, TiesGoToEvenAndEndsSaturate) {
  const std::vector<float> x{0.5f,      1.5f,   2.5f,  -0.5f,    -1.5f,   -2.5f,
                             126.5f,    127.5f, 1e30f, -1e30f,   -128.5f, INFINITY,
                             -INFINITY, 0.0f,   -0.0f, 3.49999f, 254.5f,  300.0f};
  const AxisView view{1, 1, static_cast<int32_t>(x.size())};
  expect_equal(quantize<int8_t>(x, view, {1.0f}, {}, 100),
               {0, 2, 2, 0, -2, -2, 126, 127, 127, -128, -128, 127, -128, 0, 0, 3, 127, 127}, "s8");
  expect_equal(quantize<uint8_t>(x, view, {1.0f}, {}, 100),
               {0, 2, 2, 0, 0, 0, 126, 128, 255, 0, 0, 255, 0, 0, 0, 3, 254, 255}, "u8");
  // The zero point is added after rounding: 0.5 rounds to 0 with an odd zero point as well.
  expect_equal(quantize<uint8_t>({0.5f, 1.5f, -0.5f}, {1, 1, 3}, {1.0f}, {7}, 100), {7, 9, 7},
               "odd");
  expect_equal(
      quantize<uint8_t>({0.5f, 1.5f, -0.5f}, {1, 3, 1}, {1.0f, 1.0f, 1.0f}, {7, 7, 7}, 100),
      {7, 9, 7}, "odd, per axis");
}

TEST(Quantize, DividesInsteadOfMultiplying) {
  // x = (k + 1/2) * scale in float: only the quotient is exactly at the tie.
  std::vector<float> x, expected;
  const float scale = 0.1f;
  for (int k = 0; k < 120; ++k) x.push_back((static_cast<float>(k) + 0.5f) * scale);
  std::vector<int8_t> quotients;
  for (float value : x) quotients.push_back(static_cast<int8_t>(quantized(value / scale, 0, true)));
  const auto actual = quantize<int8_t>(x, {1, 1, 120}, {scale}, {}, 120);
  if (device().info().correctly_rounded_divide)
    expect_equal(actual, quotients, "quotients");
  else
    for (size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(actual[i], quotients[i], 1) << i;
}

TEST(Dequantize, Int32) {
  const auto x = integers<int32_t>(50, 1, -100000, 100000);
  std::vector<double> expected;
  for (int32_t value : x) expected.push_back(static_cast<double>(value) * 0.003f);
  Output<float> out(50);
  run("quantize", "dequantize", 4,
      kernels::Dequantize<KernelArgument>{.x = upload(x),
                                          .x_type = kS32,
                                          .y = out.buffer(),
                                          .scales = upload(std::vector<float>{0.003f}),
                                          .zero_points = nullptr,
                                          .count = 50,
                                          .axis = 1,
                                          .inner = 50,
                                          .chunk = 16});
  expect_close(out.values(), expected, "s32");
}

}  // namespace
}  // namespace bertcl::tests
