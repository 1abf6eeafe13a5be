// SPDX-License-Identifier: Apache-2.0
// Element types that the operators take, as ONNX constrains them.
#include "ops/type_constraints.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>

#include "bertcl/error.hpp"

namespace bertcl::ops {
namespace {

using enum ir::DType;

constexpr TypeSet floats{f32, f16, bf16, f64};
constexpr TypeSet bytes{i8, u8};
constexpr TypeSet integers{i8, u8, i16, u16, i32, u32, i64, u64};
constexpr TypeSet numbers = floats | integers;
constexpr TypeSet all = numbers | TypeSet{boolean};
constexpr TypeSet sums = floats | TypeSet{i32, u32, i64, u64};
constexpr TypeSet indices{i32, i64};
constexpr TypeSet scales = floats - TypeSet{f64};
constexpr TypeSet real{f32};
constexpr TypeSet packed{i32};  // rows and offsets of packed tokens

const std::vector<TypeConstraints>& table() {
  static const std::vector<TypeConstraints> rows{
      // One operand.
      {"Abs", {{numbers}}},
      {"Neg", {{floats | TypeSet{i8, i16, i32, i64}}}},
      {"Relu", {{floats | TypeSet{i8, i16, i32, i64}}}},
      {"Sign", {{numbers}}},
      {"Ceil", {{floats}}},
      {"Cos", {{floats}}},
      {"Erf", {{floats}}},
      {"Exp", {{floats}}},
      {"Floor", {{floats}}},
      {"Gelu", {{floats}}},
      {"IsInf", {{floats}}},
      {"IsNaN", {{floats}}},
      {"LeakyRelu", {{floats}}},
      {"Log", {{floats}}},
      {"Reciprocal", {{floats}}},
      {"Round", {{floats}}},
      {"Sigmoid", {{floats}}},
      {"Sin", {{floats}}},
      {"Softplus", {{floats}}},
      {"Sqrt", {{floats}}},
      {"Tanh", {{floats}}},
      {"Not", {{TypeSet{boolean}}}},
      {"Cast", {{all}}},
      {"Identity", {{all}}},
      // Two or more. The importer makes the exponent of Pow one of the base's type.
      {"Add", {{numbers, 'T'}}},
      {"Sub", {{numbers, 'T'}}},
      {"Mul", {{numbers, 'T'}}},
      {"Div", {{numbers, 'T'}}},
      {"Mod", {{numbers, 'T'}}},
      {"Pow", {{floats | indices, 'T'}}},
      {"Max", {{numbers, 'T'}}},
      {"Min", {{numbers, 'T'}}},
      {"Mean", {{floats, 'T'}}},
      {"Sum", {{floats, 'T'}}},
      {"Equal", {{all, 'T'}}},
      {"Greater", {{numbers, 'T'}}},
      {"GreaterOrEqual", {{numbers, 'T'}}},
      {"Less", {{numbers, 'T'}}},
      {"LessOrEqual", {{numbers, 'T'}}},
      {"And", {{TypeSet{boolean}}}},
      {"Or", {{TypeSet{boolean}}}},
      {"Xor", {{TypeSet{boolean}}}},
      {"Where", {{TypeSet{boolean}}, {all, 'T'}}},
      // Reductions and searches.
      {"ArgMax", {{numbers}}},
      {"ArgMin", {{numbers}}},
      {"CumSum", {{sums}, {indices}}},
      {"NonZero", {{all}}},
      {"ReduceL1", {{sums}}},
      {"ReduceL2", {{sums}}},
      {"ReduceMax", {{sums | bytes | TypeSet{boolean}}}},
      {"ReduceMean", {{sums}}},
      {"ReduceMin", {{sums | bytes | TypeSet{boolean}}}},
      {"ReduceProd", {{sums}}},
      {"ReduceSum", {{sums}}},
      {"ReduceSumSquare", {{sums}}},
      // Shapes and movement.
      {"Concat", {{all, 'T'}}},
      {"Expand", {{all}, {indices}}},
      {"Flatten", {{all}}},
      {"Gather", {{all}, {indices}}},
      {"GatherElements", {{all}, {indices}}},
      {"GatherND", {{all}, {indices}}},
      {"OneHot", {{numbers}, {numbers}, {all}}},
      {"Pad", {{all, 'T'}}},
      {"Range", {{TypeSet{f32, f64, i16, i32, i64}, 'T'}}},
      {"Reshape", {{all}, {indices}}},
      {"Shape", {{all}}},
      {"Size", {{all}}},
      {"Slice", {{all}, {indices, 'I'}}},
      {"Split", {{all}}},
      {"Squeeze", {{all}}},
      {"Tile", {{all}, {indices}}},
      {"Transpose", {{all}}},
      {"Trilu", {{all}, {indices}}},
      {"Unsqueeze", {{all}}},
      {"sizes", {}},
      // Products and norms.
      {"LayerNormalization", {{floats, 't'}}},  // exporters mix f16 and f32
      {"LogSoftmax", {{floats}}},
      {"MatMul", {{sums, 'T'}}},
      {"Softmax", {{floats}}},
      // Quantization. The importer casts an i32 that is quantized to f32.
      {"DequantizeLinear", {{TypeSet{i8, u8, i16, u16, i32}, 'T'}, {scales}, {all, 'T'}}},
      {"DynamicQuantizeLinear", {{TypeSet{f32}}}},
      {"MatMulInteger", {{bytes, 'A'}, {bytes, 'B'}, {bytes, 'A'}, {bytes, 'B'}}},
      {"QLinearMatMul",
       {{bytes, 'A'},
        {scales},
        {bytes, 'A'},
        {bytes, 'B'},
        {scales},
        {bytes, 'B'},
        {scales},
        {bytes}}},
      {"QuantizeLinear", {{scales}, {scales}, {TypeSet{i8, u8, i16, u16}}}},
      // bertcl's own (ops/operands.hpp).
      {"linear", {{real}}},
      {"linear_q",
       {{bytes, 'A'},
        {TypeSet{i8}},
        {real},
        {real},
        {bytes, 'A'},
        {real},
        {real},
        {bytes},
        {TypeSet{i8}}}},
      {"attention", {{real}, {real}, {real}, {all}, {real}, {bytes}, {packed}, {TypeSet{u8}}}},
      {"attention_q",
       {{bytes, 'Q'},
        {bytes, 'K'},
        {bytes, 'V'},
        {all},
        {real},
        {real},
        {bytes, 'Q'},
        {real},
        {bytes, 'K'},
        {real},
        {bytes, 'V'},
        {real},
        {bytes},
        {packed},
        {TypeSet{u8}}}},
      {"add_norm",
       {{real | bytes, 'X'},
        {real | bytes, 'R'},
        {real},
        {real},
        {real},
        {bytes, 'X'},
        {real},
        {bytes, 'R'},
        {real},
        {bytes},
        {real},
        {bytes}}},
      {"embed_norm",
       {{numbers},
        {numbers},
        {numbers},
        {real},
        {real},
        {real},
        {real},
        {real},
        {real},
        {bytes},
        {real},
        {bytes}}},
      {"quantize_rows", {{real}}},
      {"observe", {{all}}},
      {"pack_inputs", {{all}}},
      {"pack", {{all}, {packed}}},
      {"unpack", {{all}, {packed}}},
  };
  return rows;
}

}  // namespace

std::string TypeSet::str() const {
  std::vector<std::string_view> names;
  for (const ir::DType t : {f32, f16, bf16, f64, i8, u8, i16, u16, i32, u32, i64, u64, boolean})
    if (contains(t)) names.push_back(ir::name_of(t));
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : i + 1 < names.size() ? ", " : " or ", names[i]);
  return text;
}

