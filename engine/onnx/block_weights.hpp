// SPDX-License-Identifier: Apache-2.0
// Weights that are stored in a few bits with a scale for each block of them, as floats. The caller
// has checked that the tensors have the shapes that are stated here. Results are of the type of the
// scales, from (q - zero point) * scale in f32.
#pragma once
#include <cstdint>
#include <optional>

#include "ir/tensor.hpp"

namespace bertcl::onnx_io {

/// The weight of com.microsoft::MatMulNBits.
struct NBitsMatrix {
  std::int64_t k, n, block;
  int bits;
  ir::Tensor integers;                    // u8 [n, blocks, block * bits / 8]
  ir::Tensor scales;                      // n * blocks of them
  std::optional<ir::Tensor> zero_points;  // u8 [n, bytes of the blocks], or floats [n, blocks]
  std::optional<ir::Tensor> groups;       // i32: the block whose scale row i of k has, from 0
};
/// [k, n]
ir::Tensor dequantized(const NBitsMatrix& matrix);

/// A tensor with a scale for each `block` neighbours along an axis.
struct BlockedTensor {
  ir::Tensor integers;  // i8 or u8
  std::int64_t axis;
  std::int64_t block;
  ir::Tensor scales;                      // as many as there are blocks along the axis
  std::optional<ir::Tensor> zero_points;  // i8 or u8, one for each scale
  int zero_point = 0;                     // without them
};
/// The real numbers, in the shape of the integers.
ir::Tensor dequantized(const BlockedTensor& tensor);

/// The weight of com.microsoft::MatMulBnb4: numbers from a table of 16, times the largest magnitude
/// of their block.
struct Bnb4Matrix {
  std::int64_t k, n, block;
  bool normal;          // NF4, else FP4
  ir::Tensor integers;  // u8: [n, k] in a row, two to a byte, the first in the high bits
  ir::Tensor largest;   // of each `block` of them
};
/// [k, n]
ir::Tensor dequantized(const Bnb4Matrix& matrix);

}  // namespace bertcl::onnx_io
