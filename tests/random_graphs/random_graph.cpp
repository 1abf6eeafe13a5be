// SPDX-License-Identifier: Apache-2.0
// Random small graphs: the operators that they are made of.
#include "random_graph.hpp"

#include <cmath>

#include "random_spellings.hpp"

namespace bertcl::tests {
namespace {

using Values = RandomBuilder::Values;

class Generator : RandomSpellings {
 public:
  explicit Generator(unsigned seed) : RandomSpellings(seed) {
    heads_ = pick<int>({1, 2, 4});
    hidden_ = heads_ * pick<int>({2, 4, 6, 8});
    const ir::Dim batch = ir::Dim::symbol("batch"), seq = ir::Dim::symbol("seq");
    add_input("x", {ir::DType::f32, {batch, seq, hidden_}});
    ids_ = add_input("input_ids", {ir::DType::i64, {batch, seq}});
    mask_ = add_input("attention_mask", {ir::DType::i64, {batch, seq}});
  }

  ir::Graph make(int ops) {
    encodes_ = chance(25) && add(&Generator::encoder);
    for (int made = 0, tries = 0; made < ops && tries < 40 * ops; ++tries) made += add_one();
    if (encodes_ && chance(60)) add(&Generator::pooling);
    int outputs = 0;
    for (ir::Value* value : pool_)
      if (value->producer && value->users.empty())
        graph_.add_output("y" + std::to_string(outputs++), value);
    return std::move(graph_);
  }

 private:
  using Step = ir::Value* (Generator::*)();

  /// One more operator or pattern in the pool; false if what was tried does not fit.
  bool add_one() {
    static const std::vector<Step> steps = {&Generator::unary,         &Generator::unary,
                                            &Generator::binary,        &Generator::binary,
                                            &Generator::binary,        &Generator::comparison,
                                            &Generator::where,         &Generator::cast,
                                            &Generator::softmax,       &Generator::reduce,
                                            &Generator::transpose,     &Generator::transpose,
                                            &Generator::reshape,       &Generator::reshape,
                                            &Generator::unsqueeze,     &Generator::concat,
                                            &Generator::split,         &Generator::slice,
                                            &Generator::gather,        &Generator::pad,
                                            &Generator::expand,        &Generator::matmul,
                                            &Generator::linear,        &Generator::linear,
                                            &Generator::linear,        &Generator::linear,
                                            &Generator::layer_norm,    &Generator::layer_norm,
                                            &Generator::gelu,          &Generator::gelu,
                                            &Generator::residual,      &Generator::residual,
                                            &Generator::attention,     &Generator::attention,
                                            &Generator::embedding,     &Generator::quantize,
                                            &Generator::dynamic,       &Generator::cumulative,
                                            &Generator::gated,         &Generator::tiled,
                                            &Generator::requantized,   &Generator::smoothed,
                                            &Generator::rows_by_bytes, &Generator::integer_matmul,
                                            &Generator::norm_of_heads, &Generator::linear_in_parts};
    return add(pick(steps));
  }
  bool add(Step step) {
    const std::size_t nodes = graph_.nodes().size(), values = pool_.size();
    try {
      if (ir::Value* y = (this->*step)()) {
        pool_.push_back(y);
        return true;
      }
    } catch (const Error&) {
    }
    roll_back(nodes, values);
    return false;
  }

