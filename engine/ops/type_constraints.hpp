// SPDX-License-Identifier: Apache-2.0
// Element types of the operators' operands: the type constraints of ONNX.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "ir/graph.hpp"

namespace bertcl::ops {

/// A set of element types.
class TypeSet {
 public:
  constexpr TypeSet(std::initializer_list<ir::DType> types) {
    for (const ir::DType t : types) bits_ |= bit(t);
  }
  constexpr bool contains(ir::DType t) const { return (bits_ & bit(t)) != 0; }
  friend constexpr TypeSet operator|(TypeSet a, TypeSet b) {
    a.bits_ |= b.bits_;
    return a;
  }
  /// Those of `a` that are not in `b`.
  friend constexpr TypeSet operator-(TypeSet a, TypeSet b) {
    a.bits_ &= ~b.bits_;
    return a;
  }
  /// "f32, f16 or i64"
  std::string str() const;

 private:
  static constexpr std::uint32_t bit(ir::DType t) { return 1u << static_cast<unsigned>(t); }
  std::uint32_t bits_ = 0;
};

/// What one operand may be. Operands with the same variable are of one type, where f16 and bf16
/// count as f32, which they are computed in, if it is a small letter; '\0' is none.
struct OperandConstraint {
  TypeSet types;
  char variable = '\0';
};

/// Throws bertcl::Error that names the node, the operand, its type and the types that `op` takes.
void check_operand_types(const ir::Node& node, const std::vector<OperandConstraint>& types);

/// What the operators of ONNX take, as its schemas constrain them.
namespace types {
using enum ir::DType;
inline constexpr TypeSet floats{f32, f16, bf16, f64};
inline constexpr TypeSet bytes{i8, u8};
inline constexpr TypeSet integers{i8, u8, i16, u16, i32, u32, i64, u64};
inline constexpr TypeSet numbers = floats | integers;
inline constexpr TypeSet signed_numbers = floats | TypeSet{i8, i16, i32, i64};
inline constexpr TypeSet truth{ir::DType::boolean};
inline constexpr TypeSet all = numbers | truth;
inline constexpr TypeSet sums = floats | TypeSet{i32, u32, i64, u64};
inline constexpr TypeSet indices{i32, i64};
inline constexpr TypeSet scales = floats - TypeSet{f64};
inline constexpr TypeSet real{f32};
inline constexpr TypeSet real_or_bf16{f32, bf16};
inline constexpr TypeSet packed{i32};  // rows and offsets of packed tokens
}  // namespace types

}  // namespace bertcl::ops
