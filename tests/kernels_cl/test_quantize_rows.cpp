// SPDX-License-Identifier: Apache-2.0
// Rows that are quantized by their own largest magnitude, against plain C++.
#include "device_test.hpp"
#include "kernels/contracts/rows.hpp"

namespace bertcl::tests {
namespace {

constexpr float kMin = 1e-30f;

template <typename T>
void expect_rows(const std::vector<float>& x, int32_t rows, int32_t rows_per_item,
                 const std::string& what) {
  constexpr bool is_signed = std::is_signed_v<T>;
  const auto hidden = static_cast<int32_t>(x.size()) / rows;
  Output<T> y(x.size());
  Output<float> scale(static_cast<size_t>(rows));
  run("quantize_rows", "quantize_rows",
      ceil_div(static_cast<size_t>(rows), static_cast<size_t>(rows_per_item)),
      kernels::QuantizeRows<KernelArgument>{.x = upload(x),
                                            .y = y.buffer(),
                                            .y_type = is_signed ? kS8 : kU8,
                                            .scale = scale.buffer(),
                                            .least = kMin,
                                            .rows = rows,
                                            .hidden = hidden,
                                            .rows_per_item = rows_per_item});
  std::vector<float> scales;
  std::vector<T> bytes;
  for (int32_t m = 0; m < rows; ++m) {
    const float* row = x.data() + static_cast<size_t>(m) * hidden;
    float largest = kMin;
    for (int32_t i = 0; i < hidden; ++i) largest = std::max(largest, std::abs(row[i]));
    scales.push_back(largest / 127.0f);
    for (int32_t i = 0; i < hidden; ++i)
      bytes.push_back(
          static_cast<T>(quantized(row[i] / scales.back(), is_signed ? 0 : 128, is_signed)));
  }
  expect_equal(scale.values(), scales, what);
  expect_equal(y.values(), bytes, what);
}

void expect_as_reference(const std::vector<float>& x, int32_t rows, int32_t rows_per_item,
                         const std::string& what) {
  expect_rows<int8_t>(x, rows, rows_per_item, what + ", s8");
  expect_rows<uint8_t>(x, rows, rows_per_item, what + ", u8");
}

TEST(QuantizeRows, EachRowHasItsScale) {
  for (int32_t rows : {1, 2, 5, 13})
    for (int32_t hidden : {1, 15, 16, 17, 31, 384, 1021})
      for (int32_t rows_per_item : {1, 3}) {
        auto x = normal_values(static_cast<size_t>(rows * hidden), static_cast<unsigned>(hidden));
        for (int32_t m = 0; m < rows; ++m) {  // the extreme anywhere, the last column included
          const auto at = static_cast<size_t>(m * hidden + (hidden - 1) * (m + 1) / rows);
          x[at] = (m % 2 ? -7.25f : 9.5f) * static_cast<float>(m + 1);
        }
        expect_as_reference(x, rows, rows_per_item,
                            std::to_string(rows) + " rows of " + std::to_string(hidden));
      }
}

TEST(QuantizeRows, ZerosTiesAndTinyRows) {
  expect_as_reference(std::vector<float>(2 * 17, 0.0f), 2, 1, "zeros");
  expect_as_reference({127.0f, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, -127.0f}, 1, 1, "ties");
  expect_as_reference({1e-32f, 0.0f, -1e-30f, 1e-38f, 3e38f, -1e38f}, 2, 1, "tiny and huge");
}

}  // namespace
}  // namespace bertcl::tests