const TypeConstraints* find_type_constraints(std::string_view op) {
  static const auto by_name = [] {
    std::map<std::string_view, const TypeConstraints*> map;
    for (const TypeConstraints& row : table()) map.emplace(row.op, &row);
    return map;
  }();
  const auto it = by_name.find(op);
  return it == by_name.end() ? nullptr : it->second;
}

namespace {

/// True if operands of one variable may have these types.
bool are_alike(char variable, ir::DType a, ir::DType b) {
  const bool halves = std::islower(static_cast<unsigned char>(variable)) != 0;
  const auto computed = [halves](ir::DType t) {
    return halves && (t == f16 || t == bf16) ? f32 : t;
  };
  return computed(a) == computed(b);
}

}  // namespace

void check_operand_types(const ir::Node& node) {
  const TypeConstraints* row = find_type_constraints(node.op);
  if (!row)
    throw Error(
        fmt::format("{}: ops/type_constraints.cpp has no row for this operator", node.describe()));
  std::array<const ir::Value*, 128> bound{};  // the first operand of each variable
  for (std::size_t i = 0; i < node.inputs.size() && !row->operands.empty(); ++i) {
    const ir::Value* in = node.inputs[i];
    if (!in) continue;
    const OperandConstraint& allowed = row->operands[std::min(i, row->operands.size() - 1)];
    if (allowed.variable != '\0') {
      const ir::Value*& first = bound[static_cast<std::size_t>(allowed.variable)];
      if (!first) first = in;
      if (!are_alike(allowed.variable, first->type.dtype, in->type.dtype))
        throw Error(fmt::format("{}: operands are of different types: '{}' {} and '{}' {}",
                                node.describe(), first->name, ir::str(first->type), in->name,
                                ir::str(in->type)));
    }
    if (!allowed.types.contains(in->type.dtype))
      throw Error(fmt::format("{}: operand '{}' is {}; {} takes {} there", node.describe(),
                              in->name, ir::str(in->type), node.op, allowed.types.str()));
  }
}

}  // namespace bertcl::ops
