// SPDX-License-Identifier: Apache-2.0
// Spellings of exporters and quantizers in random graphs, which passes turn into one.
#pragma once
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "random_parts.hpp"

namespace bertcl::tests {

class RandomSpellings : protected RandomParts {
 protected:
  explicit RandomSpellings(unsigned seed) : RandomParts(seed) {}

  // --- an encoder
  /// The embeddings and a layer, as the first part of a graph.
  ir::Value* encoder() {
    encodes_ = true;
    ir::Value* x = emit("Add", {rows_of_table(), rows_of_places()});
    x = emit("LayerNormalization", {x, floats({hidden_}, 0.5, 1.5), floats({hidden_}, -1, 1)},
             {{"axis", std::int64_t{-1}}, {"epsilon", 1e-3}});
    if (chance(50)) x = emit("Mul", {x, column_of_mask()});
    states_ = norm_of(emit("Add", {x, attention(x, true)}));
    return states_;
  }
  ir::Value* rows_of_places() {
    ir::Value* numbers = chance(60) ? places() : places_by_slice();
    return emit("Gather", {floats({table_rows, hidden_}, -1, 1), numbers},
                {{"axis", std::int64_t{0}}});
  }
  /// As PyTorch wrote them in 2019: the end of the slice is clamped in float.
  ir::Value* places_by_slice() {
    ir::Value* extents = cast_to(ir::DType::f32, emit("Shape", {ids_}));
    ir::Value* largest = constant(ir::Tensor::of<float>({2}, {1, table_rows}), ir::DType::f32);
    ir::Value* end = cast_to(ir::DType::i64, emit("Min", {extents, largest}));
    std::vector<std::int64_t> numbers(table_rows);
    std::iota(numbers.begin(), numbers.end(), 0);
    ir::Value* all = constant(ir::Tensor::of({1, table_rows}, std::move(numbers)), ir::DType::i64);
    ir::Value* axes = constant(ir::Tensor::of<std::int64_t>({2}, {0, 1}), ir::DType::i64);
    const ir::Dim rows = graph_.fresh_symbol(), columns = graph_.fresh_symbol();
    ir::Value* slice = graph_.add("Slice", {all, ints({2}, 0, 0), end, axes}, {},
                                  {ir::DType::i64, {rows, columns}}, nullptr, "v");
    return shaped("Expand", slice, ids_->type.shape);
  }
  /// [batch, seq, 1], 1 for the tokens that count.
  ir::Value* column_of_mask() {
    return cast_to(ir::DType::f32, emit("Unsqueeze", {mask_}, {{"axes", Axes{2}}}));
  }
  /// Mean or largest vector of the tokens that count.
  ir::Value* pooling() {
    const ir::Attributes over_tokens{{"axes", Axes{1}}, {"keepdims", std::int64_t{0}}};
    ir::Value* counts = shaped("Expand", column_of_mask(), states_->type.shape);
    ir::Value* y = nullptr;
    if (chance(60)) {
      ir::Value* sum = emit("ReduceSum", {emit("Mul", {states_, counts})}, over_tokens);
      y = emit("Div", {sum, emit("Max", {emit("ReduceSum", {counts}, over_tokens), scalar(1e-9)})});
    } else {
      const ir::Type& type = states_->type;
      ir::Value* gone = emit("Sub", {scalar(1), counts});
      ir::Value* far = graph_.add("Mul", {gone, scalar(-1e9)}, {}, type, nullptr, "v");
      ir::Value* kept = graph_.add("Add", {states_, far}, {}, type, nullptr, "v");
      y = emit("ReduceMax", {kept}, over_tokens);
    }
    if (chance(50)) return y;
    ir::Value* length = emit("ReduceL2", {y}, {{"axes", Axes{1}}, {"keepdims", std::int64_t{1}}});
    return emit("Div", {y, emit("Max", {length, scalar(1e-12)})});
  }

