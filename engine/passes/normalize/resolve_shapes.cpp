// SPDX-License-Identifier: Apache-2.0
// Shape arithmetic disappears: types say what it computed.
//
//   Shape -> Gather -> Concat -> shape;  Reshape(x, shape) -> y
//   becomes
//   Reshape(x) -> y: f32[batch, seq, 12, 32]
//
// Integer values that are sizes become constants or `sizes`; Reshape, Expand and Range lose their
// shape operands. A shape that only a run can tell keeps its operands.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "ops/infer.hpp"
#include "ops/op.hpp"
#include "ops/operands.hpp"
#include "ops/support.hpp"
#include "passes/pass.hpp"

namespace bertcl::passes {

using namespace ops::operands;

namespace {

class Resolver {
 public:
  explicit Resolver(ir::Graph& g) : g_(g), symbols_(g.input_symbols()) {}

  bool run() {
    bool changed = g_.remove_dead();
    ops::infer(g_, values_);
    const std::vector<Reach> reaches = reaches_of_slices();
    for (ir::Node* node : g_.node_list()) {
      for (ir::Value* out : node->outputs) changed |= replace_known(*node, out);
      changed |= drop_shape_operand(*node);
    }
    changed |= g_.remove_dead();
    // Lowering asks for those of the Slices that stay.
    for (const Reach& reach : reaches)
      if (!g_.contains(reach.slice)) g_.assume_at_most(reach.size, reach.most);
    return changed;
  }

 private:
  /// How many elements of an axis a Slice takes for granted.
  struct Reach {
    const ir::Node* slice;
    ir::Dim size, most;
  };

  std::vector<Reach> reaches_of_slices() {
    std::vector<Reach> reaches;
    for (const auto& node : g_.nodes()) {
      if (node->op != "Slice" || node->inputs.size() < 3) continue;
      const auto numbers = [&](std::size_t i) {
        return node->input(i) ? values_.constants(node->input(i)) : std::nullopt;
      };
      const auto starts = numbers(1), axes = numbers(3), steps = numbers(4);
      if (!starts) continue;  // infer() has refused axes and steps that are no constants
      const ir::Shape &from = node->inputs[0]->type.shape, &to = node->output()->type.shape;
      for (std::size_t i = 0; i < starts->size(); ++i) {
        const std::size_t axis = ops::NodeContext{*node}.axis(
            axes ? (*axes)[i] : static_cast<std::int64_t>(i), from.size());
        if (const auto size = ops::slice_reach((*starts)[i], steps ? (*steps)[i] : 1, to[axis]))
          reaches.push_back({node.get(), *size, from[axis]});
      }
    }
    return reaches;
  }

  /// True if every run knows the sizes from the shapes of the inputs.
  bool is_known(const ir::Shape& shape) const { return !ir::unknown_symbol(shape, symbols_); }

  bool replace_known(ir::Node& node, ir::Value* out) {
    if (out->users.empty() && !g_.is_output(out)) return false;
    if (node.op == sizes::op || ir::is_float(out->type.dtype)) return false;
    const std::vector<ir::Dim>* elements = values_.find(out);
    const auto sizes = ir::constant_shape(out->type.shape);
    if (!elements || !sizes) return false;
    if (const auto numbers = values_.constants(out)) {
      const ir::Tensor t =
          ir::Tensor::of<std::int64_t>(*sizes, *numbers).converted(out->type.dtype);
      g_.replace_uses(out, g_.add_constant(out->name, t));
      return true;
    }
    ir::Shape as_shape(elements->begin(), elements->end());
    if (!is_known(as_shape)) return false;
    ir::Value* made =
        g_.add(sizes::op, {}, {{"values", ir::str(as_shape)}}, out->type, &node, out->name);
    values_.set(made, *elements);
    g_.replace_uses(out, made);
    return true;
  }

  bool drop_shape_operand(ir::Node& node) {
    if (!is_known(node.outputs.empty() ? ir::Shape{} : node.output()->type.shape)) return false;
    if ((node.op == "Reshape" || node.op == "Expand") && node.inputs.size() == 2) {
      g_.set_input(&node, 1, nullptr);
      node.inputs.resize(1);
      return true;
    }
    if (node.op == "Range" && node.inputs.size() == 3) {
      const auto start = values_.constants(node.inputs[0]);
      const auto step = values_.constants(node.inputs[2]);
      if (!start || !step) return false;
      node.attributes["start"] = start->front();
      node.attributes["step"] = step->front();
      for (std::size_t i = 0; i < 3; ++i) g_.set_input(&node, i, nullptr);
      node.inputs.clear();
      return true;
    }
    return false;
  }

  ir::Graph& g_;
  ir::Symbols symbols_;
  ops::SymbolicValues values_;
};

}  // namespace

Pass resolve_shapes() {
  return {"resolve_shapes", [](ir::Graph& g) { return Resolver(g).run(); }};
}

}  // namespace bertcl::passes
