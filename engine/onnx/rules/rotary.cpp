// SPDX-License-Identifier: Apache-2.0
// RotaryEmbedding of opset 23 and of com.microsoft, decomposed into what exporters write before it:
// heads * cos + Concat(-heads[half:], heads[:half]) * sin.
#include "onnx/attention.hpp"

namespace bertcl::onnx_io {
namespace {

/// x[.., first : last : step] of the last axis.
ir::Value* columns(NodeImport& node, ir::Value* x, std::int64_t first, std::int64_t last,
                   std::int64_t step = 1) {
  const auto list = [&](std::int64_t n) {
    return node.constant(ir::Tensor::of<std::int64_t>({1}, {n}), "columns");
  };
  const auto axis = std::ssize(x->type.shape) - 1;
  return node.emit("Slice", {x, list(first), list(last), list(axis), list(step)});
}

ir::Value* concat(NodeImport& node, ir::Value* a, ir::Value* b) {
  const auto axis = std::ssize(a->type.shape) - 1;
  return node.emit("Concat", {a, b}, {{"axis", axis}});
}

/// Cosines or sines [batch | 1, seq, half] by `positions`, which may be null, for heads [batch,
/// heads, seq, size], or [.., seq, 1, half] for rows of heads.
ir::Value* table_of(NodeImport& node, std::size_t i, ir::Value* positions, std::int64_t half,
                    bool rows_first) {
  ir::Value* table = node.input(i);
  if (positions) table = node.emit("Gather", {table, positions}, {{"axis", 0}});
  const ir::Shape& shape = table->type.shape;
  if (shape.size() != 3 || shape[2] != ir::Dim(half))
    node.fail("'{}' {} must give [batch, seq, {}]", node.input(i)->name,
              ir::str(node.input(i)->type), half);
  return node.reshape(table, rows_first ? ir::Shape{shape[0], shape[1], 1, shape[2]}
                                        : ir::Shape{shape[0], 1, shape[1], shape[2]});
}

/// The pairs (x[2 i], x[2 i + 1]) rotated.
ir::Value* rotated_pairs(NodeImport& node, ir::Value* x, ir::Value* cos, ir::Value* sin,
                         std::int64_t size) {
  ir::Value *even = columns(node, x, 0, size, 2), *odd = columns(node, x, 1, size, 2);
  ir::Value* real = node.emit("Sub", {node.mul(even, cos), node.mul(odd, sin)});
  ir::Value* imaginary = node.add(node.mul(even, sin), node.mul(odd, cos));
  ir::Shape apart = real->type.shape;
  apart.emplace_back(1);
  const ir::Shape shape = x->type.shape;
  return node.reshape(concat(node, node.reshape(real, apart), node.reshape(imaginary, apart)),
                      shape);
}

/// The pairs (x[i], x[half + i]) rotated.
ir::Value* rotated_halves(NodeImport& node, ir::Value* x, ir::Value* cos, ir::Value* sin,
                          std::int64_t size) {
  ir::Value* first = columns(node, x, 0, size / 2);
  ir::Value* second = columns(node, x, size / 2, size);
  ir::Value* rotated = concat(node, node.emit("Neg", {second}), first);
  return node.add(node.mul(x, concat(node, cos, cos)), node.mul(rotated, concat(node, sin, sin)));
}

/// x [batch, heads, seq, size] or [batch, seq, heads * size].
void rotate(NodeImport& node, const RotaryTables& tables, std::int64_t heads) {
  ir::Value* x = node.input(0, std::span(kFloatTypes).first<3>());
  const ir::Shape given = x->type.shape;
  const bool rows_first = given.size() == 3;
  if (rows_first) {
    const auto size = heads > 0 ? ir::Dim::divide(given[2], heads) : std::nullopt;
    if (!size) node.fail("cannot split {} into {} heads", ir::str(x->type), heads);
    x = node.reshape(x, {given[0], given[1], heads, *size});
  }
  ir::Value* y = emit_rotary(node, x, tables, rows_first);
  node.set_output(0, rows_first ? node.reshape(y, given) : y);
}

/// RotaryEmbedding(x, cos, sin, position_ids).
void import_rotary_embedding(NodeImport& node) {
  rotate(node,
         {1, 2, node.optional_input(3), node.int_attribute("rotary_embedding_dim", 0),
          node.int_attribute("interleaved", 0) != 0},
         node.int_attribute("num_heads", 0));
}

/// com.microsoft::RotaryEmbedding(x, position_ids, cos, sin): position_ids [batch, seq], or [1],
/// the position of the first token of each sequence. Heads are as wide as the tables where their
/// number is not given.
void import_contrib_rotary_embedding(NodeImport& node) {
  if (const double scale = node.float_attribute("scale", 1.0); scale != 1.0)
    node.fail("a scale of {} is not supported", scale);
  if (node.int_attribute("is_packed_batching", 0))
    node.fail("packed batches (is_packed_batching) are not supported");
  const ir::Shape &x = node.shape(0), &table = node.shape(2);
  std::int64_t heads = node.int_attribute("num_heads", 0);
  if (x.size() == 3 && heads == 0 && table.size() == 2 && table[1].is_constant() &&
      x[2].is_constant() && table[1].constant() > 0)
    heads = x[2].constant() / (2 * table[1].constant());
  ir::Value* positions = node.input(1);
  if (positions->type.shape == ir::Shape{1} && x.size() > 2) {
    const ir::Dim seq = x[x.size() - 2];
    ir::Value* places = node.range(seq, positions->type.dtype);
    positions = node.reshape(node.add(places, positions), {1, seq});
  }
  rotate(node,
         {2, 3, positions, node.int_attribute("rotary_embedding_dim", 0),
          node.int_attribute("interleaved", 0) != 0},
         heads);
}

}  // namespace

ir::Value* emit_rotary(NodeImport& node, ir::Value* x, const RotaryTables& tables,
                       bool rows_first) {
  if (x->type.shape.size() != 4 || !x->type.shape[3].is_constant())
    node.fail("'{}' is {}, expected rank 3 or 4 and a known head size", x->name, ir::str(x->type));
  const std::int64_t size = x->type.shape[3].constant();
  const std::int64_t rotated = tables.width == 0 ? size : tables.width;
  if (rotated < 2 || rotated % 2 != 0 || rotated > size)
    node.fail("{} {} must be even, at least 2 and at most the head size {}",
              tables.width == 0 ? "head size" : "rotary_embedding_dim", rotated, size);
  ir::Value* cos = table_of(node, tables.cos, tables.positions, rotated / 2, rows_first);
  ir::Value* sin = table_of(node, tables.sin, tables.positions, rotated / 2, rows_first);
  ir::Value* part = rotated == size ? x : columns(node, x, 0, rotated);
  ir::Value* y = tables.interleaved ? rotated_pairs(node, part, cos, sin, rotated)
                                    : rotated_halves(node, part, cos, sin, rotated);
  if (rotated != size) y = concat(node, y, columns(node, x, rotated, size));
  if (y->type.shape != x->type.shape)
    node.fail("cosines {} and sines {} do not match '{}' {}", ir::str(node.input(tables.cos)->type),
              ir::str(node.input(tables.sin)->type), node.input(0)->name,
              ir::str(node.input(0)->type));
  return y;
}

Rules rotary_rules() {
  return {{"RotaryEmbedding",
           {import_rotary_embedding, {"interleaved", "num_heads", "rotary_embedding_dim"}}},
          {"com.microsoft::RotaryEmbedding",
           {import_contrib_rotary_embedding,
            {"interleaved", "num_heads", "rotary_embedding_dim", "scale", "is_packed_batching"}}}};
}

}  // namespace bertcl::onnx_io
