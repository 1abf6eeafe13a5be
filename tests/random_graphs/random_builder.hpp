// SPDX-License-Identifier: Apache-2.0
// Graphs to which values are added one by one, each checked on a sample of its inputs.
#pragma once
#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "bertcl/error.hpp"
#include "ops/infer.hpp"
#include "ops/interpret.hpp"

namespace bertcl::tests {

class RandomBuilder {
 public:
  using Values = std::vector<ir::Value*>;

 protected:
  explicit RandomBuilder(unsigned seed) : random_(seed) {}

  // --- choices
  int from(int low, int high) {
    return low + static_cast<int>(random_() % static_cast<unsigned>(high - low + 1));
  }
  bool chance(int percent) { return from(1, 100) <= percent; }
  template <class T>
  T pick(const std::vector<T>& list) {
    return list[static_cast<std::size_t>(from(0, static_cast<int>(list.size()) - 1))];
  }
  /// A value made so far, recent ones more often; null if none is of the type.
  ir::Value* any(ir::DType dtype, std::size_t min_rank = 0) {
    Values found;
    for (ir::Value* v : pool_)
      if (v->type.dtype == dtype && v->type.shape.size() >= min_rank) found.push_back(v);
    if (found.empty()) return nullptr;
    return chance(60) ? found[found.size() - 1 - random_() % std::min<std::size_t>(3, found.size())]
                      : pick(found);
  }
  ir::Value* any_tokens() {
    Values found;
    for (ir::Value* v : pool_)
      if (v->type == pool_.front()->type) found.push_back(v);
    return found[found.size() - 1 - random_() % std::min<std::size_t>(3, found.size())];
  }

  // --- constants
  ir::Value* floats(ir::Sizes sizes, double low, double high) {
    std::vector<double> values(static_cast<std::size_t>(ir::element_count(sizes)));
    for (double& v : values) v = low + (high - low) * from(0, 1023) / 1023.0;
    return constant(ir::Tensor::of(std::move(sizes), std::move(values)), ir::DType::f32);
  }
  ir::Value* ints(ir::Sizes sizes, int low, int high, ir::DType dtype = ir::DType::i64) {
    std::vector<double> values(static_cast<std::size_t>(ir::element_count(sizes)));
    for (double& v : values) v = from(low, high);
    return constant(ir::Tensor::of(std::move(sizes), std::move(values)), dtype);
  }
  ir::Value* scalar(double value, ir::DType dtype = ir::DType::f32) {
    return constant(ir::Tensor::scalar(value), dtype);
  }
  ir::Value* constant(const ir::Tensor& tensor, ir::DType dtype) {
    ir::Value* value = graph_.add_constant("c", tensor.converted(dtype));
    known_[value] = *value->constant;
    return value;
  }

