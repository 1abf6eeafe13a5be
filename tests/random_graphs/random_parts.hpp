// SPDX-License-Identifier: Apache-2.0
// The parts of BERT and its relatives in random graphs: linears, norms, attention, embeddings.
#pragma once
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "random_builder.hpp"

namespace bertcl::tests {

class RandomParts : protected RandomBuilder {
 protected:
  using Axes = std::vector<std::int64_t>;

  explicit RandomParts(unsigned seed) : RandomBuilder(seed) {}

  ir::Value* weight(std::int64_t rows, std::int64_t columns, bool quantized) {
    if (!quantized) return floats({rows, columns}, -0.7, 0.7);
    if (chance(20)) {  // stored as PyTorch stores it
      ir::Value* stored =
          emit("DequantizeLinear",
               {ints({columns, rows}, -128, 127, ir::DType::i8), floats({columns}, 0.001, 0.01),
                constant(ir::Tensor::zeros(ir::DType::i8, {columns}), ir::DType::i8)},
               {{"axis", std::int64_t{0}}});
      return emit("Transpose", {stored}, {{"perm", Axes{1, 0}}});
    }
    ir::Value* bytes = ints({rows, columns}, -128, 127, ir::DType::i8);
    if (chance(50))
      return emit("DequantizeLinear",
                  {bytes, floats({columns}, 0.001, 0.01),
                   constant(ir::Tensor::zeros(ir::DType::i8, {columns}), ir::DType::i8)},
                  {{"axis", std::int64_t{1}}});
    return emit("DequantizeLinear", {bytes, floats({}, 0.001, 0.01), zero_point(ir::DType::i8)});
  }
  ir::Value* linear_of(ir::Value* x, std::int64_t columns, bool quantized) {
    const std::int64_t inner = x->type.shape.back().constant();
    if (quantized) x = through_bytes(x);
    ir::Value* y = emit("MatMul", {x, weight(inner, columns, quantized)});
    if (chance(75)) y = emit("Add", {y, floats({columns}, -1, 1)});
    if (quantized && chance(40)) y = through_bytes(y);
    return y;
  }
  ir::Value* norm_of(ir::Value* x) {
    const std::int64_t n = x->type.shape.back().constant();
    ir::Value *gamma = floats({n}, 0.5, 1.5), *beta = floats({n}, -1, 1);
    const double epsilon = pick<double>({1e-3, 1e-2});
    if (chance(30))
      return emit("LayerNormalization", {x, gamma, beta},
                  {{"axis", std::int64_t{-1}}, {"epsilon", epsilon}});
    const ir::Attributes last{{"axes", Axes{-1}}, {"keepdims", std::int64_t{1}}};
    const bool rms = chance(20);
    ir::Value* centred = rms ? x : emit("Sub", {x, emit("ReduceMean", {x}, last)});
    ir::Value* square =
        chance(50) ? emit("Pow", {centred, scalar(2)}) : emit("Mul", {centred, centred});
    ir::Value* deviation =
        emit("Sqrt", {emit("Add", {emit("ReduceMean", {square}, last), scalar(epsilon)})});
    ir::Value* y = chance(50) ? emit("Div", {centred, deviation})
                              : emit("Mul", {emit("Reciprocal", {deviation}), centred});
    y = emit("Mul", {gamma, y});
    return rms ? y : emit("Add", {y, beta});
  }
  ir::Value* gated() {
    ir::Value* x = any_tokens();
    const bool quantized = chance(50), silu = chance(50);
    ir::Value *gate = linear_of(x, hidden_, quantized), *up = linear_of(x, hidden_, quantized);
    gate = silu ? emit("Mul", {gate, emit("Sigmoid", {gate})}) : emit("Gelu", {gate});
    return emit("Mul", {up, gate});
  }
  ir::Value* residual() {
    ir::Value *x = any_tokens(), *other = any_tokens();
    if (chance(50)) other = linear_of(other, hidden_, chance(60));
    if (chance(30)) x = through_bytes(x);
    return norm_of(emit("Add", {x, other}));
  }
  /// Rows of a table of floats, of bytes or of halves, or by a MatMul of one-hot rows.
  ir::Value* rows_of_table() {
    const ir::Sizes sizes{table_rows, hidden_};
    const ir::Attributes first{{"axis", std::int64_t{0}}};
    switch (from(0, 5)) {
      case 0:
        return emit("DequantizeLinear",
                    {emit("Gather", {ints(sizes, 0, 255, ir::DType::u8), ids_}, first),
                     floats({}, 0.002, 0.01), zero_point(ir::DType::u8)});
      case 1: {
        const ir::Tensor table = *floats(sizes, -1, 1)->constant;
        return cast_to(ir::DType::f32,
                       emit("Gather", {constant(table, ir::DType::f16), ids_}, first));
      }
      case 2: {
        ir::Shape shape = ids_->type.shape;
        shape.emplace_back(table_rows);
        const float on = pool_.size() % 2 == 0 ? 1 : 2;  // only 1 is a look-up
        ir::Value* off_on = constant(ir::Tensor::of<float>({2}, {0, on}), ir::DType::f32);
        ir::Value* one_hot =
            emit_typed("OneHot", {ids_, scalar(table_rows, ir::DType::i64), off_on},
                       {{"axis", std::int64_t{-1}}}, {ir::DType::f32, shape});
        return emit("MatMul", {one_hot, floats(sizes, -1, 1)});
      }
      default:
        return emit("Gather", {floats(sizes, -1, 1), ids_}, first);
    }
  }
  ir::Value* embedding() {
    ir::Value* word = rows_of_table();
    if (chance(50)) word = emit("Add", {word, any_tokens()});
    return chance(50) ? norm_of(word) : word;
  }
  /// Added to scores: 0 for keys that count, -10000 for others.
  ir::Value* additive_mask() {
    ir::Value* wide = emit("Unsqueeze", {mask_}, {{"axes", Axes{1, 2}}});
    ir::Value* real = graph_.add("Cast", {wide}, {{"to", std::string("f32")}},
                                 {ir::DType::f32, wide->type.shape}, nullptr, "v");
    ir::Value* hidden = emit("Sub", {scalar(1), emit("Identity", {real})});
    return graph_.add("Mul", {hidden, scalar(-10000)}, {}, hidden->type, nullptr, "v");
  }
  /// The places 0..seq-1.
  ir::Value* places() {
    return emit_typed("Range", {}, {{"start", std::int64_t{0}}, {"step", std::int64_t{1}}},
                      {ir::DType::i64, {ids_->type.shape[1]}});
  }
  /// The places 0..seq-1 times a frequency for each column, [seq, size], or other numbers in each
  /// sequence, [batch, 1, seq, size].
  ir::Value* angles(std::int64_t size) {
    if (chance(40)) {
      ir::Value* given = emit("Unsqueeze", {ids_}, {{"axes", Axes{1, 3}}});
      return emit("Mul",
                  {emit("Cast", {given}, {{"to", std::string("f32")}}), floats({size}, 0.1, 1)});
    }
    ir::Value* real = cast_to(ir::DType::f32, places());
    return emit("Mul", {emit("Unsqueeze", {real}, {{"axes", Axes{1}}}), floats({size}, 0.1, 1)});
  }
  /// Heads [batch, heads, seq, size] by rotary positions.
  ir::Value* rotated(ir::Value* x, ir::Value* angles) {
    const std::int64_t half = x->type.shape.back().constant() / 2;
    const Values halves =
        emit_many("Split", {x}, {{"axis", std::int64_t{3}}, {"split", Axes{half, half}}}, 2);
    ir::Value* turned =
        emit("Concat", {emit("Neg", {halves[1]}), halves[0]}, {{"axis", std::int64_t{-1}}});
    return emit("Add", {emit("Mul", {x, emit("Cos", {angles})}),
                        emit("Mul", {turned, emit("Sin", {angles})})});
  }
  /// A MatMul of the heads with a table that is repeated for every sequence.
  ir::Value* tiled() {
    ir::Value* x = any_tokens();
    const ir::Shape& tokens = x->type.shape;
    const std::int64_t size = hidden_ / heads_, columns = from(1, 4);
    x = shaped("Reshape", x, {tokens[0], tokens[1], heads_, size});
    x = emit("Transpose", {x}, {{"perm", Axes{0, 2, 1, 3}}});
    x = shaped("Reshape", x, {tokens[0] * ir::Dim(heads_), tokens[1], size});
    ir::Value* times = emit_typed("sizes", {}, {{"values", ir::str(ir::Shape{tokens[0], 1, 1})}},
                                  {ir::DType::i64, {3}});
    const bool transposed = chance(50);
    ir::Value* table = transposed ? floats({heads_, columns, size}, -0.7, 0.7)
                                  : floats({heads_, size, columns}, -0.7, 0.7);
    ir::Shape shape = table->type.shape;
    shape[0] = x->type.shape[0];
    ir::Value* all = emit_typed("Tile", {table, times}, {}, {ir::DType::f32, shape});
    if (chance(40)) all = emit("Div", {all, floats({}, 0.5, 3)});
    if (transposed) all = emit("Transpose", {all}, {{"perm", Axes{0, 2, 1}}});
    if (chance(40)) all = through_bytes(all);
    return emit("MatMul", {x, all});
  }
  ir::Value* attention() { return attention(any_tokens(), encodes_ || chance(70)); }
  ir::Value* attention(ir::Value* x, bool masked) {
    const bool quantized = chance(40), all_bytes = quantized && chance(50);
    if (quantized && chance(50)) x = through_bytes(x);
    const ir::Shape& tokens = x->type.shape;
    const std::int64_t size = hidden_ / heads_;
    ir::Value* positions = chance(40) ? angles(size) : nullptr;
    const bool normalizes = chance(30), normalizes_first = !positions || chance(50);
    const auto head = [&](Axes perm, bool rotates, bool is_value = false) {
      ir::Value* y = linear_of(x, hidden_, quantized);
      const bool normal = normalizes && !is_value, steps = rotates || normal;
      const bool open = all_bytes && (steps || y->producer->op != "DequantizeLinear");
      const bool after = steps || chance(40);
      if (open && !after) y = through_bytes(y);
      y = shaped("Reshape", y, {tokens[0], tokens[1], heads_, size});
      if (normal && normalizes_first) y = norm_of(y);
      y = emit("Transpose", {y}, {{"perm", std::move(perm)}});
      if (normal && !normalizes_first) y = norm_of(y);
      if (rotates) y = rotated(y, positions);
      return open && after ? through_bytes(y) : y;
    };
    ir::Value* q = head({0, 2, 1, 3}, positions);
    ir::Value* k = positions
                       ? emit("Transpose", {head({0, 2, 1, 3}, true)}, {{"perm", Axes{0, 1, 3, 2}}})
                       : head({0, 2, 3, 1}, false);
    ir::Value* v = head({0, 2, 1, 3}, false, true);
    const double scale = 1 / std::sqrt(static_cast<double>(size));
    const bool before = chance(30);
    if (before) q = emit("Mul", {q, scalar(scale)});
    ir::Value* scores = emit("MatMul", {q, k});
    if (!before)
      scores = chance(50) ? emit("Mul", {scores, scalar(scale)})
                          : emit("Div", {scores, scalar(1 / scale)});
    if (masked) {
      ir::Value* mask = additive_mask();
      scores = graph_.add("Add", {scores, mask}, {}, scores->type, nullptr, "v");
    }
    ir::Value* p = emit("Softmax", {scores}, {{"axis", std::int64_t{-1}}});
    if (all_bytes || (quantized && chance(30))) {
      ir::Value *step = scalar(1.0 / 255), *zero = scalar(0, ir::DType::u8);
      p = emit("DequantizeLinear", {emit("QuantizeLinear", {p, step, zero}), step, zero});
    }
    ir::Value* y = emit("Transpose", {emit("MatMul", {p, v})}, {{"perm", Axes{0, 2, 1, 3}}});
    return shaped("Reshape", y, tokens);
  }

  static constexpr std::int64_t table_rows = 11;

  bool encodes_ = false;  // one encoder, all of whose attention has the mask

  ir::Value *ids_ = nullptr, *mask_ = nullptr;
  int heads_ = 1;
  std::int64_t hidden_ = 4;
};

}  // namespace bertcl::tests
