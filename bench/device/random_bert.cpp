// SPDX-License-Identifier: Apache-2.0
// Writes a BERT for questions with random weights as ONNX, for machines without Python's onnx.
//
//   build/bench/device/random_bert large.onnx large
//
// The same graph as tools/python/make_bert.py writes with --layer-norm whole --mask=-10000 --shapes
// constant.
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <map>
#include <string>
#include <vector>

#include "onnx/proto.hpp"

namespace {

struct Size {
  std::int64_t layers, hidden, heads, intermediate, vocabulary;
};
const std::map<std::string, Size> kSizes{{"mini", {4, 256, 4, 1024, 30522}},
                                         {"base", {12, 768, 12, 3072, 30522}},
                                         {"large", {24, 1024, 16, 4096, 30522}}};
constexpr std::int64_t kPositions = 512;

/// SplitMix64 (Steele, Lea and Flood 2014); four 16-bit parts of a number sum to about a normal
/// one.
class Normal {
 public:
  float operator()(double deviation) {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    const double sum =
        static_cast<double>((z & 0xffff) + (z >> 16 & 0xffff) + (z >> 32 & 0xffff) + (z >> 48)) /
        65536;
    return static_cast<float>((sum - 2) * std::sqrt(3.0) * deviation);
  }

 private:
  std::uint64_t state_ = 1;
};

using Names = std::vector<std::string>;

class Writer {
 public:
  explicit Writer(const Size& size) : size_(size) {
    model_.set_ir_version(8);
    model_.set_producer_name("random_bert");
    model_.add_opset_import()->set_version(17);
    graph_.set_name("bert");
  }

  onnx::ModelProto& model() {
    for (const char* name : {"input_ids", "attention_mask", "token_type_ids"})
      describe(*graph_.add_input(), name, onnx::TensorProto::INT64);
    const std::string x0 = embeddings();
    const std::string mask = added_mask();
    std::string x = x0;
    for (std::int64_t i = 0; i < size_.layers; ++i) x = layer(x, mask);
    const std::string logits = linear(x, size_.hidden, 2, 0.08);
    const Names halves = node("Split", {logits, ints({1, 1})}, 2);
    integer("axis", -1);
    for (int i : {0, 1}) {
      const std::string name = i == 0 ? "start_logits" : "end_logits";
      node("Squeeze", {halves[i], ints({-1})}, 1);
      last_->set_output(0, name);
      describe(*graph_.add_output(), name, onnx::TensorProto::FLOAT);
    }
    return model_;
  }

 private:
  static void describe(onnx::ValueInfoProto& value, const std::string& name, int type) {
    value.set_name(name);
    auto& tensor = *value.mutable_type()->mutable_tensor_type();
    tensor.set_elem_type(type);
    for (const char* extent : {"batch", "sequence"})
      tensor.mutable_shape()->add_dim()->set_dim_param(extent);
  }

  Names node(const std::string& kind, const Names& inputs, int outputs) {
    last_ = graph_.add_node();
    last_->set_op_type(kind);
    last_->set_name(kind + "_" + std::to_string(graph_.node_size()));
    for (const std::string& input : inputs) last_->add_input(input);
    for (int i = 0; i < outputs; ++i)
      last_->add_output(last_->name() + "_output_" + std::to_string(i));
    return {last_->output().begin(), last_->output().end()};
  }
  std::string op(const std::string& kind, const Names& inputs) { return node(kind, inputs, 1)[0]; }

  onnx::AttributeProto& attribute(const char* name, onnx::AttributeProto::AttributeType type) {
    onnx::AttributeProto& a = *last_->add_attribute();
    a.set_name(name);
    a.set_type(type);
    return a;
  }
  void integer(const char* name, std::int64_t value) {
    attribute(name, onnx::AttributeProto::INT).set_i(value);
  }

  onnx::TensorProto& initializer(int type, std::initializer_list<std::int64_t> shape) {
    onnx::TensorProto& tensor = *graph_.add_initializer();
    tensor.set_name("constant_" + std::to_string(graph_.initializer_size()));
    tensor.set_data_type(type);
    for (const std::int64_t extent : shape) tensor.add_dims(extent);
    return tensor;
  }
  std::string ints(const std::vector<std::int64_t>& values) {
    auto& tensor = initializer(onnx::TensorProto::INT64, {std::ssize(values)});
    for (const std::int64_t value : values) tensor.add_int64_data(value);
    return tensor.name();
  }
  std::string number(float value) {
    auto& tensor = initializer(onnx::TensorProto::FLOAT, {});
    tensor.add_float_data(value);
    return tensor.name();
  }
  std::string random(std::initializer_list<std::int64_t> shape, double deviation, float mean = 0) {
    auto& tensor = initializer(onnx::TensorProto::FLOAT, shape);
    std::int64_t count = 1;
    for (const std::int64_t extent : shape) count *= extent;
    std::vector<float> values(count);
    for (float& value : values) value = mean + normal_(deviation);
    tensor.set_raw_data(values.data(), values.size() * sizeof(float));
    return tensor.name();
  }

