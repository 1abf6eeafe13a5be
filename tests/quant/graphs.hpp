// SPDX-License-Identifier: Apache-2.0
// Small ONNX graphs made by hand.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "quant/graph/constants.hpp"
#include "quant/graph/graph_index.hpp"
#include "quant/graph/model.hpp"
#include "quant/graph/structure.hpp"
#include "quant/placement/placement.hpp"

namespace bertcl::quant::tests {

/// An attribute of a node: an integer, a float or integers.
struct Attribute {
  Attribute(const std::string& name, int value) : Attribute(name, std::int64_t{value}) {}
  Attribute(const std::string& name, std::int64_t value)
      : Attribute(onnx::AttributeProto::INT, name) {
    proto.set_i(value);
  }
  Attribute(const std::string& name, float value) : Attribute(onnx::AttributeProto::FLOAT, name) {
    proto.set_f(value);
  }
  Attribute(const std::string& name, const std::vector<std::int64_t>& values)
      : Attribute(onnx::AttributeProto::INTS, name) {
    for (const auto v : values) proto.add_ints(v);
  }
  Attribute(const std::string& name, std::initializer_list<std::int64_t> values)
      : Attribute(name, std::vector(values)) {}
  Attribute(onnx::AttributeProto::AttributeType type, const std::string& name) {
    proto.set_name(name);
    proto.set_type(type);
  }
  onnx::AttributeProto proto;
};

/// Builds a ModelProto node by node.
class GraphBuilder {
 public:
  explicit GraphBuilder(std::int64_t opset = 17, std::int64_t ir_version = 8) {
    model_.set_ir_version(ir_version);
    auto* import = model_.add_opset_import();
    import->set_domain("");
    import->set_version(opset);
    graph().set_name("g");
  }
  onnx::ModelProto& model() { return model_; }
  onnx::GraphProto& graph() { return *model_.mutable_graph(); }

  std::string input(const std::string& name, const std::vector<std::int64_t>& shape = {}) {
    return value(*graph().add_input(), name, shape);
  }
  void output(const std::string& name, const std::vector<std::int64_t>& shape = {}) {
    value(*graph().add_output(), name, shape);
  }
  std::string weight(const std::string& name, const std::vector<std::int64_t>& shape,
                     const std::vector<float>& values) {
    auto* t = tensor(name, shape, onnx::TensorProto::FLOAT);
    t->set_raw_data(values.data(), values.size() * sizeof(float));
    return name;
  }
  std::string half_weight(const std::string& name, const std::vector<std::int64_t>& shape,
                          const std::vector<float>& values) {
    auto* t = tensor(name, shape, onnx::TensorProto::FLOAT16);
    std::vector<std::uint16_t> halves;
    for (const float v : values) halves.push_back(ir::float_to_half(v));
    t->set_raw_data(halves.data(), halves.size() * sizeof(std::uint16_t));
    return name;
  }
  std::string ints(const std::string& name, const std::vector<std::int64_t>& values) {
    auto* t = tensor(name, {static_cast<std::int64_t>(values.size())}, onnx::TensorProto::INT64);
    t->set_raw_data(values.data(), values.size() * sizeof(std::int64_t));
    return name;
  }
  /// Adds a node with one output, named like the output unless `nameless`.
  std::string node(const std::string& op, const std::vector<std::string>& inputs,
                   const std::string& output, bool nameless = false) {
    last_ = graph().add_node();
    last_->set_op_type(op);
    if (!nameless) last_->set_name(output + "_node");
    for (const auto& i : inputs) last_->add_input(i);
    last_->add_output(output);
    return output;
  }
  std::string node(const std::string& op, const std::vector<std::string>& inputs,
                   const std::string& output, const std::vector<Attribute>& attributes) {
    node(op, inputs, output);
    for (const Attribute& each : attributes) *last_->add_attribute() = each.proto;
    return output;
  }
  /// An attribute of the node added last.
  template <class Value>
  GraphBuilder& set(const std::string& name, const Value& value) {
    *last_->add_attribute() = Attribute(name, value).proto;
    return *this;
  }

  /// x -> LayerNorm in primitive operators.
  std::string decomposed_layer_norm(const std::string& x, const std::string& prefix,
                                    bool axes_as_input, bool square_by_mul = false) {
    const auto mean = [&](const std::string& from, const std::string& to) {
      if (axes_as_input) {
        node("ReduceMean", {from, ints(to + "_axes", {-1})}, to, true);
      } else {
        node("ReduceMean", {from}, to, true);
        set("axes", std::vector<std::int64_t>{-1});
      }
      return to;
    };
    const auto d = node("Sub", {x, mean(x, prefix + "mean")}, prefix + "d", true);
    const auto square = square_by_mul ? node("Mul", {d, d}, prefix + "square", true)
                                      : node("Pow", {d, weight(prefix + "two", {}, {2.0f})},
                                             prefix + "square", true);
    const auto sum =
        node("Add", {mean(square, prefix + "variance"), weight(prefix + "eps", {}, {1e-12f})},
             prefix + "sum", true);
    const auto root = node("Sqrt", {sum}, prefix + "root", true);
    const auto y = node("Div", {d, root}, prefix + "y", true);
    const auto scaled =
        node("Mul", {y, weight(prefix + "gamma", {4}, {1, 1, 1, 1})}, prefix + "scaled", true);
    return node("Add", {scaled, weight(prefix + "beta", {4}, {0, 0, 0, 0})}, prefix + "out", true);
  }

 private:
  template <class Value>
  std::string value(Value& v, const std::string& name, const std::vector<std::int64_t>& shape) {
    v.set_name(name);
    auto* type = v.mutable_type()->mutable_tensor_type();
    type->set_elem_type(onnx::TensorProto::FLOAT);
    for (const auto d : shape) type->mutable_shape()->add_dim()->set_dim_value(d);
    return name;
  }
  onnx::TensorProto* tensor(const std::string& name, const std::vector<std::int64_t>& shape,
                            std::int32_t type) {
    auto* t = graph().add_initializer();
    t->set_name(name);
    t->set_data_type(type);
    for (const auto d : shape) t->add_dims(d);
    return t;
  }
  onnx::ModelProto model_;
  onnx::NodeProto* last_ = nullptr;
};

/// A model with what is known of its graph.
struct Analysed {
  explicit Analysed(GraphBuilder builder)
      : model(Model::of(std::move(builder.model()), "test.onnx")) {}
  Model model;
  GraphIndex index{model.graph()};
  Constants constants{model, index};
  /// Of a graph that can be imported.
  const Structure& structure() {
    if (!structure_) structure_ = recognize(model.import(), index);
    return *structure_;
  }

 private:
  std::optional<Structure> structure_;
};

inline Placement place(Analysed& a, const PlacementOptions& options = {}) {
  return place(a.index, a.constants, a.structure(), options);
}

/// The first node of that operator, or null.
inline const onnx::NodeProto* find_node(const onnx::GraphProto& graph, const std::string& op) {
  for (const auto& n : graph.node())
    if (n.op_type() == op) return &n;
  return nullptr;
}
inline const onnx::NodeProto* producer(const onnx::GraphProto& graph, const std::string& tensor) {
  for (const auto& n : graph.node())
    for (const auto& o : n.output())
      if (o == tensor) return &n;
  return nullptr;
}

/// As TypeOf: all tensors have three dimensions.
inline const ir::Type* rank_3(const std::string&) {
  static const ir::Type type{ir::DType::f32, {1, 3, 3}};
  return &type;
}

}  // namespace bertcl::quant::tests
