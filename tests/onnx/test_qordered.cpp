// SPDX-License-Identifier: Apache-2.0
// QOrdered operators: every order of cuBLASLt against its index formula, and the arithmetic against
// plain loops.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "ops/interpret.hpp"
#include "tests/support/matchers.hpp"
#include "text_model.hpp"

namespace bertcl::onnx_io {
namespace {

using tests::add_value, tests::model_of;
using Bytes = std::vector<std::int8_t>;

constexpr int float_type = 1, int8_type = 3, int32_type = 6;
constexpr int orders[] = {0, 1, 2, 3, 4};

/// Where element (r, c) of a matrix of rows x cols lies, as the documentation of cublasLtOrder_t
/// describes each order.
std::size_t place(int order, std::size_t rows, std::size_t cols, std::size_t r, std::size_t c) {
  switch (order) {
    case 0:
      return c * rows + r;
    case 1:
      return r * cols + c;
    case 2:
      return c / 32 * 32 * rows + r * 32 + c % 32;
    case 3: {  // tiles of 8 x 32: even rows first, 4 columns at a time
      const std::size_t tile = (c / 32 * (rows / 8) + r / 8) * 256;
      return tile + r % 2 * 128 + c % 32 / 4 * 16 + r % 8 / 2 * 4 + c % 4;
    }
    default: {
      const std::size_t tile = (c / 32 * (rows / 32) + r / 32) * 1024, i = r % 32;
      return tile + ((i % 8 / 2 * 4 + i / 8) * 2 + i % 2) * 32 + c % 32;
    }
  }
}
Bytes ordered(const Bytes& matrix, int order, std::size_t rows, std::size_t cols) {
  Bytes out(matrix.size());
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < cols; ++c)
      out[place(order, rows, cols, r, c)] = matrix[r * cols + c];
  return out;
}
Bytes transposed(const Bytes& matrix, std::size_t rows, std::size_t cols) {
  return ordered(matrix, 0, rows, cols);
}

Bytes random_bytes(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  Bytes bytes(count);
  for (auto& b : bytes) b = static_cast<std::int8_t>(static_cast<int>(random() % 255) - 127);
  return bytes;
}
std::int8_t quantized(double value, double scale) {
  return static_cast<std::int8_t>(std::clamp(std::nearbyint(value / scale), -128.0, 127.0));
}

std::string scale(const std::string& name, const std::string& values) {
  const auto count = 1 + std::count(values.begin(), values.end(), ',');
  std::string text = fmt::format("initializer {{ name: '{}' data_type: 1 ", name);
  if (count > 1) text += fmt::format("dims: {} ", count);
  return text + "float_data: [" + values + "] }\n";
}

std::vector<ir::Tensor> run(const onnx::ModelProto& model, const ops::Tensors& inputs) {
  return ops::interpret(tests::read(model), inputs);
}
Bytes bytes_of(const ir::Tensor& t) {
  const auto values = t.as<std::int8_t>();
  return {values.begin(), values.end()};
}

TEST(QOrdered, QuantizeAndDequantizeWithEveryOrder) {
  constexpr std::size_t rows = 64, cols = 96;
  std::vector<float> x(rows * cols);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 37 % 251) / 2.0f - 60.0f;
  Bytes expected;
  for (const float v : x) expected.push_back(quantized(v, 0.5));
  for (const int order : orders) {
    auto model = model_of(13, fmt::format(R"(
node {{ op_type: 'QuantizeWithOrder' domain: 'com.microsoft' input: ['x', 's'] output: 'q'
  attribute {{ name: 'order_input' type: INT i: 1 }} attribute {{ name: 'order_output' type: INT i: {0} }} }}
node {{ op_type: 'DequantizeWithOrder' domain: 'com.microsoft' input: ['q', 's'] output: 'y'
  attribute {{ name: 'order_input' type: INT i: {0} }} attribute {{ name: 'order_output' type: INT i: 1 }}
  attribute {{ name: 'to' type: INT i: 1 }} }}
)",
                                          order) +
                                  scale("s", "0.5"));
    add_value(*model.mutable_graph()->add_input(), "x", float_type, {"64", "96"});
    add_value(*model.mutable_graph()->add_output(), "q", int8_type, {"64", "96"});
    add_value(*model.mutable_graph()->add_output(), "y", float_type, {"64", "96"});
    const auto found = run(model, {{"x", ir::Tensor::of<float>({rows, cols}, x)}});
    EXPECT_EQ(bytes_of(found[0]), ordered(expected, order, rows, cols)) << "order " << order;
    std::vector<double> real;
    for (const auto v : expected) real.push_back(0.5 * v);
    EXPECT_EQ(found[1].to_doubles(), real) << "order " << order;
  }
}

