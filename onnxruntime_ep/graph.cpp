// SPDX-License-Identifier: Apache-2.0
// Reading a graph of ONNX Runtime, and giving parts of it to the importer.
#include "onnxruntime_ep/graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>

#include "ir/node_error.hpp"
#include "onnx/tensors.hpp"
#include "onnxruntime_ep/run_time_sizes.hpp"

namespace bertcl::onnxruntime_ep {
namespace {

constexpr const char* kGraphName = "graph of ONNX Runtime";

/// A list of `count` by one of ONNX Runtime's pairs of functions.
template <class T, class Of>
std::vector<const T*> list(const Ort& ort, const Of* of,
                           OrtStatus* (*count)(const Of*, size_t*) noexcept,
                           OrtStatus* (*get)(const Of*, const T**, size_t) noexcept) {
  size_t size = 0;
  ort.check(count(of, &size));
  std::vector<const T*> result(size);
  if (size > 0) ort.check(get(of, result.data(), size));
  return result;
}

template <class Of>
std::string text(const Ort& ort, OrtStatus* (*get)(const Of*, const char**) noexcept,
                 const Of* of) {
  const char* result = nullptr;
  ort.check(get(of, &result));
  return result ? result : "";
}

const std::set<std::string>& known_operators() {
  static const std::set<std::string> names = [] {
    const auto list = onnx_io::supported_operators();
    return std::set<std::string>(list.begin(), list.end());
  }();
  return names;
}

/// Whether the rank is known. Without a shape it is reported as 0, which ONNX Runtime 1.23 does not
/// tell from that of a scalar.
bool has_rank(const Ort& ort, const OrtTensorTypeAndShapeInfo* info, std::size_t rank) {
  if (rank > 0) return true;
#if !defined(BERTCL_ORT_HEADERS) || ORT_API_VERSION >= 24
  if (ort.is_24) return ort.api.TensorTypeAndShape_HasShape(info);
#endif
  return false;
}

void set_type(const Ort& ort, const OrtValueInfo* value, onnx::ValueInfoProto& proto) {
  const OrtTypeInfo* type = nullptr;
  ort.check(ort.api.GetValueInfoTypeInfo(value, &type));
  const OrtTensorTypeAndShapeInfo* info = nullptr;
  if (type) ort.check(ort.api.CastTypeInfoToTensorInfo(type, &info));
  if (!info) throw Error(fmt::format("'{}' is not a tensor", proto.name()), ErrorCode::unsupported);
  const auto [element, extents] = type_of(ort, info);
  std::vector<const char*> names(extents.size());
  if (!names.empty()) ort.check(ort.api.GetSymbolicDimensions(info, names.data(), names.size()));
  auto& tensor = *proto.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(element);
  if (!has_rank(ort, info, extents.size())) return;
  auto& shape = *tensor.mutable_shape();
  for (std::size_t i = 0; i < extents.size(); ++i) {
    auto& extent = *shape.add_dim();
    if (extents[i] >= 0)
      extent.set_dim_value(extents[i]);
    else if (names[i] && *names[i])
      extent.set_dim_param(names[i]);
  }
}

void set_tensor(const Ort& ort, const OrtValue* value, onnx::TensorProto& proto) {
  OrtTensorTypeAndShapeInfo* info = nullptr;
  ort.check(ort.api.GetTensorTypeAndShape(value, &info));
  const std::unique_ptr<OrtTensorTypeAndShapeInfo, decltype(ort.api.ReleaseTensorTypeAndShapeInfo)>
      owned(info, ort.api.ReleaseTensorTypeAndShapeInfo);
  const auto [element, extents] = type_of(ort, info);
  proto.set_data_type(element);
  for (const std::int64_t extent : extents) proto.add_dims(extent);
}

}  // namespace

std::pair<int, std::vector<std::int64_t>> type_of(const Ort& ort,
                                                  const OrtTensorTypeAndShapeInfo* info) {
  ONNXTensorElementDataType element{};
  ort.check(ort.api.GetTensorElementType(info, &element));
  size_t rank = 0;
  ort.check(ort.api.GetDimensionsCount(info, &rank));
  std::vector<std::int64_t> extents(rank);
  if (rank > 0) ort.check(ort.api.GetDimensions(info, extents.data(), rank));
  return {static_cast<int>(element), std::move(extents)};
}

std::span<const std::byte> bytes_of(const Ort& ort, const OrtValue* value) {
  size_t size = 0;
  ort.check(ort.api.GetTensorSizeInBytes(value, &size));
  const void* data = nullptr;
  ort.check(ort.api.GetTensorData(value, &data));
  return {static_cast<const std::byte*>(data), size};
}

Graph::Graph(const Ort& ort, const OrtGraph* graph) : ort_(ort) {
  const OrtApi& api = ort.api;
  size_t count = 0;
  ort.check(api.Graph_GetNumOperatorSets(graph, &count));
  std::vector<const char*> domains(count);
  std::vector<std::int64_t> versions(count);
  if (count > 0)
    ort.check(api.Graph_GetOperatorSets(graph, domains.data(), versions.data(), count));
  head_.set_ir_version(8);
  for (std::size_t i = 0; i < count; ++i) {
    auto& opset = *head_.add_opset_import();
    opset.set_domain(domains[i] ? domains[i] : "");
    opset.set_version(versions[i]);
  }
  for (const OrtNode* node : list(ort, graph, api.Graph_GetNumNodes, api.Graph_GetNodes))
    nodes_.push_back(read_node(node));
  for (const Node& node : nodes_)
    results_.insert(node.proto.output().begin(), node.proto.output().end());
  for (const OrtValueInfo* value : list(ort, graph, api.Graph_GetNumOutputs, api.Graph_GetOutputs))
    outputs_.insert(note(value));
}

/// The name of a value, which is kept with its constant; empty: an operand that is left out.
std::string Graph::note(const OrtValueInfo* value) {
  if (!value) return "";
  std::string name = text(ort_, ort_.api.GetValueInfoName, value);
  if (name.empty() || !values_.emplace(name, value).second) return name;
  bool constant = false, outer = false;
  ort_.check(ort_.api.ValueInfo_IsFromOuterScope(value, &outer));
  is_branch_ = is_branch_ || outer;
  ort_.check(ort_.api.ValueInfo_IsConstantInitializer(value, &constant));
  if (!constant) return name;
  const OrtValue* tensor = nullptr;
  ort_.check(ort_.api.ValueInfo_GetInitializerValue(value, &tensor));
  if (tensor) constants_.emplace(name, tensor);
  return name;
}

Node Graph::read_node(const OrtNode* node) {
  const OrtApi& api = ort_.api;
  Node result{node, {}, {}};
  onnx::NodeProto& proto = result.proto;
  proto.set_name(text(ort_, api.Node_GetName, node));
  proto.set_op_type(text(ort_, api.Node_GetOperatorType, node));
  proto.set_domain(text(ort_, api.Node_GetDomain, node));
  for (const OrtValueInfo* value : list(ort_, node, api.Node_GetNumInputs, api.Node_GetInputs))
    proto.add_input(note(value));
  for (const OrtValueInfo* value : list(ort_, node, api.Node_GetNumOutputs, api.Node_GetOutputs))
    proto.add_output(note(value));
  // What the branches of a node use of the graph around them.
  for (const OrtValueInfo* value :
       list(ort_, node, api.Node_GetNumImplicitInputs, api.Node_GetImplicitInputs))
    proto.add_input(note(value));
  size_t subgraphs = 0;
  ort_.check(api.Node_GetNumSubgraphs(node, &subgraphs));
  const bool is_default = onnx_io::is_onnx_domain(proto.domain());
  const std::string op = is_default ? proto.op_type() : proto.domain() + "::" + proto.op_type();
  if (const std::string provider = text(ort_, api.Node_GetEpName, node); !provider.empty())
    result.refusal = "is assigned to " + provider;
  else if (subgraphs > 0)
    result.refusal = "has subgraphs";
  else if (!known_operators().contains(op))
    result.refusal = "is not supported by bertcl";
  if (!result.refusal.empty()) return result;
  try {
    check_types(proto);
    for (const OrtOpAttr* attribute :
         list(ort_, node, api.Node_GetNumAttributes, api.Node_GetAttributes))
      if (attribute) read_attribute(attribute, proto);
  } catch (const Error& error) {
    result.refusal = error.what();
  }
  return result;
}

/// Throws Error where an operand or a result is of a type that the importer does not know.
void Graph::check_types(const onnx::NodeProto& node) const {
  const auto check = [&](const std::string& name) {
    if (name.empty()) return;
    onnx::ValueInfoProto value;
    value.set_name(name);
    set_type(ort_, values_.at(name), value);
    onnx_io::element_type(value.type().tensor_type().elem_type(), name);
  };
  std::ranges::for_each(node.input(), check);
  std::ranges::for_each(node.output(), check);
}

void Graph::read_attribute(const OrtOpAttr* attribute, onnx::NodeProto& node) const {
  const OrtApi& api = ort_.api;
  OrtOpAttrType type{};
  ort_.check(api.OpAttr_GetType(attribute, &type));
  onnx::AttributeProto& proto = *node.add_attribute();
  proto.set_name(text(ort_, api.OpAttr_GetName, attribute));
  if (type == ORT_OP_ATTR_TENSOR) {
    OrtValue* value = nullptr;
    ort_.check(api.OpAttr_GetTensorAttributeAsOrtValue(attribute, &value));
    const std::unique_ptr<OrtValue, decltype(api.ReleaseValue)> owned(value, api.ReleaseValue);
    proto.set_type(onnx::AttributeProto::TENSOR);
    set_tensor(ort_, value, *proto.mutable_t());
    const auto bytes = bytes_of(ort_, value);
    proto.mutable_t()->set_raw_data(bytes.data(), bytes.size());
    return;
  }
  // Asked with no room first, it fails with the size that it needs.
  size_t size = 0;
  char none = 0;
  if (OrtStatus* status = api.ReadOpAttr(attribute, type, &none, 0, &size))
    api.ReleaseStatus(status);
  std::string bytes(size, '\0');
  if (size > 0) ort_.check(api.ReadOpAttr(attribute, type, bytes.data(), size, &size));
  const auto each = [&]<class T>(T value, const auto& add) {
    for (std::size_t at = 0; at + sizeof(T) <= bytes.size(); at += sizeof(T)) {
      std::memcpy(&value, bytes.data() + at, sizeof(T));
      add(value);
    }
  };
  switch (type) {
    case ORT_OP_ATTR_INT:
      proto.set_type(onnx::AttributeProto::INT);
      each(std::int64_t(), [&](std::int64_t value) { proto.set_i(value); });
      break;
    case ORT_OP_ATTR_INTS:
      proto.set_type(onnx::AttributeProto::INTS);
      each(std::int64_t(), [&](std::int64_t value) { proto.add_ints(value); });
      break;
    case ORT_OP_ATTR_FLOAT:
      proto.set_type(onnx::AttributeProto::FLOAT);
      each(float(), [&](float value) { proto.set_f(value); });
      break;
    case ORT_OP_ATTR_FLOATS:
      proto.set_type(onnx::AttributeProto::FLOATS);
      each(float(), [&](float value) { proto.add_floats(value); });
      break;
    case ORT_OP_ATTR_STRING:
      proto.set_type(onnx::AttributeProto::STRING);
      proto.set_s(bytes);
      break;
    case ORT_OP_ATTR_STRINGS:  // each with a zero at its end
      proto.set_type(onnx::AttributeProto::STRINGS);
      for (std::size_t at = 0; at < bytes.size();) {
        const std::string one = bytes.c_str() + at;
        proto.add_strings(one);
        at += one.size() + 1;
      }
      break;
    default:
      throw Error(fmt::format("attribute '{}' has an unsupported type", proto.name()),
                  ErrorCode::unsupported);
  }
}

NodeSet Graph::all() const {
  NodeSet result(nodes_.size());
  std::iota(result.begin(), result.end(), std::size_t{0});
  return result;
}

bool Graph::refuse(const NodeSet& part, const std::vector<std::string>& names,
                   const std::string& why) {
  bool any = false;
  for (const std::size_t i : part) {
    if (std::ranges::find(names, nodes_[i].name()) == names.end()) continue;
    nodes_[i].refusal = why;
    any = true;
  }
  return any;
}

std::vector<std::string> Graph::outputs_of(const NodeSet& part) const {
  std::set<std::string> used = outputs_;
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    if (!std::ranges::binary_search(part, i))
      used.insert(nodes_[i].proto.input().begin(), nodes_[i].proto.input().end());
  std::vector<std::string> result;
  for (const std::size_t i : part)
    for (const std::string& name : nodes_[i].proto.output())
      if (!name.empty() && used.contains(name)) result.push_back(name);
  return result;
}

ir::Graph Graph::import(const NodeSet& part, bool copy, onnx_io::ReadOptions options) const {
  onnx::ModelProto model = head_;
  onnx::GraphProto& graph = *model.mutable_graph();
  std::set<std::string> known;
  std::vector<const OrtValue*> tensors;
  for (const std::size_t i : part) {
    const onnx::NodeProto& node = nodes_[i].proto;
    for (const std::string& name : node.input()) {
      if (name.empty() || !known.insert(name).second) continue;
      if (const auto constant = constants_.find(name); constant != constants_.end()) {
        onnx::TensorProto& tensor = *graph.add_initializer();
        tensor.set_name(name);
        set_tensor(ort_, constant->second, tensor);
        tensors.push_back(constant->second);
      } else {
        onnx::ValueInfoProto& input = *graph.add_input();
        input.set_name(name);
        set_type(ort_, values_.at(name), input);
        if (!input.type().tensor_type().has_shape())
          throw ir::NodeError(users(part, name),
                              fmt::format("ONNX Runtime does not know the rank of '{}'", name),
                              ErrorCode::unsupported);
      }
    }
    known.insert(node.output().begin(), node.output().end());
    *graph.add_node() = node;
  }
  for (const std::string& name : outputs_of(part)) {
    onnx::ValueInfoProto& output = *graph.add_output();
    output.set_name(name);
    set_type(ort_, values_.at(name), output);
  }
  onnx_io::TensorReader reader(kGraphName, nullptr, ir::Memory::anonymous, false);
  options.without_past = false;  // the session feeds all inputs of its nodes
  ir::Graph result = onnx_io::import_model(
      model, kGraphName, reader,
      [&](int i) {
        const onnx::TensorProto& tensor = graph.initializer(i);
        const auto bytes = bytes_of(ort_, tensors[static_cast<std::size_t>(i)]);
        const ir::DType dtype = onnx_io::element_type(tensor.data_type(), tensor.name());
        ir::Sizes shape(tensor.dims().begin(), tensor.dims().end());
        if (!copy)
          return ir::Tensor::view(dtype, std::move(shape), nullptr, bytes, ir::Memory::anonymous);
        auto own = std::make_shared<const std::vector<std::byte>>(bytes.begin(), bytes.end());
        return ir::Tensor(dtype, std::move(shape), own, std::span<const std::byte>(*own));
      },
      options);
  check_run_time_sizes(result, unknown_extents(result));
  return result;
}

std::vector<std::string> Graph::users(const NodeSet& part, const std::string& value) const {
  std::vector<std::string> result;
  for (const std::size_t i : part)
    if (std::ranges::find(nodes_[i].proto.input(), value) != nodes_[i].proto.input().end())
      result.push_back(nodes_[i].name());
  return result;
}

/// Symbols of extents that ONNX Runtime does not know, of values that a part takes from other
/// nodes, and these values.
std::map<std::string, std::string> Graph::unknown_extents(const ir::Graph& part) const {
  std::map<std::string, std::string> unknown;
  for (const ir::Value* input : part.inputs()) {
    if (!results_.contains(input->name)) continue;
    onnx::ValueInfoProto declared;
    set_type(ort_, values_.at(input->name), declared);
    const auto& shape = declared.type().tensor_type().shape();
    for (std::size_t i = 0; i < input->type.shape.size(); ++i)
      if (const auto& extent = shape.dim(static_cast<int>(i));
          !extent.has_dim_value() && extent.dim_param().empty())
        for (const std::string& symbol : input->type.shape[i].symbols())
          unknown.emplace(symbol, input->name);
  }
  return unknown;
}

}  // namespace bertcl::onnxruntime_ep
