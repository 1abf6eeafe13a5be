// SPDX-License-Identifier: Apache-2.0
// Weights that are stored in a few bits with a scale for each block of them, as floats.
#include "onnx/block_weights.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "onnx/sub_byte.hpp"

namespace bertcl::onnx_io {
namespace {

using ir::DType;

std::vector<float> floats(const ir::Tensor& tensor) {
  const ir::Tensor wide = tensor.converted(DType::f32);
  const auto values = wide.as<float>();
  return {values.begin(), values.end()};
}

ir::Tensor of_floats(ir::Sizes sizes, std::vector<float> values, DType type) {
  return ir::Tensor::of(std::move(sizes), std::move(values)).converted(type);
}

/// [k, n] of weight(row n, row k). A few columns at a time, whose rows are then written together.
template <class F>
std::vector<float> transposed(std::int64_t k, std::int64_t n, F&& weight) {
  constexpr std::int64_t columns = 16;  // a cache line of floats
  std::vector<float> out(k * n);
  for (std::int64_t first = 0; first < n; first += columns)
    for (std::int64_t row = 0; row < k; ++row)
      for (std::int64_t column = first; column < std::min(n, first + columns); ++column)
        out[row * n + column] = weight(column, row);
  return out;
}

/// A zero point for each scale.
std::vector<float> zero_points_of(const NBitsMatrix& m, std::int64_t blocks) {
  if (!m.zero_points)
    return std::vector<float>(m.n * blocks, static_cast<float>(1 << (m.bits - 1)));
  if (ir::is_float(m.zero_points->dtype())) return floats(*m.zero_points);
  return floats(
      widen_to_bytes({"", m.bits, false}, {m.n, blocks}, m.zero_points->as<std::uint8_t>(), true));
}

}  // namespace

ir::Tensor dequantized(const NBitsMatrix& m) {
  const std::int64_t blocks = m.k / m.block + (m.k % m.block != 0);
  const std::vector<float> scales = floats(m.scales), zeros = zero_points_of(m, blocks);
  const auto integers = m.integers.as<std::uint8_t>();
  std::vector<std::int64_t> group(m.k);
  for (std::int64_t i = 0; i < m.k; ++i)
    group[i] = m.groups ? m.groups->as<std::int32_t>()[i] : i / m.block;
  // As ONNX Runtime computes these two, which differs in the last bit.
  const bool by_terms =
      m.groups.has_value() || (m.zero_points && ir::is_float(m.zero_points->dtype()));
  return of_floats({m.k, m.n},
                   transposed(m.k, m.n,
                              [&](std::int64_t column, std::int64_t row) {
                                const auto at = column * blocks + group[row];
                                const float q =
                                    sub_byte(integers, column * blocks * m.block + row, m.bits);
                                if (!by_terms) return (q - zeros[at]) * scales[at];
                                const float scaled = q * scales[at], shift = zeros[at] * scales[at];
                                return scaled - shift;
                              }),
                   m.scales.dtype());
}

ir::Tensor dequantized(const BlockedTensor& t) {
  const ir::Sizes& sizes = t.integers.shape();
  std::int64_t inner = 1;
  for (std::int64_t d = t.axis + 1; d < std::ssize(sizes); ++d) inner *= sizes[d];
  const std::int64_t extent = sizes[t.axis];
  const std::int64_t blocks = extent / t.block + (extent % t.block != 0);
  const std::vector<float> scales = floats(t.scales);
  const std::vector<float> zeros =
      t.zero_points ? floats(*t.zero_points)
                    : std::vector<float>(scales.size(), static_cast<float>(t.zero_point));
  std::vector<float> out(t.integers.size());
  const auto fill = [&](const auto integers) {
    std::int64_t out_at = 0;
    for (std::int64_t scale = 0; out_at < std::ssize(out); scale += inner) {
      const std::int64_t of_axis = scale / inner % blocks;
      const std::int64_t rows = std::min(t.block, extent - of_axis * t.block);
      for (std::int64_t row = 0; row < rows; ++row)
        for (std::int64_t i = 0; i < inner; ++i, ++out_at)
          out[out_at] =
              (static_cast<float>(integers[out_at]) - zeros[scale + i]) * scales[scale + i];
    }
  };
  if (t.integers.dtype() == DType::i8)
    fill(t.integers.as<std::int8_t>());
  else
    fill(t.integers.as<std::uint8_t>());
  return of_floats(sizes, std::move(out), t.scales.dtype());
}

ir::Tensor dequantized(const Bnb4Matrix& m) {
  // A sign, then numbers of 0 to 12: bitsandbytes calls them FP4.
  constexpr std::array<float, 8> fp4{0, 0.0625f, 8, 12, 4, 6, 2, 3};
  // Means of 16 equally likely parts of a normal distribution within -1 and 1 (QLoRA,
  // arXiv:2305.14314, appendix E).
  constexpr std::array<float, 16> nf4{-1.0f,
                                      -0.6961928009986877f,
                                      -0.5250730514526367f,
                                      -0.39491748809814453f,
                                      -0.28444138169288635f,
                                      -0.18477343022823334f,
                                      -0.09105003625154495f,
                                      0.0f,
                                      0.07958029955625534f,
                                      0.16093020141124725f,
                                      0.24611230194568634f,
                                      0.33791524171829224f,
                                      0.44070982933044434f,
                                      0.5626170039176941f,
                                      0.7229568362236023f,
                                      1.0f};
  std::array<float, 16> table = nf4;
  for (std::size_t i = 0; i < fp4.size() && !m.normal; ++i) {
    table[i] = fp4[i] / 12.0f;
    table[i + 8] = -table[i];
  }
  const std::vector<float> largest = floats(m.largest);
  const auto integers = m.integers.as<std::uint8_t>();
  return of_floats({m.k, m.n},
                   transposed(m.k, m.n,
                              [&](std::int64_t column, std::int64_t row) {
                                const std::int64_t i = column * m.k + row;
                                // Pairs are the other way round than everywhere else.
                                return table[sub_byte(integers, i ^ 1, 4)] * largest[i / m.block];
                              }),
                   m.largest.dtype());
}

}  // namespace bertcl::onnx_io
