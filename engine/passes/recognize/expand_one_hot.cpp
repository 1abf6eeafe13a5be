// SPDX-License-Identifier: Apache-2.0
// OneHot that is no look-up in a table of floats becomes a choice by equal places.
//
//   OneHot(ids, depth, [off, on]) {axis}
//   becomes
//   index = Where(ids < 0, ids + depth, ids);  Where(index == 0 .. depth - 1, on, off)
//
// An index outside of the depth is equal to no place.
#include <utility>
#include <vector>

#include "ops/op.hpp"
#include "ops/type_constraints.hpp"
#include "passes/pass.hpp"
#include "passes/rewrite.hpp"

namespace bertcl::passes {
namespace {

bool expand_one_hot_at(ir::Graph& g, ir::Node& one_hot) {
  if (one_hot.op != "OneHot") return false;
  ir::Value *ids = one_hot.inputs[0], *depth = one_hot.inputs[1], *values = one_hot.inputs[2];
  const ir::Type of_ids = ids->type, type = one_hot.output()->type;
  if (!ops::types::indices.contains(of_ids.dtype)) return false;
  const Expansion emit(g, one_hot);
  const ir::DType integer = of_ids.dtype;
  const auto number = [&](std::int64_t x) {
    return g.add_constant("place", ir::Tensor::scalar(x).converted(integer));
  };
  ir::Value *zero = number(0), *one = number(1);
  const ir::Type scalar{integer, {}};
  if (depth->type.dtype != integer)
    depth = emit("Cast", {depth}, {integer, depth->type.shape},
                 {{"to", std::string(ir::name_of(integer))}});
  if (!depth->type.shape.empty()) depth = emit("Reshape", {depth}, scalar);
  ir::Value* negative = emit("Less", {ids, zero}, {ir::DType::boolean, of_ids.shape});
  ir::Value* index = emit("Where", {negative, emit("Add", {ids, depth}, of_ids), ids}, of_ids);

  const std::size_t axis = ops::axis_of(one_hot, "axis", -1, type.shape.size());
  ir::Type column{integer, of_ids.shape}, row{integer, {type.shape[axis]}};
  column.shape.insert(column.shape.begin() + static_cast<std::ptrdiff_t>(axis), 1);
  ir::Value* places = emit("Range", {}, row, {{"start", 0}, {"step", 1}});
  row.shape.resize(type.shape.size() - axis, 1);
  places = emit("Reshape", {places}, row);
  ir::Value* equal =
      emit("Equal", {emit("Reshape", {index}, column), places}, {ir::DType::boolean, type.shape});
  const auto value = [&](ir::Value* at) {
    return emit("Gather", {values, at}, {values->type.dtype, {}}, {{"axis", 0}});
  };
  ir::Value *on = value(one), *off = value(zero);
  emit.finish(emit("Where", {equal, on, off}, type));
  return true;
}

}  // namespace

Pass expand_one_hot() { return rewriting("expand_one_hot", expand_one_hot_at); }

}  // namespace bertcl::passes
