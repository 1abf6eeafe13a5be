// SPDX-License-Identifier: Apache-2.0
// The accessors that the operators' rules read and write through.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "bertcl/error.hpp"
#include "onnx/importer.hpp"
#include "ops/infer.hpp"
#include "ops/interpret.hpp"

namespace bertcl::onnx_io {
namespace {

/// True for a few elements that at most `budget` nodes make of constants alone.
bool is_made_of_constants(const ir::Value* value, int& budget) {
  constexpr std::int64_t most = 64;
  const auto sizes = ir::constant_shape(value->type.shape);
  if (!sizes || ir::element_count(*sizes) > most) return false;
  if (value->is_constant()) return true;
  if (!value->producer || --budget < 0) return false;
  const auto& inputs = value->producer->inputs;
  return std::ranges::all_of(
      inputs, [&](const ir::Value* in) { return !in || is_made_of_constants(in, budget); });
}

void drop_absent(std::vector<ir::Value*>& trailing) {
  while (!trailing.empty() && !trailing.back()) trailing.pop_back();
}

}  // namespace

void NodeImport::fail(const std::string& what) const {
  importer_.fail(fmt::format("{}: {}", importer_.describe(proto_), what), ErrorCode::unsupported);
}

ir::Value* NodeImport::optional_input(std::size_t i) const {
  if (i >= input_count() || proto_.input(static_cast<int>(i)).empty()) return nullptr;
  return importer_.optional_lookup(proto_.input(static_cast<int>(i)), importer_.describe(proto_));
}
ir::Value* NodeImport::input(std::size_t i) const {
  if (ir::Value* value = optional_input(i)) return value;
  fail("operand {} is missing", i);
}
ir::Value* NodeImport::input(std::size_t i, std::span<const ir::DType> types) const {
  ir::Value* value = input(i);
  if (std::ranges::find(types, value->type.dtype) != types.end()) return value;
  std::vector<std::string_view> names;
  for (const ir::DType type : types) names.push_back(ir::name_of(type));
  fail("operand '{}' is {}, expected {}", value->name, ir::str(value->type),
       fmt::join(names, " or "));
}
std::vector<ir::Value*> NodeImport::inputs() const {
  std::vector<ir::Value*> list;
  for (std::size_t i = 0; i < input_count(); ++i) list.push_back(optional_input(i));
  drop_absent(list);
  return list;
}
std::optional<std::vector<std::int64_t>> NodeImport::constant_ints(std::size_t i) const {
  const ir::Value* value = optional_input(i);
  if (!value) return std::nullopt;
  if (auto ints = importer_.values().constants(value)) return ints;
  if (value->is_constant()) return value->constant->to_ints();
  int budget = 64;
  if (is_made_of_constants(value, budget)) return ops::evaluate_subgraph(value, {}).to_ints();
  fail("operand {} '{}' must be constant", i, value->name);
}
const onnx::AttributeProto* NodeImport::attribute(std::string_view name) const {
  for (const auto& a : proto_.attribute())
    if (a.name() == name) return &a;
  return nullptr;
}
std::int64_t NodeImport::int_attribute(std::string_view name, std::int64_t default_value) const {
  const auto* a = attribute(name);
  return a ? a->i() : default_value;
}
double NodeImport::float_attribute(std::string_view name, double default_value) const {
  const auto* a = attribute(name);
  return a ? static_cast<double>(a->f()) : default_value;
}
std::string NodeImport::string_attribute(std::string_view name, std::string default_value) const {
  const auto* a = attribute(name);
  return a ? a->s() : default_value;
}
std::optional<std::vector<std::int64_t>> NodeImport::ints_attribute(std::string_view name) const {
  const auto* a = attribute(name);
  if (!a) return std::nullopt;
  return std::vector<std::int64_t>(a->ints().begin(), a->ints().end());
}
std::int64_t NodeImport::axis(std::int64_t default_value) const {
  return axis_within(int_attribute("axis", default_value), shape(0).size());
}
std::int64_t NodeImport::axis_within(std::int64_t given, std::size_t rank,
                                     std::string_view name) const {
  const auto axis = ir::axis_within(given, rank);
  if (!axis) fail("{} {} is out of range for rank {}", name, given, rank);
  return static_cast<std::int64_t>(*axis);
}
ir::Attributes NodeImport::attributes() const {
  ir::Attributes out;
  for (const auto& a : proto_.attribute()) {
    switch (a.type()) {
      case onnx::AttributeProto::INT:
        out[a.name()] = a.i();
        break;
      case onnx::AttributeProto::FLOAT:
        out[a.name()] = static_cast<double>(a.f());
        break;
      case onnx::AttributeProto::STRING:
        out[a.name()] = a.s();
        break;
      case onnx::AttributeProto::INTS:
        out[a.name()] = std::vector<std::int64_t>(a.ints().begin(), a.ints().end());
        break;
      case onnx::AttributeProto::FLOATS:
        out[a.name()] = std::vector<double>(a.floats().begin(), a.floats().end());
        break;
      default:
        fail("attribute '{}' is of an unsupported kind", a.name());
    }
  }
  return out;
}

const std::string& NodeImport::base_name() const {
  return proto_.output_size() > 0 ? proto_.output(0) : proto_.name();
}

std::size_t NodeImport::output_count() const {
  std::size_t n = static_cast<std::size_t>(proto_.output_size());
  while (n > 1 && !importer_.is_used(proto_.output(static_cast<int>(n) - 1))) --n;
  return n;
}

ir::Node* NodeImport::add_node(std::string op, std::vector<ir::Value*> inputs,
                               ir::Attributes attributes, std::vector<ir::Graph::Result> results,
                               bool infer) {
  drop_absent(inputs);
  ir::Node* node = importer_.graph().add_node(std::move(op), std::move(inputs),
                                              std::move(attributes), std::move(results));
  node->sources = {source()};
  if (infer) ops::infer(importer_.graph(), *node, importer_.values());
  for (const ir::Value* out : node->outputs) importer_.check_extents(*out);
  return node;
}
std::vector<ir::Value*> NodeImport::emit_many(std::string op, std::vector<ir::Value*> inputs,
                                              ir::Attributes attributes, std::size_t count) {
  const ir::Graph::Result result{base_name() + "/" + op, {}};
  const ir::Node* node =
      add_node(std::move(op), std::move(inputs), std::move(attributes), {count, result});
  made_.insert(node->outputs.begin(), node->outputs.end());
  return node->outputs;
}
ir::Value* NodeImport::emit(std::string op, std::vector<ir::Value*> inputs,
                            ir::Attributes attributes) {
  return emit_many(std::move(op), std::move(inputs), std::move(attributes), 1).front();
}
ir::Value* NodeImport::emit_typed(std::string op, std::vector<ir::Value*> inputs, ir::Type type,
                                  ir::Attributes attributes) {
  const std::string name = base_name() + "/" + op;
  const ir::Node* node = add_node(std::move(op), std::move(inputs), std::move(attributes),
                                  {{name, std::move(type)}}, false);
  made_.insert(node->output());
  return node->output();
}
ir::Value* NodeImport::range(const ir::Dim& length, ir::DType dtype, std::int64_t start) {
  return emit_typed("Range", {}, {dtype, {length}}, {{"start", start}, {"step", 1}});
}
void NodeImport::emit_outputs(std::string op, std::vector<ir::Value*> inputs,
                              ir::Attributes attributes) {
  emit_as_outputs(std::move(op), std::move(inputs), std::move(attributes), output_count());
}
void NodeImport::emit_all_outputs(std::string op, std::vector<ir::Value*> inputs,
                                  ir::Attributes attributes, std::size_t least) {
  const auto listed = static_cast<std::size_t>(proto_.output_size());
  emit_as_outputs(std::move(op), std::move(inputs), std::move(attributes),
                  listed == 0 ? 0 : std::max(listed, least));
}
void NodeImport::emit_as_outputs(std::string op, std::vector<ir::Value*> inputs,
                                 ir::Attributes attributes, std::size_t count) {
  std::vector<ir::Graph::Result> results;
  const auto listed = static_cast<std::size_t>(proto_.output_size());
  for (std::size_t i = 0; i < count; ++i)
    results.push_back({proto_.output(static_cast<int>(std::min(i, listed - 1))), {}});
  if (results.empty()) fail("the node has no output");
  const ir::Node* node =
      add_node(std::move(op), std::move(inputs), std::move(attributes), std::move(results));
  for (std::size_t i = 0; i < node->outputs.size(); ++i) set_output(i, node->outputs[i]);
}
void NodeImport::set_output(std::size_t i, ir::Value* value) {
  if (i >= static_cast<std::size_t>(proto_.output_size())) return;
  const std::string& name = proto_.output(static_cast<int>(i));
  if (name.empty()) return;
  importer_.define(name, value);
  // A value that was made for this node is found by the name that the file gives it.
  if (made_.contains(value)) importer_.graph().rename_if_free(value, name);
}

ir::Value* NodeImport::constant(ir::Tensor tensor, std::string_view hint) {
  ir::Value* value =
      importer_.graph().add_constant(fmt::format("{}/{}", base_name(), hint), std::move(tensor));
  made_.insert(value);
  return value;
}
ir::Value* NodeImport::scalar(double value, ir::DType dtype) {
  return constant(ir::Tensor::scalar(value).converted(dtype));
}
ir::Value* NodeImport::cast(ir::Value* value, ir::DType dtype) {
  if (value->type.dtype == dtype) return value;
  return emit("Cast", {value}, {{"to", std::string(ir::name_of(dtype))}});
}
ir::Value* NodeImport::reshape(ir::Value* value, ir::Shape shape) {
  if (const ir::Dim from = ir::element_count(value->type.shape), to = ir::element_count(shape);
      from != to)
    fail("cannot reshape {} to {}", ir::str(value->type), ir::str(shape));
  return emit_typed("Reshape", {value}, {value->type.dtype, std::move(shape)});
}
ir::Value* NodeImport::transpose(ir::Value* value, std::vector<std::int64_t> perm) {
  return emit("Transpose", {value}, {{"perm", std::move(perm)}});
}
ir::Value* NodeImport::transpose_last_two(ir::Value* value) {
  std::vector<std::int64_t> perm(value->type.shape.size());
  if (perm.size() < 2) fail("expected a matrix");
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return transpose(value, std::move(perm));
}

void import_same(NodeImport& node) {
  node.emit_outputs(node.proto().op_type(), node.inputs(), node.attributes());
}

ir::Tensor Importer::read_tensor(const onnx::TensorProto& tensor) {
  try {
    return tensors_.read(tensor);
  } catch (const Error& error) {
    throw FileError(error.what(), error.code());
  }
}

}  // namespace bertcl::onnx_io
