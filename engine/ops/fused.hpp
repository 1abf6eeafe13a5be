// SPDX-License-Identifier: Apache-2.0
// Shared by the definitions of bertcl's own ops: quantized operands and results.
#pragma once
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "ops/support.hpp"

namespace bertcl::ops {

/// A definition with named operands; min_inputs counts those before the first optional one.
OpDef own_op(const char* name, std::vector<OperandConstraint> types,
             std::span<const std::string_view> operands, Infer infer, Evaluate evaluate,
             Traits traits = {}, Values values = nullptr);

/// What an operand of these ops may be that shares its type with no other.
namespace takes {
inline constexpr OperandConstraint all{types::all}, numbers{types::numbers}, real{types::real},
    bytes{types::bytes}, i8{TypeSet{ir::DType::i8}}, packed{types::packed};
}

/// Throws naming the node unless operand i is absent or [n], or has one element if that is allowed.
void check_vector(const InferContext& context, std::size_t i, const ir::Dim& n,
                  bool or_one_element = false);

/// The position of an operand that an op does not have.
inline constexpr std::size_t kNoOperand = 1u << 16;

/// The declared element type of result i, which must be u8 or i8 if the operand `scale` is given;
/// otherwise f32, or bf16 if declared.
ir::DType type_of_result(const InferContext& context, std::size_t i, std::size_t scale);

/// Operand `value` as real numbers: (q - zero_point) * scale in f32 if it has a scale, of one
/// element or one per column.
std::vector<float> real_numbers(const EvaluateContext& context, std::size_t value,
                                std::size_t scale, std::size_t zero_point);

/// First and last row (exclusive) of each sequence of operand 0: by operand `offsets`, else of
/// [batch, seq, ..]; without either each row is one.
std::vector<std::pair<std::int64_t, std::int64_t>> sequence_rows(const EvaluateContext& context,
                                                                 std::size_t offsets);

/// round(y / scale) + zero point, saturated, as the type of result i; without a scale y, in f32 or
/// bf16.
ir::Tensor result_of(const EvaluateContext& context, std::size_t i, const ir::Sizes& sizes,
                     const std::vector<double>& y, std::size_t scale, std::size_t zero_point);

}  // namespace bertcl::ops
