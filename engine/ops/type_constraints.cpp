// SPDX-License-Identifier: Apache-2.0
// Element types that the operators take.
#include "ops/type_constraints.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "bertcl/error.hpp"

namespace bertcl::ops {
std::string TypeSet::str() const {
  std::vector<std::string_view> names;
  using enum ir::DType;
  for (const ir::DType t : {f32, f16, bf16, f64, i8, u8, i16, u16, i32, u32, i64, u64, boolean})
    if (contains(t)) names.push_back(ir::name_of(t));
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : i + 1 < names.size() ? ", " : " or ", names[i]);
  return text;
}

namespace {

/// True if operands of one variable may have these types.
bool are_alike(char variable, ir::DType a, ir::DType b) {
  const bool halves = std::islower(static_cast<unsigned char>(variable)) != 0;
  const auto computed = [halves](ir::DType t) {
    return halves && (t == ir::DType::f16 || t == ir::DType::bf16) ? ir::DType::f32 : t;
  };
  return computed(a) == computed(b);
}

}  // namespace

void check_operand_types(const ir::Node& node, const std::vector<OperandConstraint>& types) {
  std::array<const ir::Value*, 128> bound{};  // the first operand of each variable
  for (std::size_t i = 0; i < node.inputs.size() && !types.empty(); ++i) {
    const ir::Value* in = node.inputs[i];
    if (!in) continue;
    const OperandConstraint& allowed = types[std::min(i, types.size() - 1)];
    if (allowed.variable != '\0') {
      const ir::Value*& first = bound[allowed.variable];
      if (!first) first = in;
      if (!are_alike(allowed.variable, first->type.dtype, in->type.dtype))
        throw Error(fmt::format("{}: operands have different types: '{}' {} and '{}' {}",
                                node.describe(), first->name, ir::str(first->type), in->name,
                                ir::str(in->type)));
    }
    if (!allowed.types.contains(in->type.dtype))
      throw Error(fmt::format("{}: operand '{}' is {}; {} expects {}", node.describe(), in->name,
                              ir::str(in->type), node.op, allowed.types.str()));
  }
}

}  // namespace bertcl::ops
