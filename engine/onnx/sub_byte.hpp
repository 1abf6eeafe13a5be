// SPDX-License-Identifier: Apache-2.0
// Integers of 2 and 4 bits, several to a byte. The IR has no such type: it holds them as i8 and u8.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string_view>

#include "ir/graph.hpp"
#include "ir/tensor.hpp"

namespace bertcl::onnx_io {

struct SubByteType {
  std::string_view name;  // of ONNX
  int bits;
  bool is_signed;
};

/// The type that an ONNX data type number stands for; empty for those of whole bytes.
std::optional<SubByteType> sub_byte_type(std::int32_t onnx_type);

/// Bytes of `count` elements.
std::int64_t bytes_of(std::int64_t count, int bits);

/// Element i, the first in the low bits of the first byte.
inline std::uint8_t sub_byte(std::span<const std::uint8_t> bytes, std::int64_t i, int bits) {
  const std::int64_t first = i * bits;
  return static_cast<std::uint8_t>((bytes[first / 8] >> (first % 8)) & ((1 << bits) - 1));
}

/// The elements as i8 or u8. Each row of the last axis begins at a byte if `rows`, else the whole
/// tensor is one row.
ir::Tensor widen_to_bytes(const SubByteType& type, ir::Sizes sizes,
                          std::span<const std::uint8_t> bytes, bool rows = false);

/// The values of a graph whose elements have a few bits in the file. Holding them as i8 or u8 is
/// correct for ops that depend only on values, not for ops that saturate to the type, such
/// as QuantizeLinear.
class SubByteValues {
 public:
  bool empty() const { return names_.empty(); }
  /// Notes the value if the type is one of a few bits.
  void add(const ir::Value* value, std::int32_t onnx_type);
  /// Notes `to` with the type of `from`, if that is noted.
  void copy_type(const ir::Value* from, const ir::Value* to);
  /// The name of the type in the file; empty for other values.
  std::string_view name_of(const ir::Value* value) const;

 private:
  std::map<const ir::Value*, std::string_view> names_;
};

/// True for operators that may read such values. `moves`: those whose result is one, too.
bool reads_sub_bytes(std::string_view op);
bool moves_sub_bytes(std::string_view op);

}  // namespace bertcl::onnx_io
