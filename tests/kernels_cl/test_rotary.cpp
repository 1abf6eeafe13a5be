// SPDX-License-Identifier: Apache-2.0
// Rotary positions against a plain loop over rows.
#include <algorithm>
#include <cmath>

#include "device_test.hpp"
#include "kernels/bind.hpp"
#include "kernels/contracts/rows.hpp"

namespace bertcl::tests {
namespace {

struct RotaryCase {
  std::vector<size_t> lengths;
  size_t heads = 0, head_size = 0, rows_per_item = 1;
  size_t table_rows = 0;  // of each sequence
  bool columns = false;   // by rotary_columns.cl

  std::string name() const {
    return std::to_string(lengths.size()) + " sequences, " + std::to_string(heads) + " heads of " +
           std::to_string(head_size) + ", " + std::to_string(rows_per_item) + " rows an item, " +
           std::to_string(table_rows) + " rows of a table" + (columns ? ", by columns" : "");
  }
};

/// The kernel's result for these operands, in f32 or quantized.
template <class T>
std::vector<T> rotated(const RotaryCase& of, const std::vector<float>& x,
                       const std::vector<float>& cosines, const std::vector<float>& sines,
                       const std::vector<int32_t>& offsets, size_t longest, int32_t type,
                       const std::vector<float>& inv_scales,
                       const std::vector<float>& zero_points) {
  const Output<T> out(x.size());
  opencl::Kernel kernel = device().kernel(of.columns ? "rotary_columns" : "rotary", "rotary");
  kernels::set(kernel, kernels::Rotary<KernelArgument>{
                           .x = upload(x),
                           .cosines = upload(cosines),
                           .sines = upload(sines),
                           .out = out.buffer(),
                           .out_type = type,
                           .out_inv_scale = upload(inv_scales),
                           .out_zero_point = upload(zero_points),
                           .seq_offsets = upload(offsets),
                           .heads = static_cast<int32_t>(of.heads),
                           .head_size = static_cast<int32_t>(of.head_size),
                           .table_rows = static_cast<int32_t>(of.table_rows),
                           .rows_per_item = static_cast<int32_t>(of.rows_per_item)});
  const size_t quads = ceil_div(of.head_size, 8);
  run(kernel, of.columns ? longest * of.heads * quads : ceil_div(longest, of.rows_per_item), 1,
      of.lengths.size());
  return out.values();
}

void expect_rotated(const RotaryCase& of) {
  const size_t longest = *std::max_element(of.lengths.begin(), of.lengths.end());
  const size_t size = of.head_size, half = size / 2, row = of.heads * size;
  std::vector<int32_t> offsets{0};
  for (const size_t length : of.lengths)
    offsets.push_back(offsets.back() + static_cast<int32_t>(length));
  const auto x = normal_values(static_cast<size_t>(offsets.back()) * row, 1);
  // Not of an angle: each of the four factors of a pair is its own.
  const size_t elements = (of.table_rows ? of.table_rows * of.lengths.size() : longest) * size;
  const auto cosines = normal_values(elements, 2), sines = normal_values(elements, 3);
  std::vector<float> inv_scales, zero_points;
  for (size_t i = 0; i < row; ++i) {
    inv_scales.push_back(60.0f + static_cast<float>(i % 7));
    zero_points.push_back(17.0f - static_cast<float>(i % 5));
  }
  std::vector<double> expected;
  for (size_t sequence = 0; sequence < of.lengths.size(); ++sequence)
    for (size_t place = 0; place < of.lengths[sequence]; ++place)
      for (size_t i = 0; i < row; ++i) {
        const size_t at = expected.size(), d = i % size;
        const size_t in_table = (sequence * of.table_rows + place) * size + d;
        const double turned = d < half ? -x[at + half] : x[at - half];
        expected.push_back(static_cast<double>(x[at]) * cosines[in_table] +
                           turned * sines[in_table]);
      }
  const auto found =
      rotated<float>(of, x, cosines, sines, offsets, longest, kF32, inv_scales, zero_points);
  expect_close(found, expected, of.name());
  if (of.columns) {
    RotaryCase by_rows = of;
    by_rows.columns = false;
    expect_equal(
        found,
        rotated<float>(by_rows, x, cosines, sines, offsets, longest, kF32, inv_scales, zero_points),
        of.name());
  }
  // Some values lie beyond both ends of the range.
  std::vector<uint8_t> unsigned_bytes;
  std::vector<int8_t> signed_bytes;
  for (size_t i = 0; i < found.size(); ++i) {
    const float value = found[i] * inv_scales[i % row];
    const auto zero_point = static_cast<int32_t>(zero_points[i % row]);
    unsigned_bytes.push_back(static_cast<uint8_t>(quantized(value, zero_point, false)));
    signed_bytes.push_back(static_cast<int8_t>(quantized(value, zero_point, true)));
  }
  expect_equal(
      rotated<uint8_t>(of, x, cosines, sines, offsets, longest, kU8, inv_scales, zero_points),
      unsigned_bytes, of.name());
  expect_equal(
      rotated<int8_t>(of, x, cosines, sines, offsets, longest, kS8, inv_scales, zero_points),
      signed_bytes, of.name());
}

TEST(Rotary, AsAPlainLoop) {
  for (const size_t head_size : {2, 6, 32, 64, 66})
    for (const size_t heads : {1, 3, 12})
      for (const size_t rows : {1, 8})
        expect_rotated({{1, 7, 8, 9, 2, 31, 1, 16}, heads, head_size, rows});
}

TEST(Rotary, ColumnsHaveTheBitsOfRows) {
  for (const size_t head_size : {2, 6, 8, 10, 32, 62, 64, 66})
    for (const size_t heads : {1, 3, 12})
      expect_rotated({{1, 7, 0, 9, 31, 16}, heads, head_size, 1, 0, true});
  expect_rotated({{509}, 2, 40, 1, 0, true});
  expect_rotated({{3, 20, 0, 12}, 3, 24, 1, 23, true});
  expect_rotated({std::vector<size_t>(67, 3), 2, 4, 1, 0, true});
}

TEST(Rotary, OneSequenceAndEmptyOnes) {
  expect_rotated({{1}, 1, 2, 1});
  expect_rotated({{509}, 2, 8, 8});
  expect_rotated({{0, 5, 0, 0, 3, 0}, 2, 8, 1});
}

TEST(Rotary, TablesOfEachSequence) {
  for (const size_t rows : {1, 8}) {
    expect_rotated({{1, 7, 0, 9, 31}, 3, 6, rows, 31});
    expect_rotated({{3, 20, 12}, 1, 64, rows, 23});
  }
}

TEST(Rotary, ManySequences) { expect_rotated({std::vector<size_t>(67, 3), 2, 4, 1}); }

}  // namespace
}  // namespace bertcl::tests
