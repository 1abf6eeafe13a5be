// SPDX-License-Identifier: Apache-2.0
// Trilu that is no part of a mask of attention becomes a choice by the places of rows and columns.
//
//   Trilu(x, k) {upper}
//   becomes
//   kept = column - row <= k, or for the upper part k <= column - row;  Where(kept, x, 0)
#include <utility>
#include <vector>

#include "passes/pass.hpp"
#include "passes/rewrite.hpp"

namespace bertcl::passes {
namespace {

bool expand_trilu_at(ir::Graph& g, ir::Node& trilu) {
  if (trilu.op != "Trilu") return false;
  ir::Value* x = trilu.inputs[0];
  const ir::Type type = trilu.output()->type;
  const ir::Dim rows = type.shape[type.shape.size() - 2], columns = type.shape.back();
  const Expansion emit(g, trilu);
  const auto places = [&](const ir::Dim& extent) {
    return emit("Range", {}, {ir::DType::i64, {extent}}, {{"start", 0}, {"step", 1}});
  };
  ir::Value* row = emit("Reshape", {places(rows)}, {ir::DType::i64, {rows, 1}});
  ir::Value* diagonal = emit("Sub", {places(columns), row}, {ir::DType::i64, {rows, columns}});
  ir::Value* k = trilu.input(1);
  if (!k) k = g.add_constant("k", ir::Tensor::zeros(ir::DType::i64, {}));
  std::vector<ir::Value*> order{diagonal, k};
  if (trilu.int_attribute("upper", 1) != 0) std::swap(order[0], order[1]);
  ir::Value* kept = emit("LessOrEqual", std::move(order), {ir::DType::boolean, {rows, columns}});
  ir::Value* zero = g.add_constant("zero", ir::Tensor::zeros(type.dtype, {}));
  emit.finish(emit("Where", {kept, x, zero}, type));
  return true;
}

}  // namespace

Pass expand_trilu() { return rewriting("expand_trilu", expand_trilu_at); }

}  // namespace bertcl::passes
