// SPDX-License-Identifier: Apache-2.0
// Gated products against a plain loop.
#include <cmath>

#include "device_test.hpp"
#include "kernels/contracts/elementwise.hpp"
#include "kernels/types.hpp"

namespace bertcl::tests {
namespace {

struct GatedCase {
  size_t rows, columns, chunk;
  int32_t activation = 0;

  std::string name() const {
    return std::to_string(rows) + " x " + std::to_string(columns) + ", chunks of " +
           std::to_string(chunk) + ", activation " + std::to_string(activation);
  }
};

template <class T>
std::vector<T> product(const GatedCase& of, const std::vector<float>& gate,
                       const std::vector<float>& up, int32_t type,
                       const std::vector<float>& inv_scales,
                       const std::vector<float>& zero_points) {
  const Output<T> out(gate.size());
  run("gated", "gated", ceil_div(gate.size(), of.chunk),
      kernels::Gated<KernelArgument>{.gate = upload(gate),
                                     .up = upload(up),
                                     .activation = of.activation,
                                     .out = out.buffer(),
                                     .out_type = type,
                                     .out_inv_scale = upload(inv_scales),
                                     .out_zero_point = upload(zero_points),
                                     .count = static_cast<int32_t>(gate.size()),
                                     .columns = static_cast<int32_t>(of.columns),
                                     .chunk = static_cast<int32_t>(of.chunk)});
  return out.values();
}

void expect_gated(const GatedCase& of) {
  auto gate = normal_values(of.rows * of.columns, 1, 3.0f);
  const auto up = normal_values(gate.size(), 2);
  if (gate.size() > 4) gate[0] = 200.0f, gate[1] = -200.0f, gate[2] = 0.0f, gate[3] = -80.0f;
  std::vector<float> inv_scales, zero_points;
  for (size_t i = 0; i < of.columns; ++i) {
    inv_scales.push_back(40.0f + static_cast<float>(i % 7));
    zero_points.push_back(17.0f - static_cast<float>(i % 5));
  }
  std::vector<double> expected;
  for (size_t i = 0; i < gate.size(); ++i) {
    const double x = gate[i];
    expected.push_back((of.activation ? x / (1 + std::exp(-x)) : x) * up[i]);
  }
  const auto found = product<float>(of, gate, up, kF32, inv_scales, zero_points);
  expect_close(found, expected, of.name());
  std::vector<uint8_t> unsigned_bytes;
  std::vector<int8_t> signed_bytes;
  for (size_t i = 0; i < found.size(); ++i) {  // some lie beyond both ends of the range
    const float value = found[i] * inv_scales[i % of.columns];
    const auto zero_point = static_cast<int32_t>(zero_points[i % of.columns]);
    unsigned_bytes.push_back(static_cast<uint8_t>(quantized(value, zero_point, false)));
    signed_bytes.push_back(static_cast<int8_t>(quantized(value, zero_point, true)));
  }
  expect_equal(product<uint8_t>(of, gate, up, kU8, inv_scales, zero_points), unsigned_bytes,
               of.name());
  expect_equal(product<int8_t>(of, gate, up, kS8, inv_scales, zero_points), signed_bytes,
               of.name());
}

TEST(Gated, AsAPlainLoop) {
  for (const int32_t activation : {0, kernels::kSiluCode})
    for (const size_t columns : {1, 2, 15, 16, 17, 33, 100, 509, 3072})
      for (const size_t chunk : {16, 48, 4096}) expect_gated({5, columns, chunk, activation});
}

TEST(Gated, OneElement) { expect_gated({1, 1, 16, kernels::kSiluCode}); }

}  // namespace
}  // namespace bertcl::tests