  // --- operators
  ir::Value* unary() {
    static const std::vector<std::string> names = {
        "Neg", "Abs",  "Sign", "Floor", "Ceil", "Round",      "Sqrt",    "Exp",  "Log",
        "Erf", "Tanh", "Sin",  "Cos",   "Relu", "Reciprocal", "Sigmoid", "Gelu", "Identity"};
    const std::string op = pick(names);
    ir::Value* x = any(ir::DType::f32);
    if (op == "Sqrt" || op == "Log" || op == "Reciprocal")
      x = emit("Add", {emit("Abs", {x}), scalar(0.75)});
    // A gate that is shut gives 0, or a number next to it: no jump lies there.
    if (op == "Sign" || op == "Floor" || op == "Ceil") x = emit("Add", {x, scalar(0.3)});
    ir::Attributes attributes;
    if (op == "Gelu" && chance(50)) attributes["approximate"] = std::string("tanh");
    return emit(op, {x}, attributes);
  }
  ir::Value* partner(ir::Value* x) {
    if (chance(50)) {
      ir::Value* other = any(x->type.dtype);
      if (other != x) return other;
    }
    ir::Sizes sizes;
    const ir::Shape& shape = x->type.shape;
    const std::size_t rank = static_cast<std::size_t>(from(0, static_cast<int>(shape.size())));
    for (std::size_t d = shape.size() - rank; d < shape.size(); ++d)
      sizes.push_back(shape[d].is_constant() && chance(70) ? shape[d].constant() : 1);
    return x->type.dtype == ir::DType::f32 ? floats(sizes, -2, 2)
                                           : ints(sizes, 1, 5, x->type.dtype);
  }
  ir::Value* binary() {
    static const std::vector<std::string> names = {"Add", "Add", "Sub", "Mul", "Mul", "Max", "Min"};
    if (chance(15)) {
      ir::Value* x = any(ir::DType::f32);
      if (chance(50)) return emit("Div", {x, floats({}, 0.5, 3)});
      return emit("Pow", {emit("Abs", {x}), scalar(pick<double>({1, 2, 3}))});
    }
    ir::Value* x = any(chance(80) ? ir::DType::f32 : ir::DType::i64);
    Values operands{x, partner(x)};
    if (chance(30)) std::swap(operands[0], operands[1]);
    if (x->type.dtype == ir::DType::i64 && chance(20))
      return emit("Mod", {x, ints({}, 2, 7)}, {{"fmod", std::int64_t{0}}});
    return emit(pick(names), operands);
  }
  ir::Value* comparison() {
    static const std::vector<std::string> names = {"Equal", "Less", "Greater", "LessOrEqual",
                                                   "GreaterOrEqual"};
    if (ir::Value* b = any(ir::DType::boolean); b && chance(40)) {
      if (chance(40)) return emit("Not", {b});
      return emit(pick<std::string>({"And", "Or", "Xor"}), {b, any(ir::DType::boolean)});
    }
    ir::Value* x = any(chance(50) ? ir::DType::f32 : ir::DType::i64);
    return emit(pick(names), {x, partner(x)});
  }
  ir::Value* where() {
    ir::Value* condition = any(ir::DType::boolean);
    if (!condition) return nullptr;
    ir::Value* x = any(ir::DType::f32);
    Values choices{x, chance(50) ? scalar(-1.5) : partner(x)};
    if (chance(50)) std::swap(choices[0], choices[1]);
    return emit("Where", {condition, choices[0], choices[1]});
  }
  ir::Value* cast() {
    ir::Value* x = pick(pool_);
    if (ir::is_int8(x->type.dtype)) return nullptr;
    return emit("Cast", {x}, {{"to", pick<std::string>({"f32", "i32", "i64", "bool", "f32"})}});
  }
  ir::Value* softmax() {
    ir::Value* x = any(ir::DType::f32, 1);
    const int rank = static_cast<int>(x->type.shape.size());
    return emit(chance(80) ? "Softmax" : "LogSoftmax", {x},
                {{"axis", std::int64_t{chance(70) ? -1 : from(-rank, rank - 1)}}});
  }
  ir::Value* reduce() {
    static const std::vector<std::string> names = {"ReduceSum", "ReduceMean", "ReduceMax",
                                                   "ReduceMin"};
    ir::Value* x = any(ir::DType::f32, 1);
    const int rank = static_cast<int>(x->type.shape.size());
    Axes axes{from(0, rank - 1)};
    if (rank > 1 && chance(30)) axes = {rank - 2, rank - 1};
    return emit(pick(names), {x}, {{"axes", axes}, {"keepdims", std::int64_t{chance(60)}}});
  }
  ir::Value* transpose() {
    ir::Value* x = pick(pool_);
    Axes perm(x->type.shape.size());
    for (std::size_t i = 0; i < perm.size(); ++i) perm[i] = static_cast<std::int64_t>(i);
    if (chance(50) && perm.size() > 1)
      std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
    else
      for (std::size_t i = perm.size(); i-- > 1;) std::swap(perm[i], perm[random_() % (i + 1)]);
    return emit("Transpose", {x}, {{"perm", perm}});
  }
  ir::Value* reshape() {
    ir::Value* x = pick(pool_);
    ir::Shape shape = x->type.shape;
    if (shape.empty()) return nullptr;
    const auto d = random_() % shape.size();
    if (chance(50) && d + 1 < shape.size()) {  // two axes become one
      shape[d] = shape[d] * shape[d + 1];
      shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(d) + 1);
    } else {
      const auto part = ir::Dim::divide(shape[d], ir::Dim(pick<int>({2, 3, heads_})));
      if (!part) return nullptr;
      const auto other = ir::Dim::divide(shape[d], *part);
      shape[d] = *part;
      shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(d), *other);
    }
    return shaped("Reshape", x, std::move(shape));
  }
  ir::Value* unsqueeze() {
    ir::Value* x = pick(pool_);
    const int rank = static_cast<int>(x->type.shape.size());
    for (int d = 0; d < rank; ++d)
      if (x->type.shape[static_cast<std::size_t>(d)] == ir::Dim(1) && chance(70))
        return emit("Squeeze", {x}, {{"axes", Axes{d}}});
    return emit("Unsqueeze", {x}, {{"axes", Axes{from(0, rank)}}});
  }
  ir::Value* concat() {
    ir::Value* x = any(ir::DType::f32, 1);
    const int axis = from(0, static_cast<int>(x->type.shape.size()) - 1);
    if (!x->type.shape[static_cast<std::size_t>(axis)].is_constant()) return nullptr;
    Values parts{x, x};
    if (chance(70)) parts[1] = chance(50) ? emit("Neg", {x}) : any(ir::DType::f32, 1);
    if (parts[1]->type.shape.size() != x->type.shape.size()) return nullptr;
    return emit("Concat", parts, {{"axis", std::int64_t{axis}}});
  }
  ir::Value* split() {
    ir::Value* x = any(ir::DType::f32, 1);
    const std::size_t axis = random_() % x->type.shape.size();
    const ir::Dim extent = x->type.shape[axis];
    if (!extent.is_constant() || extent.constant() < 2) return nullptr;
    const std::int64_t first = from(1, static_cast<int>(extent.constant()) - 1);
    const Values parts = emit_many("Split", {x},
                                   {{"axis", static_cast<std::int64_t>(axis)},
                                    {"split", Axes{first, extent.constant() - first}}},
                                   2);
    pool_.push_back(parts[1]);
    return parts[0];
  }
  ir::Value* slice() {
    ir::Value* x = pick(pool_);
    if (x->type.shape.empty()) return nullptr;
    const int axis = from(0, static_cast<int>(x->type.shape.size()) - 1);
    if (!x->type.shape[static_cast<std::size_t>(axis)].is_constant()) return nullptr;
    const int start = from(-3, 2), end = pick<int>({1, 2, 3, 100, -1}), step = pick<int>({1, 1, 2});
    return emit("Slice", {x, ints({1}, start, start), ints({1}, end, end), ints({1}, axis, axis),
                          ints({1}, step, step)});
  }
  ir::Value* gather() {
    ir::Value* x = any(ir::DType::f32, 1);
    const std::size_t axis = random_() % x->type.shape.size();
    const ir::Dim extent = x->type.shape[axis];
    const int last = extent.is_constant() ? static_cast<int>(extent.constant()) - 1 : 0;
    ir::Value* rows = ints(pick<ir::Sizes>({{}, {2}, {1, 3}}), -last - 1, last);
    return emit("Gather", {x, rows}, {{"axis", static_cast<std::int64_t>(axis)}});
  }
  ir::Value* pad() {
    ir::Value* x = any(ir::DType::f32, 1);
    Axes pads(2 * x->type.shape.size());
    pads[random_() % pads.size()] = from(1, 2);
    return emit("Pad", {x, scalar(0.25)}, {{"pads", pads}});
  }
  ir::Value* expand() {
    ir::Value* x = any(ir::DType::f32);
    ir::Shape shape = x->type.shape;
    for (ir::Dim& d : shape)
      if (d == ir::Dim(1) && chance(60)) d = from(2, 3);
    if (chance(50)) shape.insert(shape.begin(), ir::Dim(2));
    return shaped("Expand", x, std::move(shape));
  }
  ir::Value* matmul() {
    ir::Value *x = any(ir::DType::f32, 2), *other = any(ir::DType::f32, 2);
    if (chance(60)) {
      Axes perm(x->type.shape.size());
      for (std::size_t i = 0; i < perm.size(); ++i) perm[i] = static_cast<std::int64_t>(i);
      std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
      other = emit("Transpose", {x}, {{"perm", perm}});
    }
    return emit("Mul", {emit("MatMul", {x, other}), scalar(0.125)});
  }
  /// Sums along an axis, of matrices their upper or lower part.
  ir::Value* cumulative() {
    ir::Value* x = chance(50) ? any(ir::DType::f32, 1) : any(ir::DType::i64, 1);
    const int axis = from(0, static_cast<int>(x->type.shape.size()) - 1);
    const bool exclusive = chance(50), reverse = chance(50);
    ir::Value* y =
        emit("CumSum", {x, ints({}, axis, axis)},
             {{"exclusive", std::int64_t{exclusive}}, {"reverse", std::int64_t{reverse}}});
    if (y->type.shape.size() < 2) return y;
    Values operands{y};
    if (exclusive) operands.push_back(scalar(1, ir::DType::i64));
    return emit("Trilu", operands, {{"upper", std::int64_t{reverse}}});
  }

