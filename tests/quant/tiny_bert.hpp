// SPDX-License-Identifier: Apache-2.0
// A BERT of one layer with random weights, as torch's exporter names its parts.
#pragma once
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "tests/quant/graphs.hpp"

namespace bertcl::quant::tests {

inline constexpr int kTinyVocabulary = 50, kTinyHidden = 16, kTinyHeads = 2, kTinyInner = 32;

struct TinyOptions {
  bool nameless = false;  ///< nodes without names, so that only constants tell modules
  std::int64_t opset = 17;
  int vocabulary = kTinyVocabulary;
  /// Attention as torch exports scaled_dot_product_attention: the scale on both operands, a mask of
  /// truth values, and 0 for rows without keys.
  bool sdpa = false;
};

/// input_ids, attention_mask [batch, seq] -> start_logits, end_logits [batch, seq]. Names of nodes
/// are paths.
class TinyBert {
 public:
  explicit TinyBert(const TinyOptions& options = {})
      : g_(options.opset), nameless_(options.nameless), sdpa_(options.sdpa) {
    free_input("input_ids");
    free_input("attention_mask");
    const std::string layer = "/bert/encoder/layer.0";
    const auto embedded =
        node("Gather", "/bert/embeddings/word_embeddings",
             {random("bert.embeddings.word_embeddings.weight", {options.vocabulary, kTinyHidden}),
              "input_ids"});
    const auto twice = node("Add", "/bert/embeddings", {embedded, embedded});
    const auto x = norm("/bert/embeddings", twice);
    const auto q = heads(layer + "/attention/self", "query", x, {0, 2, 1, 3});
    const auto k = heads(layer + "/attention/self", "key", x, {0, 2, 3, 1});
    const auto v = heads(layer + "/attention/self", "value", x, {0, 2, 1, 3});
    const auto p = probabilities(layer + "/attention/self", q, k);
    const auto context = node("MatMul", layer + "/attention/self", {p, v});
    const auto turned = node("Transpose", layer + "/attention/self", {context});
    g_.set("perm", std::vector<std::int64_t>{0, 2, 1, 3});
    const auto flat =
        node("Reshape", layer + "/attention/self", {turned, g_.ints("flat", {0, 0, kTinyHidden})});
    const auto dense = linear(layer + "/attention/output/dense", flat, kTinyHidden, kTinyHidden);
    const auto a =
        norm(layer + "/attention/output", node("Add", layer + "/attention/output", {dense, x}));
    const auto inner = linear(layer + "/intermediate/dense", a, kTinyHidden, kTinyInner);
    const auto out = linear(layer + "/output/dense", gelu(layer + "/intermediate", inner),
                            kTinyInner, kTinyHidden);
    const auto y = norm(layer + "/output", node("Add", layer + "/output", {out, a}));
    const auto logits = linear("/qa_outputs", y, kTinyHidden, 2);
    g_.node("Split", {logits, g_.ints("halves", {1, 1})}, "start", {{"axis", -1}});
    g_.graph().mutable_node(g_.graph().node_size() - 1)->add_output("end");
    for (const std::string name : {"start", "end"}) {
      g_.node("Squeeze", {name, g_.ints(name + "_axes", {-1})}, name + "_logits");
      g_.output(name + "_logits");
      auto* type = g_.graph()
                       .mutable_output(g_.graph().output_size() - 1)
                       ->mutable_type()
                       ->mutable_tensor_type();
      for (const char* symbol : {"batch", "seq"})
        type->mutable_shape()->add_dim()->set_dim_param(symbol);
    }
  }
  GraphBuilder& builder() { return g_; }

