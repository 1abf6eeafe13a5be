// SPDX-License-Identifier: Apache-2.0
// An ONNX model to read, change and write: the message, with its weights kept separately.
#include "quant/graph/model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "bertcl/error.hpp"
#include "ir/checked.hpp"
#include "onnx/read_model.hpp"
#include "onnx/tensors.hpp"
#include "support/fail.hpp"
#include "text/pad_token_id.hpp"

namespace bertcl::quant {
namespace {

std::int32_t onnx_type(ir::DType type) {
  using T = onnx::TensorProto;
  switch (type) {
    case ir::DType::f32:
      return T::FLOAT;
    case ir::DType::i8:
      return T::INT8;
    case ir::DType::u8:
      return T::UINT8;
    case ir::DType::i64:
      return T::INT64;
    default:
      fail("cannot add an initializer of type {}", ir::name_of(type));
  }
}

constexpr const char* kWeights = "the sum of the weights";

/// Bytes of one element; 0 for types that the engine does not take.
std::int64_t element_bytes(std::int32_t type) {
  const auto known = onnx_io::known_element_type(type);
  return known ? static_cast<std::int64_t>(ir::size_of(*known)) : 0;
}

/// Throws Error that names the tensor if its extents overflow.
std::int64_t bytes_with(const onnx::TensorProto& tensor, std::int64_t element) {
  const std::string what = fmt::format("tensor '{}'", tensor.name());
  std::int64_t bytes = element;
  for (const std::int64_t extent : tensor.dims()) bytes = ir::product(bytes, extent, what);
  return bytes;
}

}  // namespace

std::int64_t opset_of(const onnx::ModelProto& model) {
  for (const auto& opset : model.opset_import())
    if (onnx_io::is_onnx_domain(opset.domain())) return opset.version();
  throw Error("the model imports no opset of ONNX's own domain");
}

const onnx::AttributeProto* find_attribute(const onnx::NodeProto& node, std::string_view name) {
  for (const auto& a : node.attribute())
    if (a.name() == name) return &a;
  return nullptr;
}

std::int64_t int_attribute(const onnx::NodeProto& node, std::string_view name,
                           std::int64_t default_value) {
  const auto* a = find_attribute(node, name);
  return a ? a->i() : default_value;
}

float float_attribute(const onnx::NodeProto& node, std::string_view name, float default_value) {
  const auto* a = find_attribute(node, name);
  return a ? a->f() : default_value;
}

bool is_op(const onnx::NodeProto& node, std::string_view op) {
  return node.op_type() == op && onnx_io::is_onnx_domain(node.domain());
}

Model Model::load(const std::filesystem::path& path) {
  const onnx_io::ModelFile opened = onnx_io::open_model(path);
  Model model;
  model.path_ = path;
  model.proto_ = std::move(*opened.model);
  const auto& initializers = model.graph().initializer();
  for (int i = 0; i < initializers.size(); ++i)
    if (const auto raw = opened.weights[i]) model.raw_[initializers[i].name()] = *raw;
  model.reader_ = std::make_shared<onnx_io::TensorReader>(path, opened.owner, opened.memory);
  model.index();
  return model;
}

Model Model::of(onnx::ModelProto proto, std::string name) {
  Model model;
  model.path_ = std::move(name);
  model.proto_ = std::move(proto);
  model.reader_ =
      std::make_shared<onnx_io::TensorReader>(model.path_, nullptr, ir::Memory::anonymous);
  model.index();
  return model;
}

Model Model::copy() const {
  Model model = *this;
  model.names_.clear();  // those of tensors that are gone are free again
  model.index();
  return model;
}

ir::Graph Model::import() const {
  onnx_io::ReadOptions reading;
  reading.limits.memory = runtime::memory_limit();
  return onnx_io::import_model(
      proto_, path_, *reader_, [&](int i) { return read(graph().initializer(i).name()); }, reading);
}

runtime::Session Model::session(const runtime::SessionOptions& options) const {
  return session(import(), options);
}

runtime::Session Model::session(ir::Graph graph, const runtime::SessionOptions& options) const {
  runtime::SessionOptions all = options;
  if (!all.pad_token_id && std::filesystem::exists(path_))
    all.pad_token_id = [this] { return text::read_pad_token_id(path_); };
  return runtime::Session::compile(std::move(graph), all, path_);
}

void Model::index() {
  initializers_.clear();
  for (int i = 0; i < graph().initializer_size(); ++i)
    initializers_[graph().initializer(i).name()] = i;
  for_each_graph(graph(), [&](const onnx::GraphProto& g) {
    for (const auto& t : g.initializer()) names_.insert(t.name());
    for (const auto& v : g.input()) names_.insert(v.name());
    for (const auto& node : g.node()) {
      names_.insert(node.name());
      names_.insert(node.output().begin(), node.output().end());
    }
  });
}

const onnx::TensorProto* Model::initializer(const std::string& name) const {
  const auto it = initializers_.find(name);
  return it == initializers_.end() ? nullptr : &graph().initializer(it->second);
}

ir::Tensor Model::read(const std::string& name) const {
  if (const auto it = added_.find(name); it != added_.end()) return it->second;
  const auto* tensor = initializer(name);
  if (!tensor) fail("{}: no initializer '{}'", path_.string(), name);
  const auto raw = raw_.find(name);
  return reader_->read(*tensor, raw == raw_.end() ? std::nullopt : std::optional(raw->second));
}

ir::Tensor Model::read(const onnx::TensorProto& tensor) const { return reader_->read(tensor); }

std::string Model::add(const std::string& name, const ir::Tensor& values) {
  auto* tensor = proto_.mutable_graph()->add_initializer();
  tensor->set_name(name);
  tensor->set_data_type(onnx_type(values.dtype()));
  for (const auto d : values.shape()) tensor->add_dims(d);
  initializers_[name] = graph().initializer_size() - 1;
  added_[name] = values;
  names_.insert(name);
  return name;
}

void Model::remove(const std::set<std::string>& names) {
  const auto is_named = [&](const auto& item) { return names.contains(item.name()); };
  erase_if(*proto_.mutable_graph()->mutable_initializer(), is_named);
  erase_if(*proto_.mutable_graph()->mutable_input(), is_named);
  for (const auto& name : names) {
    raw_.erase(name);
    added_.erase(name);
  }
  index();
}

std::string Model::fresh_name(const std::string& wanted) {
  std::string name = wanted;
  for (int i = 1; !names_.insert(name).second; ++i) name = fmt::format("{}_{}", wanted, i);
  return name;
}

std::int64_t Model::weight_bytes() const {
  std::int64_t bytes = 0;
  for (const auto& t : graph().initializer())
    bytes = ir::sum(bytes, bytes_with(t, element_bytes(t.data_type())), kWeights);
  return bytes;
}

std::int64_t Model::weight_bytes_as_f32() const {
  std::int64_t bytes = 0;
  for (const auto& t : graph().initializer()) {
    const auto type = t.data_type();
    const bool half = type == onnx::TensorProto::FLOAT16 || type == onnx::TensorProto::BFLOAT16;
    bytes = ir::sum(bytes, bytes_with(t, half ? 4 : element_bytes(type)), kWeights);
  }
  return bytes;
}

std::span<const std::byte> Model::bytes_of(const onnx::TensorProto& tensor) const {
  if (const auto it = added_.find(tensor.name()); it != added_.end()) return it->second.bytes();
  if (const auto it = raw_.find(tensor.name()); it != raw_.end()) return it->second;
  return std::as_bytes(std::span(tensor.raw_data()));
}

}  // namespace bertcl::quant
