// SPDX-License-Identifier: Apache-2.0
// The semantics of each IR operator: the types of its results and its values on the host.
#pragma once
#include <fmt/format.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/graph.hpp"
#include "ops/symbolic.hpp"
#include "ops/type_constraints.hpp"

namespace bertcl::ops {

/// An attribute as a dimension of a tensor of that rank, negative values counted from the end.
/// Throws bertcl::Error that names the node if it is out of range.
std::size_t axis_of(const ir::Node& node, std::string_view key, std::int64_t default_value,
                    std::size_t rank);

/// True if `axis` of the node, or else the default, is the last one of `shape`.
bool is_last_axis(const ir::Node& node, std::int64_t default_value, const ir::Shape& shape);

/// What functions of an operator see of its node.
struct NodeContext {
  const ir::Node& node;

  std::int64_t axis(std::string_view key, std::int64_t default_value, std::size_t rank) const {
    return axis_of(node, key, default_value, rank);
  }
  /// A dimension that the node gives as `name`, likewise.
  std::size_t axis(std::int64_t given, std::size_t rank, std::string_view name = "axis") const;
  /// Throws bertcl::Error that names the node.
  [[noreturn]] void fail(const std::string& what) const;
  template <class First, class... Rest>
  [[noreturn]] void fail(fmt::format_string<First, Rest...> what, First&& first,
                         Rest&&... rest) const {
    fail(fmt::format(what, std::forward<First>(first), std::forward<Rest>(rest)...));
  }
};

/// The context of type inference for one node.
struct InferContext : NodeContext {
  ir::Graph& graph;  // gives fresh symbols
  SymbolicValues& values;

  bool has(std::size_t i) const { return node.input(i) != nullptr; }
  const ir::Type& type(std::size_t i) const;
  const ir::Shape& shape(std::size_t i) const { return type(i).shape; }
  /// Name and type of operand i for messages: "'x' f32[batch, 8]".
  std::string described(std::size_t i) const;
  /// The elements of operand i as sizes, or null if unknown.
  const std::vector<ir::Dim>* elements(std::size_t i) const;
};

/// The context of evaluation for one node.
struct EvaluateContext : NodeContext {
  std::vector<const ir::Tensor*> inputs;  // null where an optional operand is absent
  const ir::Bindings& bindings;           // sizes of the symbols of this run

  bool has(std::size_t i) const { return i < inputs.size() && inputs[i] != nullptr; }
  const ir::Tensor& in(std::size_t i) const;
  /// The extents of result i by its type. Throws naming a symbol whose size is not known.
  ir::Sizes result_sizes(std::size_t i = 0) const;
};

/// What passes and planner need to know about any operator.
struct Traits {
  bool row_wise = false;  // a row of a result depends on the same row of the operands only
  /// An element of a result depends, of each operand, on the element at its place only, as in
  /// broadcasting; scales and shapes aside.
  bool by_element = false;
  bool moves_elements = false;    // the result holds elements of operand 0
  bool is_linear = false;         // linear, linear_q
  bool is_attention = false;      // attention, attention_q
  bool is_norm = false;           // LayerNormalization and RMSNormalization, also within fused ops
  bool takes_activation = false;  // attribute {activation}
  std::optional<std::size_t> out_scale = {};  // operand: scale of a quantized result
  std::optional<std::int32_t> unary_code = {}, binary_code = {};  // of elementwise_*.cl
  /// The ONNX operator of the same name means the same, and may have these attributes.
  std::optional<std::vector<std::string>> onnx_attributes = {};
  /// The axes of operand 0 along which several elements contribute to one of a result; null: none.
  std::vector<std::int64_t> (*mixed_axes)(const ir::Node&) = nullptr;
};

using Infer = std::vector<ir::Type> (*)(InferContext&);
using Evaluate = std::vector<ir::Tensor> (*)(const EvaluateContext&);
using Values = std::vector<SymbolicElements> (*)(InferContext&);

/// One operator. `infer` gives the types of all results, `values` their elements as sizes where
/// that is possible (null: never), `evaluate` computes them by plain loops, in float where the
/// element type is f32, f16 or bf16.
struct OpDef {
  std::string name;
  std::size_t min_inputs;
  std::size_t max_inputs;
  std::vector<OperandConstraint> types;  // of the operands; the last holds for all that follow
  Infer infer;
  Evaluate evaluate;
  Values values = nullptr;
  Traits traits = {};
  bool is_own = false;                              // bertcl's own, not of ONNX
  std::span<const std::string_view> operands = {};  // names of those of own ops (ops/operands.hpp)
};

/// A definition from its members. In a braced list clang-format would give each a line.
inline OpDef op(std::string name, std::size_t min_inputs, std::size_t max_inputs,
                std::vector<OperandConstraint> types, Infer infer, Evaluate evaluate,
                Values values = nullptr, Traits traits = {}) {
  return {std::move(name), min_inputs, max_inputs, std::move(types),
          infer,           evaluate,   values,     std::move(traits)};
}

inline constexpr std::size_t kAnyNumber = 1u << 20;

/// The definition of an operator, or null.
const OpDef* find(std::string_view op);
/// The definition; throws bertcl::Error that names the node if there is none.
const OpDef& get(const ir::Node& node);
/// The traits of an operator; none if it has no definition.
const Traits& traits(std::string_view op);
inline const Traits& traits(const ir::Node& node) { return traits(node.op); }
/// Names of all operators, sorted.
std::vector<std::string> names();

}  // namespace bertcl::ops