  // --- quantization
  ir::Value* quantize() { return through_bytes(any(ir::DType::f32)); }
  ir::Value* linear() {
    ir::Value* x = chance(50) ? any_tokens() : any(ir::DType::f32, 2);
    if (!x || !x->type.shape.back().is_constant()) return nullptr;
    const std::int64_t columns = chance(60) ? hidden_ : from(1, 3 * static_cast<int>(hidden_));
    ir::Value* y = linear_of(x, columns, chance(60));
    if (chance(20)) y = emit(pick<std::string>({"Relu", "Tanh"}), {y});
    return y;
  }
  /// As dynamic quantization writes MatMuls.
  ir::Value* dynamic() {
    ir::Value* x = any_tokens();
    const Values q = emit_many("DynamicQuantizeLinear", {x}, {}, 3);
    ir::Value* bytes = ints({hidden_, hidden_}, -128, 127, ir::DType::i8);
    ir::Value* sums = graph_.add("MatMulInteger", {q[0], bytes, q[2]}, {},
                                 {ir::DType::i32, x->type.shape}, nullptr, "v");
    ir::Value* scale = emit("Mul", {q[1], floats({}, 0.001, 0.01)});
    ir::Value* real =
        graph_.add("Cast", {sums}, {{"to", std::string("f32")}}, x->type, nullptr, "v");
    ir::Value* y = emit("Mul", {real, scale});
    return chance(70) ? emit("Add", {y, floats({hidden_}, -1, 1)}) : y;
  }