  std::string linear(const std::string& x, std::int64_t rows, std::int64_t columns,
                     double deviation = 0.02) {
    const double scaled = deviation * std::sqrt(768.0 / static_cast<double>(rows));
    const std::string matmul = op("MatMul", {x, random({rows, columns}, scaled)});
    return op("Add", {random({columns}, 0.05), matmul});
  }

  std::string norm(const std::string& x) {
    const std::string gamma = random({size_.hidden}, 0.1, 1);
    const std::string beta = random({size_.hidden}, 0.1);
    const std::string y = op("LayerNormalization", {x, gamma, beta});
    integer("axis", -1);
    attribute("epsilon", onnx::AttributeProto::FLOAT).set_f(1e-12f);
    return y;
  }

  std::string gelu(const std::string& x) {
    const std::string gate = op("Erf", {op("Div", {x, number(std::sqrt(2.0f))})});
    return op("Mul", {op("Mul", {x, op("Add", {gate, number(1)})}), number(0.5f)});
  }

  std::string embeddings() {
    std::vector<std::int64_t> everywhere(kPositions);
    for (std::size_t i = 0; i < everywhere.size(); ++i) everywhere[i] = static_cast<int>(i);
    const std::string length = op("Gather", {op("Shape", {"input_ids"}), ints({1})});
    const std::string positions =
        op("Slice", {ints(everywhere), ints({0}), length, ints({0}), ints({1})});
    const auto row = [&](std::int64_t rows, const std::string& index) {
      return op("Gather", {random({rows, size_.hidden}, 0.02), index});
    };
    const std::string words = row(size_.vocabulary, "input_ids");
    const std::string total = op("Add", {words, row(2, "token_type_ids")});
    return norm(op("Add", {total, row(kPositions, op("Unsqueeze", {positions, ints({0})}))}));
  }

  std::string added_mask() {
    const std::string rows = op("Unsqueeze", {"attention_mask", ints({1, 2})});
    const std::string kept = op("Cast", {rows});
    integer("to", onnx::TensorProto::FLOAT);
    return op("Mul", {op("Sub", {number(1), kept}), number(-10000)});
  }

  std::string head_view(const std::string& x, std::array<std::int64_t, 4> order) {
    const std::int64_t h = size_.hidden;
    const std::string y =
        op("Reshape", {linear(x, h, h), ints({0, 0, size_.heads, h / size_.heads})});
    return transposed(y, order);
  }
  std::string transposed(const std::string& x, std::array<std::int64_t, 4> order) {
    const std::string y = op("Transpose", {x});
    onnx::AttributeProto& perm = attribute("perm", onnx::AttributeProto::INTS);
    for (const std::int64_t axis : order) perm.add_ints(axis);
    return y;
  }

  std::string layer(const std::string& x, const std::string& mask) {
    const std::int64_t h = size_.hidden;
    const std::string q = head_view(x, {0, 2, 1, 3}), k = head_view(x, {0, 2, 3, 1});
    const std::string v = head_view(x, {0, 2, 1, 3});
    const float root = std::sqrt(static_cast<float>(h / size_.heads));
    const std::string scores = op("Div", {op("MatMul", {q, k}), number(root)});
    const std::string weights = op("Softmax", {op("Add", {scores, mask})});
    integer("axis", -1);
    const std::string context = transposed(op("MatMul", {weights, v}), {0, 2, 1, 3});
    const std::string merged = op("Reshape", {context, ints({0, 0, h})});
    const std::string y = norm(op("Add", {linear(merged, h, h), x}));
    const std::string wide = gelu(linear(y, h, size_.intermediate));
    return norm(op("Add", {linear(wide, size_.intermediate, h), y}));
  }

  Size size_;
  Normal normal_;
  onnx::ModelProto model_;
  onnx::GraphProto& graph_ = *model_.mutable_graph();
  onnx::NodeProto* last_ = nullptr;
};

}  // namespace

int main(int argc, char** argv) {
  const auto size = argc == 3 ? kSizes.find(argv[2]) : kSizes.end();
  if (size == kSizes.end()) {
    std::fprintf(stderr, "usage: random_bert OUT.onnx mini|base|large\n");
    return 2;
  }
  const std::filesystem::path path = argv[1], temporary = path.string() + ".part";
  std::ofstream stream(temporary, std::ios::binary);
  if (!Writer(size->second).model().SerializeToOstream(&stream) || !stream.flush()) {
    std::fprintf(stderr, "random_bert: cannot write %s\n", temporary.c_str());
    return 2;
  }
  stream.close();
  std::filesystem::rename(temporary, path);
  return 0;
}