 private:
  void free_input(const std::string& name) {
    g_.input(name);
    auto* type = g_.graph()
                     .mutable_input(g_.graph().input_size() - 1)
                     ->mutable_type()
                     ->mutable_tensor_type();
    type->set_elem_type(onnx::TensorProto::INT64);
    for (const char* symbol : {"batch", "seq"})
      type->mutable_shape()->add_dim()->set_dim_param(symbol);
  }
  std::string node(const std::string& op, const std::string& module,
                   const std::vector<std::string>& inputs) {
    std::string name = module + "/" + op;
    const int count = used_[name]++;
    if (count > 0) name += "_" + std::to_string(count);
    g_.node(op, inputs, name + "_output_0", nameless_);
    auto* added = g_.graph().mutable_node(g_.graph().node_size() - 1);
    if (!nameless_) added->set_name(name);
    return name + "_output_0";
  }
  std::string random(const std::string& name, const std::vector<std::int64_t>& shape) {
    std::int64_t count = 1;
    for (const auto extent : shape) count *= extent;
    std::normal_distribution<float> normal(0.0f, 0.4f);
    std::vector<float> values(static_cast<std::size_t>(count));
    for (auto& v : values) v = normal(generator_);
    return g_.weight(name, shape, values);
  }
  static std::string dotted(std::string path) {
    path.erase(0, 1);
    for (auto& c : path)
      if (c == '/') c = '.';
    return path;
  }
  std::string linear(const std::string& module, const std::string& x, int in, int out) {
    const auto matmul =
        node("MatMul", module, {x, random("onnx::MatMul_" + std::to_string(count_++), {in, out})});
    return node("Add", module, {random(dotted(module) + ".bias", {out}), matmul});
  }
  std::string heads(const std::string& module, const std::string& name, const std::string& x,
                    const std::vector<std::int64_t>& perm) {
    const auto y = linear(module + "/" + name, x, kTinyHidden, kTinyHidden);
    const auto split =
        node("Reshape", module,
             {y, g_.ints("split_" + name, {0, 0, kTinyHeads, kTinyHidden / kTinyHeads})});
    const auto turned = node("Transpose", module, {split});
    g_.set("perm", perm);
    return turned;
  }
  std::string probabilities(const std::string& module, std::string q, std::string k) {
    if (sdpa_) {
      const auto scale = g_.weight("fourth_root", {}, {0.59460354f});
      q = node("Mul", module, {q, scale});
      k = node("Mul", module, {k, scale});
    }
    auto scores = node("MatMul", module, {q, k});
    if (!sdpa_) scores = node("Div", module, {scores, g_.weight("root", {}, {2.828427f})});
    const auto p = node("Softmax", module, {node("Add", module, {scores, mask()})});
    g_.set("axis", -1);
    return sdpa_ ? node("Where", module, {node("IsNaN", module, {p}), "zero", p}) : p;
  }
  std::string mask() {
    const auto wide = node("Unsqueeze", "/bert", {"attention_mask", g_.ints("axes", {1, 2})});
    if (sdpa_) {
      const auto kept = node("Cast", "/bert", {wide});
      g_.set("to", 9);
      constexpr float kInfinity = std::numeric_limits<float>::infinity();
      return node("Where", "/bert",
                  {kept, g_.weight("zero", {}, {0.0f}), g_.weight("hidden", {}, {-kInfinity})});
    }
    const auto real = node("Cast", "/bert", {wide});
    g_.set("to", 1);
    const auto off = node("Sub", "/bert", {g_.weight("one", {}, {1.0f}), real});
    return node("Mul", "/bert", {off, g_.weight("far", {}, {-10000.0f})});
  }
  std::string norm(const std::string& module, const std::string& x) {
    const std::string name = dotted(module) + ".LayerNorm";
    std::vector<float> ones(kTinyHidden, 1.0f);
    const auto y = node("LayerNormalization", module + "/LayerNorm",
                        {x, g_.weight(name + ".weight", {kTinyHidden}, ones),
                         random(name + ".bias", {kTinyHidden})});
    g_.set("axis", -1);
    return y;
  }
  std::string gelu(const std::string& module, const std::string& x) {
    const auto small = node("Div", module, {x, g_.weight("sqrt2", {}, {1.4142135f})});
    const auto curve = node("Erf", module, {small});
    const auto sum = node("Add", module, {curve, g_.weight("unit", {}, {1.0f})});
    const auto product = node("Mul", module, {x, sum});
    return node("Mul", module, {product, g_.weight("half", {}, {0.5f})});
  }

  GraphBuilder g_;
  bool nameless_, sdpa_;
  int count_ = 0;
  std::map<std::string, int> used_;
  std::mt19937 generator_{5};
};

}  // namespace bertcl::quant::tests
