// SPDX-License-Identifier: Apache-2.0
// Models of one node whose operands are constants in a few bits.
#pragma once
#include <fmt/format.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "ir/graph.hpp"
#include "tests/onnx/text_model.hpp"

namespace bertcl::tests {

// Element types as TensorProto numbers them.
constexpr int f16 = 10, uint4 = 21, int4 = 22, uint2 = 25, int2 = 26;

using Ints = std::vector<int>;

/// Rows of `columns` integers of `bits` bits, the first in the low bits of the first byte.
inline std::string several_to_a_byte(const Ints& values, int bits, std::size_t columns) {
  std::string bytes;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t in_byte = i % columns % (8 / static_cast<std::size_t>(bits));
    if (in_byte == 0) bytes.push_back('\0');
    bytes.back() =
        static_cast<char>(static_cast<unsigned char>(bytes.back()) |
                          ((values[i] & ((1 << bits) - 1)) << (bits * static_cast<int>(in_byte))));
  }
  return bytes;
}

inline std::string bytes_of_floats(const std::vector<float>& values, int type = f32) {
  std::string bytes;
  for (const float v : values) {
    const std::uint16_t half = ir::float_to_half(v);
    bytes.append(
        type == f16 ? reinterpret_cast<const char*>(&half) : reinterpret_cast<const char*>(&v),
        type == f16 ? 2 : 4);
  }
  return bytes;
}

/// A node `n` of `op` that makes y of operands in the order in which they are added.
class OneNode {
 public:
  explicit OneNode(const std::string& op, const std::string& domain = "com.microsoft",
                   int opset = 21)
      : model(model_of(opset,
                       fmt::format("node {{ name: 'n' op_type: '{}' domain: '{}' output: 'y' }} "
                                   "output {{ name: 'y' }}",
                                   op, domain))) {}

  OneNode& input(const std::string& name, int type, const std::vector<std::string>& shape) {
    add_value(*model.mutable_graph()->add_input(), name, type, shape);
    node().add_input(name);
    return *this;
  }
  OneNode& constant(const std::string& name, int type, const std::vector<std::int64_t>& dims,
                    const std::string& raw) {
    onnx::TensorProto& tensor = *model.mutable_graph()->add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(type);
    for (const std::int64_t d : dims) tensor.add_dims(d);
    tensor.set_raw_data(raw);
    node().add_input(name);
    return *this;
  }
  OneNode& absent() {
    node().add_input("");
    return *this;
  }
  OneNode& attribute(const std::string& name, std::int64_t value) {
    onnx::AttributeProto& a = *node().add_attribute();
    a.set_name(name);
    a.set_type(onnx::AttributeProto::INT);
    a.set_i(value);
    return *this;
  }
  onnx::NodeProto& node() { return *model.mutable_graph()->mutable_node(0); }

  onnx::ModelProto model;
};

/// Random numbers of a test.
class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  /// From `low` to `high`.
  int whole(int low, int high) {
    return low + static_cast<int>(engine_() % static_cast<unsigned>(high - low + 1));
  }
  bool coin() { return engine_() % 2 == 0; }
  Ints wholes(std::size_t count, int low, int high) {
    Ints all(count);
    for (int& v : all) v = whole(low, high);
    return all;
  }
  /// Numbers that f16 holds, of both signs and never 0.
  std::vector<float> floats(std::size_t count) {
    std::vector<float> all(count);
    for (float& v : all) v = static_cast<float>(whole(1, 1000)) * (coin() ? 0x1p-9f : -0x1p-9f);
    return all;
  }

 private:
  std::mt19937 engine_;
};

inline std::vector<float> floats_of(const ir::Tensor& tensor) {
  const ir::Tensor wide = tensor.converted(ir::DType::f32);
  return {wide.as<float>().begin(), wide.as<float>().end()};
}

}  // namespace bertcl::tests
