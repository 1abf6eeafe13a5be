// SPDX-License-Identifier: Apache-2.0
// Integers of 2 and 4 bits, several to a byte.
#include "onnx/sub_byte.hpp"

#include <algorithm>
#include <iterator>

namespace bertcl::onnx_io {

std::optional<SubByteType> sub_byte_type(std::int32_t onnx_type) {
  switch (onnx_type) {
    case 21:
      return SubByteType{"uint4", 4, false};
    case 22:
      return SubByteType{"int4", 4, true};
    case 25:
      return SubByteType{"uint2", 2, false};
    case 26:
      return SubByteType{"int2", 2, true};
    default:
      return std::nullopt;
  }
}

std::int64_t bytes_of(std::int64_t count, int bits) {
  const std::int64_t per_byte = 8 / bits;
  return count / per_byte + (count % per_byte != 0);
}

ir::Tensor widen_to_bytes(const SubByteType& type, ir::Sizes sizes,
                          std::span<const std::uint8_t> bytes, bool rows) {
  ir::Tensor whole =
      ir::Tensor::zeros(type.is_signed ? ir::DType::i8 : ir::DType::u8, std::move(sizes));
  const std::int64_t columns = rows && !whole.shape().empty() ? whole.shape().back() : whole.size();
  const auto row_bytes = bytes_of(columns, type.bits);
  // The sign bit of a few bits has the value of all higher ones: -2^(bits - 1).
  const int sign = type.is_signed ? 1 << (type.bits - 1) : 0;
  std::byte* out = whole.mutable_bytes().data();
  for (std::int64_t row = 0; row < (columns == 0 ? 0 : whole.size() / columns); ++row) {
    const auto in = bytes.subspan(row * row_bytes, row_bytes);
    for (std::int64_t i = 0; i < columns; ++i)
      *out++ = static_cast<std::byte>((sub_byte(in, i, type.bits) ^ sign) - sign);
  }
  return whole;
}

void SubByteValues::add(const ir::Value* value, std::int32_t onnx_type) {
  if (const auto type = sub_byte_type(onnx_type)) names_.emplace(value, type->name);
}
void SubByteValues::copy_type(const ir::Value* from, const ir::Value* to) {
  if (const auto it = names_.find(from); it != names_.end()) names_.emplace(to, it->second);
}
std::string_view SubByteValues::name_of(const ir::Value* value) const {
  const auto it = names_.find(value);
  return it == names_.end() ? std::string_view() : it->second;
}

bool moves_sub_bytes(std::string_view op) {
  constexpr std::string_view ops[] = {"Identity", "Reshape",   "Transpose",
                                      "Squeeze",  "Unsqueeze", "Flatten"};
  return std::ranges::find(ops, op) != std::end(ops);
}
bool reads_sub_bytes(std::string_view op) {
  constexpr std::string_view ops[] = {"DequantizeLinear",
                                      "com.microsoft::DequantizeLinear",
                                      "com.microsoft::GatherBlockQuantized",
                                      "Cast",
                                      "Shape",
                                      "Size"};
  return moves_sub_bytes(op) || std::ranges::find(ops, op) != std::end(ops);
}

}  // namespace bertcl::onnx_io