/// Orders of A and B that the operator knows: row by column, and COL32 by either tiled order.
TEST(QOrdered, MatMul) {
  constexpr std::size_t m = 5, k = 32, n = 64;
  const Bytes a = random_bytes(m * k, 1), b = random_bytes(k * n, 2), c = random_bytes(m * n, 3);
  std::string b_scales;
  std::vector<double> b_scale;
  for (std::size_t j = 0; j < n; ++j) {
    b_scale.push_back(static_cast<double>(1 + j % 4) / 64);
    b_scales += fmt::format("{}{}", j ? ", " : "", b_scale.back());
  }
  Bytes expected(m * n);
  for (std::size_t i = 0; i < m; ++i)
    for (std::size_t j = 0; j < n; ++j) {
      int sum = 0;
      for (std::size_t p = 0; p < k; ++p) sum += a[i * k + p] * b[p * n + j];
      expected[i * n + j] = quantized(sum * 0.25 * b_scale[j] + 0.5 * c[i * n + j], 4.0);
    }
  for (const auto& [order_a, order_b] : {std::pair{1, 0}, {2, 3}, {2, 4}}) {
    auto model = model_of(13, fmt::format(R"(
node {{ op_type: 'QOrderedMatMul' domain: 'com.microsoft'
  input: ['a', 'sa', 'b', 'sb', 'sy', '', 'c', 'sc'] output: 'y'
  attribute {{ name: 'order_A' type: INT i: {0} }} attribute {{ name: 'order_B' type: INT i: {1} }}
  attribute {{ name: 'order_Y' type: INT i: {0} }} }}
)",
                                          order_a, order_b) +
                                  scale("sa", "0.25") + scale("sb", b_scales) + scale("sy", "4") +
                                  scale("sc", "0.5"));
    auto& graph = *model.mutable_graph();
    add_value(*graph.add_input(), "a", int8_type, {"1", "m", "32"});
    add_value(*graph.add_input(), "b", int8_type, {"32", "64"});
    add_value(*graph.add_input(), "c", int8_type, {"1", "m", "64"});
    add_value(*graph.add_output(), "y", int8_type, {"1", "m", "64"});
    const Bytes weight =
        order_b == 0 ? ordered(b, 0, k, n) : ordered(transposed(b, k, n), order_b, n, k);
    const auto found = run(model, {{"a", ir::Tensor::of({1, m, k}, ordered(a, order_a, m, k))},
                                   {"b", ir::Tensor::of({k, n}, weight)},
                                   {"c", ir::Tensor::of({1, m, n}, ordered(c, order_a, m, n))}});
    EXPECT_EQ(bytes_of(found[0]), ordered(expected, order_a, m, n))
        << "orders " << order_a << " and " << order_b;
  }
}

TEST(QOrdered, GeluAndLayerNormalization) {
  constexpr std::size_t rows = 3, cols = 32;
  const Bytes x = random_bytes(rows * cols, 5);
  std::string gamma = "1.5";
  for (std::size_t i = 1; i < cols; ++i) gamma += ", 1.5";
  for (const int order : {1, 2}) {
    auto model = model_of(13, fmt::format(R"(
node {{ op_type: 'QOrderedGelu' domain: 'com.microsoft' input: ['x', 's', 'sg'] output: 'g'
  attribute {{ name: 'order_X' type: INT i: {0} }} attribute {{ name: 'order_Y' type: INT i: {0} }} }}
node {{ op_type: 'QOrderedLayerNormalization' domain: 'com.microsoft'
  input: ['x', 's', 'gamma', '', 'sn'] output: 'n'
  attribute {{ name: 'order_X' type: INT i: {0} }} attribute {{ name: 'order_Y' type: INT i: {0} }}
  attribute {{ name: 'epsilon' type: FLOAT f: 0.01 }} }}
)",
                                          order) +
                                  scale("s", "0.03125") + scale("sg", "0.0625") +
                                  scale("sn", "0.03125") + scale("gamma", gamma));
    auto& graph = *model.mutable_graph();
    add_value(*graph.add_input(), "x", int8_type, {"3", "32"});
    add_value(*graph.add_output(), "g", int8_type, {"3", "32"});
    add_value(*graph.add_output(), "n", int8_type, {"3", "32"});
    Bytes gelu, norm;
    for (std::size_t r = 0; r < rows; ++r) {
      double mean = 0, variance = 0;
      for (std::size_t c = 0; c < cols; ++c) mean += x[r * cols + c] / 32.0 / cols;
      for (std::size_t c = 0; c < cols; ++c)
        variance += std::pow(x[r * cols + c] / 32.0 - mean, 2) / cols;
      for (std::size_t c = 0; c < cols; ++c) {
        const double v = x[r * cols + c] / 32.0;
        gelu.push_back(quantized(v * 0.5 * (1 + std::erf(v / std::sqrt(2.0))), 0.0625));
        norm.push_back(quantized(1.5 * (v - mean) / std::sqrt(variance + 0.01), 0.03125));
      }
    }
    const auto found =
        run(model, {{"x", ir::Tensor::of({rows, cols}, ordered(x, order, rows, cols))}});
    EXPECT_EQ(bytes_of(found[0]), ordered(gelu, order, rows, cols)) << "order " << order;
    EXPECT_EQ(bytes_of(found[1]), ordered(norm, order, rows, cols)) << "order " << order;
  }
}

