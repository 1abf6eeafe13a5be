// SPDX-License-Identifier: Apache-2.0
// Element types that the operators take: the type constraints of ONNX as a table, one row each.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
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

/// The operands of an operator in their order; the last constraint holds for all that follow.
struct TypeConstraints {
  std::string_view op;
  std::vector<OperandConstraint> operands;
};

/// The row of an operator; null if it has none.
const TypeConstraints* find_type_constraints(std::string_view op);

/// Throws bertcl::Error that names the node, the operand, its type and the types that the operator
/// takes, or that the operator has no row.
void check_operand_types(const ir::Node& node);

}  // namespace bertcl::ops
