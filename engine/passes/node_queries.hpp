// SPDX-License-Identifier: Apache-2.0
// What passes ask of nodes, values and shapes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "ir/graph.hpp"

namespace bertcl::passes {

/// QuantizeLinear or DequantizeLinear.
bool is_quantization(const ir::Node& node);

/// True if ReduceMean, or another reduction, is one over the last axis alone, which it keeps.
bool reduces_last_axis(const ir::Node& reduction);

/// True if a LayerNormalization or RMSNormalization is one of f32 over the last axis with constant
/// vectors of its size.
bool normalizes_last_axis(const ir::Node& norm);

/// True for the shape [batch, seq, ...], where `ids` is [batch, seq].
bool has_rows(const ir::Shape& shape, const ir::Shape& ids);

/// True if an input of the graph may hold ids of tokens or their mask: integers [batch, seq].
bool takes_tokens(const ir::Graph& graph);

/// The node that alone reads `value`; null if there are several or the graph returns it.
ir::Node* only_user(const ir::Graph& graph, const ir::Value* value);

/// True if `node` comes before `other` in the graph.
bool comes_before(const ir::Graph& graph, const ir::Node* node, const ir::Node* other);

/// A value times a number.
struct Scaled {
  ir::Value* x;
  double factor;
};

/// What x * c, c * x or x / c scales without repeating it; empty for any other node.
std::optional<Scaled> scaled(const ir::Node& node);

/// The node Where(IsNaN(p), 0, p), which torch writes after Softmax so that rows without any key
/// give 0; null where there is none.
ir::Node* without_nan(const ir::Value* p);

/// True for a constant with one element for each of `columns`: a vector, also with leading ones.
bool is_column_constant(const ir::Value* value, const ir::Dim& columns);

/// The number in a constant of one element; empty for anything else.
std::optional<double> scalar_value(const ir::Value* value);

/// The only element of an attribute, or else of a constant operand; empty for anything else.
std::optional<std::int64_t> only_integer(const ir::Node& node, std::string_view key,
                                         std::size_t operand);

}  // namespace bertcl::passes
