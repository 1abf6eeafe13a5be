// SPDX-License-Identifier: Apache-2.0
// Quantization by the tensor's own range against the definition of DynamicQuantizeLinear.
#include <algorithm>

#include "device_test.hpp"
#include "kernels/bind.hpp"
#include "kernels/contracts/quantize.hpp"

namespace bertcl::tests {
namespace {

struct Quantized {
  std::vector<uint8_t> y;
  float scale = 0;
  int zero_point = 0;
};

Quantized reference(const std::vector<float>& x) {
  float low = 0, high = 0;
  for (float v : x) low = std::min(low, v), high = std::max(high, v);
  Quantized q;
  q.scale = high == low ? 1.0f : (high - low) / 255.0f;
  q.zero_point = static_cast<int>(std::clamp(std::nearbyint(0.0f - low / q.scale), 0.0f, 255.0f));
  for (float v : x)
    q.y.push_back(static_cast<uint8_t>(quantized(v / q.scale, q.zero_point, false)));
  return q;
}

/// By work-items, each of a chunk, or by work-groups.
void expect_as_reference(const std::vector<float>& x, const std::string& what, bool groups) {
  const std::string program = groups ? "dynamic_quantize_group" : "dynamic_quantize";
  const auto run_parts = [&](opencl::Kernel& kernel, size_t parts) {
    if (!groups) return run(kernel, parts);
    device().queue().launch(kernel, {256 * parts, 1, 1}, {256, 1, 1});
    device().queue().finish();
  };
  const auto count = static_cast<int32_t>(x.size());
  Output<float> ranges(512), scale(1);
  Output<uint8_t> y(x.size()), zero_point(1);
  auto range = device().kernel(program, "dynamic_range");
  kernels::set(range, kernels::DynamicRange<KernelArgument>{
                          .x = upload(x), .ranges = ranges.buffer(), .count = count});
  run_parts(range, 256);
  ranges.values();  // checks what lies past them
  const int32_t chunk = 100;
  auto quantize = device().kernel(program, "dynamic_quantize");
  kernels::set(quantize,
               kernels::DynamicQuantize<KernelArgument>{.x = upload(x),
                                                        .ranges = ranges.buffer(),
                                                        .y = y.buffer(),
                                                        .scale_out = scale.buffer(),
                                                        .zero_point_out = zero_point.buffer(),
                                                        .count = count,
                                                        .chunk = chunk});
  run_parts(quantize, ceil_div(x.size(), static_cast<size_t>(groups ? 256 * chunk : chunk)));
  const Quantized expected = reference(x);
  EXPECT_EQ(scale.values()[0], expected.scale) << what;
  EXPECT_EQ(zero_point.values()[0], expected.zero_point) << what;
  expect_equal(y.values(), expected.y, what);
}

void expect_as_reference(const std::vector<float>& x, const std::string& what) {
  expect_as_reference(x, what, false);
  expect_as_reference(x, what + ", by groups", true);
}

TEST(DynamicQuantize, EveryElementCountsInTheRange) {
  for (size_t count :
       {1, 2, 15, 16, 17, 255, 256, 257, 4095, 4096, 4097, 8191, 70001, 262147, 787001})
    for (size_t place : {size_t{0}, count / 2, count - 1}) {
      auto x = normal_values(count, static_cast<unsigned>(count));
      x[place] = 9.5f;
      x[count - 1 - place] = -31.25f;
      expect_as_reference(
          x, std::to_string(count) + " elements, extremes at " + std::to_string(place));
    }
}

TEST(DynamicQuantize, TheRangeHoldsZero) {
  expect_as_reference({3.0f, 4.0f, 5.0f}, "positive");
  expect_as_reference({-3.0f, -4.5f, -5.0f}, "negative");
  expect_as_reference(std::vector<float>(37, 0.0f), "zeros");
}

// Oclgrind runs this alone: its 65,536 work-items take seconds there, whatever the values.
TEST(DynamicQuantize, TiesGoToTheEvenInteger) {
  expect_as_reference({0.0f, 1.0f, 2.0f, 255.0f, 0.5f, 1.5f, 2.5f}, "ties");
}

}  // namespace
}  // namespace bertcl::tests
