// SPDX-License-Identifier: Apache-2.0
// Moves a tensor along an axis: places by a Range, taken modulo the length, and a choice.
#include "onnx/shift.hpp"

#include "ops/operands.hpp"

namespace bertcl::onnx_io {

ir::Value* emit_shift(NodeImport& node, ir::Value* x, std::size_t axis, std::int64_t by,
                      ir::Value* fill) {
  using enum ir::DType;
  if (by == 0) return x;
  const ir::Dim length = x->type.shape[axis];
  ir::Value* places = node.range(length, i64, by);
  ir::Value* count = node.emit_typed(ops::operands::sizes::op, {}, {i64, {}},
                                     {{"values", ir::str(ir::Shape{length})}});
  ir::Value* inside = by > 0 ? node.emit("Less", {places, count})
                             : node.emit("GreaterOrEqual", {places, node.scalar(0, i64)});
  ir::Value* moved = node.emit("Gather", {x, node.emit("Mod", {places, count})},
                               {{"axis", static_cast<std::int64_t>(axis)}});
  ir::Shape along{length};
  along.resize(x->type.shape.size() - axis, ir::Dim(1));
  return node.emit("Where", {node.reshape(inside, along), moved, fill});
}

}  // namespace bertcl::onnx_io