  // --- nodes
  ir::Value* add_input(const char* name, ir::Type type) {
    ir::Value* input = graph_.add_input(name, type);
    const ir::Sizes sizes = ir::evaluate(type.shape, bindings_);
    std::vector<double> values(static_cast<std::size_t>(ir::element_count(sizes)));
    for (double& v : values) v = ir::is_float(type.dtype) ? from(-256, 256) / 128.0 : from(0, 1);
    known_[input] = ir::Tensor::of(sizes, std::move(values)).converted(type.dtype);
    pool_.push_back(input);
    return input;
  }
  /// The results of a node; throws Error if the operands do not fit or the values are unfit.
  Values emit_many(const std::string& op, Values inputs, ir::Attributes attributes,
                   std::size_t results) {
    ir::Node* node = graph_.add_node(op, std::move(inputs), std::move(attributes),
                                     std::vector<ir::Graph::Result>(results, {"v", {}}));
    if (!fits_for_all_sizes(*node)) throw Error("only some sizes fit");
    ops::infer(graph_, *node, symbolic_);
    return checked(*node);
  }
  ir::Value* emit(const std::string& op, Values inputs, ir::Attributes attributes = {}) {
    return emit_many(op, std::move(inputs), std::move(attributes), 1).front();
  }
  /// The same where the type of the result is known.
  ir::Value* emit_typed(const std::string& op, Values inputs, ir::Attributes attributes,
                        ir::Type type) {
    ir::Value* y =
        graph_.add(op, std::move(inputs), std::move(attributes), std::move(type), nullptr, "v");
    return checked(*y->producer).front();
  }
  ir::Value* cast_to(ir::DType dtype, ir::Value* x) {
    return emit("Cast", {x}, {{"to", std::string(ir::name_of(dtype))}});
  }
  ir::Value* zero_point(ir::DType dtype) {
    return dtype == ir::DType::u8 ? ints({}, 100, 150, dtype)
                                  : ints({}, chance(50) ? 0 : -9, chance(50) ? 0 : 9, dtype);
  }
  /// x quantized and dequantized again.
  ir::Value* through_bytes(ir::Value* x) {
    const ir::DType dtype = chance(50) ? ir::DType::u8 : ir::DType::i8;
    ir::Value *scale = floats({}, 0.01, 0.06), *zero = zero_point(dtype);
    return chance(10) ? through_arithmetic(x, scale, zero) : through_bytes(x, scale, zero);
  }
  ir::Value* through_bytes(ir::Value* x, ir::Value* scale, ir::Value* zero) {
    return emit("DequantizeLinear", {emit("QuantizeLinear", {x, scale, zero}), scale, zero});
  }
  /// The same, written out.
  ir::Value* through_arithmetic(ir::Value* x, ir::Value* scale, ir::Value* zero) {
    const ir::DType dtype = zero->type.dtype;
    const double lowest = dtype == ir::DType::u8 ? 0 : -128;
    ir::Value* shift = scalar(zero->constant->to_doubles().front());
    ir::Value* steps = chance(50)
                           ? emit("Div", {x, scale})
                           : emit("Mul", {x, scalar(1 / scale->constant->to_doubles().front())});
    ir::Value* q = emit("Add", {emit("Round", {steps}), shift});
    q = emit("Min", {emit("Max", {q, scalar(lowest)}), scalar(lowest + 255)});
    return emit("Mul", {emit("Sub", {cast_to(ir::DType::f32, cast_to(dtype, q)), shift}), scale});
  }
  /// Reshape and its kind: the result type says all, or a shape that is computed.
  ir::Value* shaped(const std::string& op, ir::Value* x, ir::Shape shape) {
    if (op == "Reshape" && !shape.empty() && chance(25)) return reshaped_by_arithmetic(x, shape);
    return emit_typed(op, {x}, {}, {x->type.dtype, std::move(shape)});
  }
  ir::Value* reshaped_by_arithmetic(ir::Value* x, const ir::Shape& shape) {
    ir::Value* extents = emit("Shape", {x});
    Values parts;
    for (const ir::Dim& d : shape) {
      const int axis =
          static_cast<int>(std::ranges::find(x->type.shape, d) - x->type.shape.begin());
      if (d.is_constant())
        parts.push_back(ints({1}, static_cast<int>(d.constant()), static_cast<int>(d.constant())));
      else if (axis < std::ssize(x->type.shape))
        parts.push_back(
            emit("Gather", {extents, ints({1}, axis, axis)}, {{"axis", std::int64_t{0}}}));
      else
        parts.push_back(ints({1}, -1, -1));
    }
    return emit_typed("Reshape", {x, emit("Concat", parts, {{"axis", std::int64_t{0}}})}, {},
                      {x->type.dtype, shape});
  }
  /// False where a symbol would have to be equal to a number, or to another symbol.
  static bool fits_for_all_sizes(const ir::Node& node) {
    if (node.inputs.size() < 2 || node.op == "Gather" || node.op == "Slice" ||
        node.op.starts_with("LayerNorm") || node.op.ends_with("eLinear"))
      return true;
    const ir::Shape &a = node.inputs[0]->type.shape, &b = node.inputs[1]->type.shape;
    const std::size_t rank = std::min(a.size(), b.size());
    const bool matmul = node.op == "MatMul";
    if (matmul && (rank < 2 || a.back() != b[b.size() - 2])) return false;
    for (std::size_t i = matmul ? 3 : 1; i <= rank; ++i) {
      const ir::Dim &x = a[a.size() - i], &y = b[b.size() - i];
      const bool broadcasts = node.op != "Concat" && (x == ir::Dim(1) || y == ir::Dim(1));
      if (x != y && !broadcasts && !(x.is_constant() && y.is_constant())) return false;
    }
    return node.inputs.size() < 3 ||
           (fits_for_all_sizes({node.op, {node.inputs[0], node.inputs[2]}, {}, {}, {}}) &&
            fits_for_all_sizes({node.op, {node.inputs[1], node.inputs[2]}, {}, {}, {}}));
  }
  Values checked(ir::Node& node) {
    for (ir::Value* y : node.outputs) {
      for (const ir::Dim& d : y->type.shape)
        for (const std::string& symbol : d.symbols())
          if (!bindings_.contains(symbol)) throw Error("the size depends on values");
      const ir::Tensor sample = ops::evaluate_subgraph(y, known_, bindings_);
      if (sample.size() == 0 || sample.size() > largest_tensor || sample.shape().size() > 5)
        throw Error("too large");
      for (const double v : sample.to_doubles())
        if (!(std::abs(v) <= largest_value) && !ir::is_int8(sample.dtype()))
          throw Error("out of range");
      known_[y] = sample;
    }
    return node.outputs;
  }

  /// Takes back what was added since there were that many nodes and values to choose from.
  void roll_back(std::size_t nodes, std::size_t values) {
    pool_.resize(values);
    symbolic_ = {};  // it may speak of values that go
    while (graph_.nodes().size() > nodes) {
      ir::Node* last = graph_.nodes().back().get();
      for (const ir::Value* y : last->outputs) known_.erase(y);
      graph_.erase(last);
    }
  }

  static constexpr double largest_value = 200.0;
  static constexpr std::int64_t largest_tensor = 3000;  // elements

  std::mt19937 random_;
  ir::Graph graph_;
  Values pool_;  // what operators may read

 private:
  const ir::Bindings bindings_{{"batch", 2}, {"seq", 3}};  // of the sample
  ops::Known known_;
  ops::SymbolicValues symbolic_;
};

}  // namespace bertcl::tests
