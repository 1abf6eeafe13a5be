// SPDX-License-Identifier: Apache-2.0
// Graphs of fused operators, before and after these are expanded.
#pragma once
#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "ops/interpret.hpp"
#include "quant/graph/expand_fused.hpp"
#include "quant/graph/opset.hpp"
#include "tests/quant/graphs.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::quant::tests {

/// A graph of fused operators with random weights, and inputs for it.
class Fused {
 public:
  explicit Fused(std::uint32_t seed, std::int64_t opset = 17) : g_(opset), random_(seed) {
    auto* import = g_.model().add_opset_import();
    import->set_domain("com.microsoft");
    import->set_version(1);
  }

  /// Random floats for an input of these sizes, `symbols` in the place of those that are not "".
  std::string input(const std::string& name, const ir::Sizes& sizes,
                    const std::vector<std::string>& symbols = {}) {
    declare(name, sizes, symbols, onnx::TensorProto::FLOAT);
    inputs[name] = ir::Tensor::of<float>(sizes, floats(sizes));
    return name;
  }
  template <class T>
  std::string mask(const std::string& name, const ir::Sizes& sizes, const std::vector<T>& values,
                   std::int32_t type, const std::vector<std::string>& symbols = {}) {
    declare(name, sizes, symbols, type);
    inputs[name] = type == onnx::TensorProto::BOOL
                       ? ir::Tensor::of<T>(sizes, values).converted(ir::DType::boolean)
                       : ir::Tensor::of<T>(sizes, values);
    return name;
  }
  std::string weight(const std::string& name, const ir::Sizes& sizes) {
    return g_.weight(name, sizes, floats(sizes));
  }
  GraphBuilder& node(const std::string& op, const std::vector<std::string>& operands,
                     const std::string& result, const std::string& domain = "com.microsoft") {
    g_.node(op, operands, result);
    auto* node = g_.graph().mutable_node(g_.graph().node_size() - 1);
    node->set_domain(domain);
    return g_;
  }
  void name(const std::string& name) {
    g_.graph().mutable_node(g_.graph().node_size() - 1)->set_name(name);
  }
  void add_result(const std::string& name) {
    g_.graph().mutable_node(g_.graph().node_size() - 1)->add_output(name);
  }
  /// Integers below `end`.
  std::int64_t below(std::int64_t end) { return static_cast<std::int64_t>(random_()) % end; }
  template <class T>
  std::vector<T> integers(std::int64_t count, std::int64_t end) {
    std::vector<T> all(static_cast<std::size_t>(count));
    for (T& one : all) one = static_cast<T>(below(end));
    return all;
  }
  GraphBuilder& builder() { return g_; }
  Model model() { return Model::of(g_.model(), "test.onnx"); }

  ops::Tensors inputs;

 private:
  void declare(const std::string& name, const ir::Sizes& sizes,
               const std::vector<std::string>& symbols, std::int32_t type) {
    g_.input(name, sizes);
    auto* tensor = g_.graph()
                       .mutable_input(g_.graph().input_size() - 1)
                       ->mutable_type()
                       ->mutable_tensor_type();
    tensor->set_elem_type(type);
    if (sizes.empty()) tensor->mutable_shape();
    for (std::size_t i = 0; i < symbols.size(); ++i)
      if (!symbols[i].empty())
        tensor->mutable_shape()->mutable_dim(static_cast<int>(i))->set_dim_param(symbols[i]);
  }
  std::vector<float> floats(const ir::Sizes& sizes) {
    std::normal_distribution<float> normal;
    std::vector<float> values(static_cast<std::size_t>(ir::element_count(sizes)));
    for (float& v : values) v = normal(random_);
    return values;
  }

  GraphBuilder g_;
  std::mt19937 random_;
};

inline std::vector<std::string> ops_of(const Model& model) {
  std::vector<std::string> ops;
  for (const auto& node : model.graph().node()) ops.push_back(node.op_type());
  return ops;
}
inline std::vector<std::string> names_of(const Model& model) {
  std::vector<std::string> names;
  for (const auto& node : model.graph().node()) names.push_back(node.name());
  return names;
}

/// Expands all nodes and compares the results with those of before.
inline void expect_same(Fused& fused, std::int64_t count = 1) {
  Model model = fused.model();
  const auto before = ops::interpret(model.import(), fused.inputs);
  const Expanded done = expand_fused(model);
  EXPECT_EQ(done.count, count);
  EXPECT_THAT(done.unexpanded, IsEmpty());
  EXPECT_THAT(ops_of(model), Not(AnyOf(Contains("Attention"), Contains("MultiHeadAttention"),
                                       Contains("FusedMatMul"))));
  raise_opset(model, [](const std::string&) { return nullptr; });
  const auto after = ops::interpret(model.import(), fused.inputs);
  ASSERT_EQ(before.size(), after.size());
  for (std::size_t o = 0; o < before.size(); ++o) {
    ASSERT_EQ(before[o].shape(), after[o].shape());
    const auto x = before[o].to_doubles(), y = after[o].to_doubles();
    for (std::size_t i = 0; i < x.size(); ++i)
      ASSERT_NEAR(x[i], y[i], 1e-5 * std::max(1.0, std::abs(x[i])))
          << "output " << o << " at " << i;
  }
}

/// Expects that the model stays as it is. Returns the reasons.
inline std::map<std::string, std::string> whole(Fused& f) {
  Model model = f.model();
  const std::string before = model.proto().SerializeAsString();
  const Expanded done = expand_fused(model);
  EXPECT_EQ(done.count, 0);
  EXPECT_EQ(model.proto().SerializeAsString(), before);
  return done.unexpanded;
}

/// Two layers, as ONNX Runtime's optimizer of transformers names them.
inline Fused two_layers() {
  Fused f(1);
  f.input("x", {2, 5, 6}, {"batch", "seq", ""});
  f.mask("mask", {2}, std::vector<std::int32_t>{3, 5}, onnx::TensorProto::INT32, {"batch"});
  std::string x = "x";
  for (const std::string layer : {"0", "1"}) {
    const std::string y = "/encoder/layer." + layer + "/attention/self/Reshape_3_output_0";
    f.node(
         "Attention",
         {x, f.weight("qkv_weight_" + layer, {6, 18}), f.weight("qkv_bias_" + layer, {18}), "mask"},
         y)
        .set("num_heads", 2);
    f.name("Attention_" + layer);
    x = y;
  }
  f.builder().output(x);
  return f;
}

}  // namespace bertcl::quant::tests