  // --- patterns
  ir::Value* layer_norm() {
    ir::Value* x = chance(60) ? any_tokens() : any(ir::DType::f32, 1);
    return x->type.shape.back().is_constant() ? norm_of(x) : nullptr;
  }
  ir::Value* gelu() {
    ir::Value *x = any(ir::DType::f32), *inner;
    if (chance(50)) {
      inner = emit("Erf", {chance(50) ? emit("Div", {x, scalar(std::sqrt(2.0))})
                                      : emit("Mul", {x, scalar(std::sqrt(0.5))})});
    } else {
      ir::Value* cube = emit("Pow", {x, scalar(3)});
      ir::Value* sum = emit("Add", {x, emit("Mul", {cube, scalar(0.044715)})});
      inner = emit("Tanh", {emit("Mul", {sum, scalar(std::sqrt(2.0 / M_PI))})});
    }
    ir::Value* gate = emit("Add", {inner, scalar(1)});
    return chance(50) ? emit("Mul", {emit("Mul", {x, gate}), scalar(0.5)})
                      : emit("Mul", {emit("Mul", {x, scalar(0.5)}), gate});
  }
};

}  // namespace

ir::Graph random_graph(unsigned seed) {
  return Generator(seed).make(5 + static_cast<int>(seed % 21));
}

}  // namespace bertcl::tests