  // --- quantization
  /// Quantized in the same way before and after its axes are reversed.
  ir::Value* requantized() {
    ir::Value *x = any(ir::DType::f32, 2), *scale = floats({}, 0.01, 0.06);
    ir::Value* zero = zero_point(chance(50) ? ir::DType::u8 : ir::DType::i8);
    Axes perm(x->type.shape.size());
    std::iota(perm.rbegin(), perm.rend(), 0);
    x = emit("Transpose", {through_bytes(x, scale, zero)}, {{"perm", perm}});
    return through_bytes(x, scale, zero);
  }
  /// A linear whose operand is quantized after each channel was multiplied or divided.
  ir::Value* smoothed() {
    ir::Value* x = emit(chance(50) ? "Mul" : "Div", {any_tokens(), floats({hidden_}, 0.5, 2)});
    return linear_of(x, hidden_, true);
  }
  /// Bytes by a scale for each row, and what a MatMul makes of them.
  ir::Value* rows_by_bytes() {
    ir::Value* x = any_tokens();
    ir::Value* largest =
        emit("ReduceMax", {emit("Abs", {x})}, {{"axes", Axes{-1}}, {"keepdims", std::int64_t{1}}});
    ir::Value* scale = emit("Div", {emit("Max", {largest, scalar(1e-4)}), scalar(127)});
    ir::Value* q = cast_to(ir::DType::i8, emit("Round", {emit("Div", {x, scale})}));
    if (chance(40)) return emit("Mul", {cast_to(ir::DType::f32, q), scale});
    ir::Value* sums =
        graph_.add("MatMulInteger", {q, ints({hidden_, hidden_}, -128, 127, ir::DType::i8)}, {},
                   {ir::DType::i32, x->type.shape}, nullptr, "v");
    ir::Value* real =
        graph_.add("Cast", {sums}, {{"to", std::string("f32")}}, x->type, nullptr, "v");
    ir::Value* y = graph_.add("Mul", {real, scale}, {}, x->type, nullptr, "v");
    return emit("Mul", {y, floats({hidden_}, 0.001, 0.01)});
  }
  /// QLinearMatMul of tokens with a weight, or of heads with each other.
  ir::Value* integer_matmul() {
    ir::Value* x = any_tokens();
    const bool of_heads = chance(40);
    if (of_heads) {
      const ir::Shape& tokens = x->type.shape;
      x = shaped("Reshape", x, {tokens[0], tokens[1], heads_, hidden_ / heads_});
      x = emit("Transpose", {x}, {{"perm", Axes{0, 2, 1, 3}}});
    }
    ir::Value *a_scale = floats({}, 0.01, 0.06), *a_zero = zero_point(ir::DType::u8);
    ir::Value *y_scale = floats({}, 0.01, 0.06), *y_zero = zero_point(ir::DType::u8);
    ir::Value* a = emit("QuantizeLinear", {x, a_scale, a_zero});
    Values operands{a, a_scale, a_zero};
    ir::Shape shape = x->type.shape;
    if (of_heads) {
      ir::Value* turned = emit("Transpose", {a}, {{"perm", Axes{0, 1, 3, 2}}});
      operands.insert(operands.end(), {turned, a_scale, a_zero});
      shape.back() = shape[2];
    } else {
      ir::Value* w_scale = floats(chance(50) ? ir::Sizes{} : ir::Sizes{hidden_}, 0.001, 0.01);
      operands.insert(operands.end(), {ints({hidden_, hidden_}, -128, 127, ir::DType::i8), w_scale,
                                       zero_point(ir::DType::i8)});
    }
    operands.insert(operands.end(), {y_scale, y_zero});
    ir::Value* y = emit_typed("QLinearMatMul", operands, {}, {ir::DType::u8, shape});
    return emit("DequantizeLinear", {y, y_scale, y_zero});
  }

  // --- shapes of layers
  /// A norm over two axes.
  ir::Value* norm_of_heads() {
    ir::Value* x = any_tokens();
    const ir::Shape& tokens = x->type.shape;
    const std::int64_t size = hidden_ / heads_;
    x = shaped("Reshape", x, {tokens[0], tokens[1], heads_, size});
    return emit("LayerNormalization", {x, floats({heads_, size}, 0.5, 1.5)},
                {{"axis", std::int64_t{-2}}, {"epsilon", 1e-3}});
  }
  /// One linear for a gate and what it lets through, or for queries, keys and values.
  ir::Value* linear_in_parts() {
    ir::Value* x = any_tokens();
    const ir::Shape tokens = x->type.shape;
    const bool quantized = chance(50);
    if (chance(50)) {
      const std::int64_t n = from(16, 20);
      const Values halves = emit_many("Split", {linear_of(x, 2 * n, quantized)},
                                      {{"axis", std::int64_t{-1}}, {"split", Axes{n, n}}}, 2);
      return emit("Mul", {halves[0], emit("Sigmoid", {halves[1]})});
    }
    ir::Value* all = shaped("Reshape", linear_of(x, 3 * hidden_, quantized),
                            {tokens[0], tokens[1], 3, heads_, hidden_ / heads_});
    const Values parts =
        emit_many("Split", {all}, {{"axis", std::int64_t{2}}, {"split", Axes{1, 1, 1}}}, 3);
    Values heads;
    for (ir::Value* part : parts) heads.push_back(emit("Squeeze", {part}, {{"axes", Axes{2}}}));
    return emit("Add", {heads[2], emit("Mul", {heads[0], heads[1]})});
  }

 private:
  ir::Value* states_ = nullptr;  // of the encoder
};

}  // namespace bertcl::tests