/// One head of the whole operator by plain loops; the second sequence has two keys of three.
TEST(QOrdered, Attention) {
  constexpr std::size_t batch = 2, seq = 3, hidden = 4, heads = 2, size = hidden / heads;
  const Bytes x = random_bytes(batch * seq * hidden, 7);
  const Bytes weights[3] = {random_bytes(hidden * hidden, 8), random_bytes(hidden * hidden, 9),
                            random_bytes(hidden * hidden, 10)};
  const double qkv_scale[3] = {0.125, 0.25, 0.5}, bias[3] = {1, -2, 0.5};
  std::vector<Bytes> qkv(3, Bytes(batch * seq * hidden));
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t r = 0; r < batch * seq; ++r)
      for (std::size_t c = 0; c < hidden; ++c) {
        int sum = 0;
        for (std::size_t p = 0; p < hidden; ++p)
          sum += x[r * hidden + p] * weights[i][p * hidden + c];
        qkv[i][r * hidden + c] = quantized(sum / 1024.0 + bias[i], qkv_scale[i]);
      }
  Bytes expected(batch * seq * hidden);
  for (std::size_t b = 0; b < batch; ++b)
    for (std::size_t h = 0; h < heads; ++h)
      for (std::size_t r = 0; r < seq; ++r) {
        const std::size_t keys = b == 0 ? 3 : 2;
        std::vector<double> e(keys);
        double total = 0;
        for (std::size_t j = 0; j < keys; ++j) {
          double score = 0;
          for (std::size_t d = 0; d < size; ++d)
            score += qkv[0][(b * seq + r) * hidden + h * size + d] * qkv_scale[0] *
                     qkv[1][(b * seq + j) * hidden + h * size + d] * qkv_scale[1];
          e[j] = std::exp(quantized(score, 0.75) * 0.75 / std::sqrt(size));
          total += e[j];
        }
        for (std::size_t d = 0; d < size; ++d) {
          double sum = 0;
          for (std::size_t j = 0; j < keys; ++j)
            sum += quantized(e[j] / total, 1.0 / 128) / 128.0 * qkv_scale[2] *
                   qkv[2][(b * seq + j) * hidden + h * size + d];
          expected[(b * seq + r) * hidden + h * size + d] = quantized(sum, 0.25);
        }
      }
  auto model = model_of(13, R"(
node { op_type: 'QOrderedAttention' domain: 'com.microsoft'
  input: ['x', 'sx', 's0', 's1', 's2', 'w0', 'w1', 'w2', 'sw', 'sw', 'sw', 'b0', 'b1', 'b2', 'sqk',
          'sp', 'sy', 'mask'] output: 'y'
  attribute { name: 'num_heads' type: INT i: 2 } attribute { name: 'order_input' type: INT i: 1 }
  attribute { name: 'order_weight' type: INT i: 0 } attribute { name: 'order_output' type: INT i: 1 } }
)" + scale("sx", "0.03125") + scale("sw", "0.03125") +
                                scale("s0", "0.125") + scale("s1", "0.25") + scale("s2", "0.5") +
                                scale("b0", "1, 1, 1, 1") + scale("b1", "-2, -2, -2, -2") +
                                scale("b2", "0.5, 0.5, 0.5, 0.5") + scale("sqk", "0.75") +
                                scale("sp", "0.0078125") + scale("sy", "0.25"));
  auto& graph = *model.mutable_graph();
  add_value(*graph.add_input(), "x", int8_type, {"2", "3", "4"});
  ops::Tensors inputs{{"x", ir::Tensor::of({batch, seq, hidden}, x)}};
  for (const int i : {0, 1, 2}) {
    const std::string name = fmt::format("w{}", i);
    add_value(*graph.add_input(), name, int8_type, {"4", "4"});
    inputs[name] = ir::Tensor::of({hidden, hidden}, ordered(weights[i], 0, hidden, hidden));
  }
  add_value(*graph.add_input(), "mask", int32_type, {"2"});
  inputs["mask"] = ir::Tensor::of<std::int32_t>({2}, {3, 2});
  add_value(*graph.add_output(), "y", int8_type, {"2", "3", "4"});
  EXPECT_EQ(bytes_of(run(model, inputs)[0]), expected);
}

TEST(QOrdered, AnOrderThatDoesNotFitIsRefused) {
  auto model = model_of(13, R"(
node { name: 'n' op_type: 'DequantizeWithOrder' domain: 'com.microsoft' input: ['x', 's'] output: 'y'
  attribute { name: 'order_input' type: INT i: 2 } attribute { name: 'order_output' type: INT i: 1 }
  attribute { name: 'to' type: INT i: 1 } }
)" + scale("s", "0.5"));
  add_value(*model.mutable_graph()->add_input(), "x", int8_type, {"4", "31"});
  add_value(*model.mutable_graph()->add_output(), "y", float_type, {"4", "31"});
  EXPECT_THAT(tests::failure(model),
              HasSubstr("order 2 (COL32) needs an extent divisible by 32, found 31"))
      << tests::failure(model);
}

}  // namespace
}  // namespace bertcl::onnx_io
