// SPDX-License-Identifier: Apache-2.0
// The walk over a model: inputs, initializers, nodes, branches and local functions.
#include "onnx/importer.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "ir/node_error.hpp"
#include "onnx/inputs.hpp"
#include "onnx/node_order.hpp"
#include "onnx/past.hpp"
#include "support/did_you_mean.hpp"
#include "support/option_name.hpp"

namespace bertcl::onnx_io {
namespace {

constexpr int kMaxDepth = 32;
constexpr const char* kTooDeep = "branches and functions are nested too deep";
constexpr std::int64_t kOldestOpset = 7;

/// "Add", or "com.microsoft::Gelu" outside the default domain.
std::string full_name(const std::string& domain, const std::string& op) {
  return is_onnx_domain(domain) ? op : fmt::format("{}::{}", domain, op);
}

/// What a field newer than the ONNX release of Debian 12 holds.
std::vector<std::string> newer_field(const google::protobuf::Message& message, int number) {
  std::vector<std::string> all;
  const auto& unknown = message.GetReflection()->GetUnknownFields(message);
  for (int i = 0; i < unknown.field_count(); ++i)
    if (const auto& field = unknown.field(i);
        field.number() == number &&
        field.type() == google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED)
      all.push_back(field.length_delimited());
  return all;
}

/// "local::F", or "local::F:overload": the name of a function, and the one that a node calls.
std::string with_overload(std::string name, const std::vector<std::string>& overload) {
  return overload.empty() || overload.back().empty() ? name : name + ":" + overload.back();
}
std::string name_of(const onnx::FunctionProto& function) {
  return with_overload(full_name(function.domain(), function.name()), newer_field(function, 13));
}
std::string called_by(const onnx::NodeProto& node) {
  return with_overload(full_name(node.domain(), node.op_type()), newer_field(node, 8));
}

/// The node, and those of its branches, with the attributes of a function's call in place of
/// references to them.
onnx::NodeProto with_attributes(const onnx::NodeProto& node, const onnx::NodeProto& call,
                                const std::map<std::string, onnx::AttributeProto>& defaults) {
  onnx::NodeProto copy = node;
  copy.clear_attribute();
  for (const auto& attribute : node.attribute()) {
    if (attribute.ref_attr_name().empty()) {
      onnx::AttributeProto& own = *copy.add_attribute() = attribute;
      if (own.has_g())
        for (auto& inner : *own.mutable_g()->mutable_node())
          inner = with_attributes(inner, call, defaults);
      continue;
    }
    const onnx::AttributeProto* given = nullptr;
    for (const auto& a : call.attribute())
      if (a.name() == attribute.ref_attr_name()) given = &a;
    if (const auto it = defaults.find(attribute.ref_attr_name()); !given && it != defaults.end())
      given = &it->second;
    if (!given) continue;
    *copy.add_attribute() = *given;
    copy.mutable_attribute()->rbegin()->set_name(attribute.name());
  }
  return copy;
}

std::map<std::string, onnx::AttributeProto> default_attributes(const onnx::FunctionProto& f) {
  std::map<std::string, onnx::AttributeProto> defaults;
  for (const std::string& bytes : newer_field(f, /*attribute_proto*/ 11)) {
    onnx::AttributeProto attribute;
    if (attribute.ParseFromString(bytes)) defaults[attribute.name()] = attribute;
  }
  return defaults;
}

/// Counts the nodes that a graph will have when functions and branches stand where they are called,
/// without putting them there. Throws Error where they are nested deeper than they are imported.
class NodeCounter {
 public:
  static constexpr std::int64_t uncountable = std::numeric_limits<std::int64_t>::max();

  explicit NodeCounter(const std::map<std::string, const onnx::FunctionProto*>& functions)
      : functions_(functions) {}

  std::int64_t count(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes) {
    std::int64_t total = 0;
    for (const auto& node : nodes) {
      add(total, 1);
      for (const auto& attribute : node.attribute())
        if (attribute.has_g()) add(total, count(attribute.g().node()));
      const auto f = functions_.find(called_by(node));
      if (f != functions_.end()) add(total, count_function(*f->second));
    }
    return total;
  }

 private:
  static void add(std::int64_t& total, std::int64_t nodes) {
    if (__builtin_add_overflow(total, nodes, &total)) total = uncountable;
  }
  /// One that calls itself counts as nothing there: the import finds it nested too deep.
  std::int64_t count_function(const onnx::FunctionProto& function) {
    if (const auto [it, fresh] = counts_.emplace(&function, 0); !fresh) return it->second;
    if (++depth_ > kMaxDepth) throw Error(kTooDeep);
    const std::int64_t nodes = count(function.node());
    --depth_;
    return counts_[&function] = nodes;
  }

  const std::map<std::string, const onnx::FunctionProto*>& functions_;
  std::map<const onnx::FunctionProto*, std::int64_t> counts_;
  int depth_ = 0;
};

}  // namespace

Importer::Importer(const onnx::ModelProto& model, std::string file, TensorReader& tensors,
                   const ReadOptions& options)
    : model_(model), file_(std::move(file)), tensors_(tensors), options_(options) {
  opsets_ = read_opsets(model.opset_import());
  for (const auto& f : model.functions())
    if (!functions_.emplace(name_of(f), &f).second)
      fail(fmt::format("two local functions are named {}", name_of(f)));
}

Importer::Opsets Importer::read_opsets(
    const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>& imports) const {
  Opsets opsets;
  for (const auto& o : imports) {
    const bool standard = is_onnx_domain(o.domain());
    if (standard && o.version() < kOldestOpset)
      fail(fmt::format("opset {} is not supported (minimum: {})", o.version(), kOldestOpset),
           ErrorCode::unsupported);
    opsets[standard ? "" : o.domain()] = o.version();
  }
  return opsets;
}

void Importer::fail(const std::string& what, ErrorCode code) const {
  throw FileError(fmt::format("{}: {}", file_, what), code);
}

std::string Importer::describe(const onnx::NodeProto& node) const {
  return fmt::format("node '{}' ({})", label_of(node), full_name(node.domain(), node.op_type()));
}

ir::Value* Importer::optional_lookup(const std::string& name, const std::string& user) const {
  for (std::size_t s = scopes_.size(); s-- > scope_floor_;)
    if (const auto it = scopes_[s].find(name); it != scopes_[s].end()) return it->second;
  fail(fmt::format("{} reads '{}', which no earlier node defines", user, name));
}
ir::Value* Importer::lookup(const std::string& name, const std::string& user) const {
  if (ir::Value* value = optional_lookup(name, user)) return value;
  fail(fmt::format("{} reads '{}', which the call of the local function omits", user, name));
}
void Importer::define(const std::string& name, ir::Value* value) {
  if (!scopes_.back().emplace(name, value).second)
    fail(fmt::format("the name '{}' is defined twice", name));
}

void Importer::check_nodes() const {
  const std::int64_t nodes = NodeCounter(functions_).count(model_.graph().node());
  if (nodes > options_.limits.nodes)
    fail(fmt::format(
        "the graph has {} nodes{} after inlining local functions and branches, the limit is {}; "
        "export the model without deeply nested function calls",
        nodes, nodes == NodeCounter::uncountable ? " or more" : "", options_.limits.nodes));
}

void Importer::check_extents(const ir::Value& value) const {
  std::int64_t count = 1;
  for (const ir::Dim& d : value.type.shape) {
    if (d.constant() == 0) return;
    if (__builtin_mul_overflow(count, d.constant(), &count) || count > options_.limits.elements)
      throw Error(fmt::format("tensor '{}' {} has more elements than the limit of {}", value.name,
                              ir::str(value.type), options_.limits.elements));
  }
}

void Importer::note_uses(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes) {
  for (const auto& node : nodes) {
    used_.insert(node.input().begin(), node.input().end());
    for (const auto& a : node.attribute())
      if (a.has_g()) note_uses(a.g());
  }
}
void Importer::note_uses(const onnx::GraphProto& graph) {
  note_uses(graph.node());
  for (const auto& out : graph.output()) used_.insert(out.name());
}

ir::Graph Importer::run(const InitializerReader& initializer) {
  const onnx::GraphProto& graph = model_.graph();
  if (graph.node_size() == 0 && graph.output_size() == 0)
    fail("not an ONNX model: it has neither nodes nor outputs");
  if (graph.sparse_initializer_size() > 0)
    fail("sparse initializers are not supported", ErrorCode::unsupported);
  if (!graph.name().empty()) graph_.name = symbol_name(graph.name());
  for (const auto& entry : model_.metadata_props()) graph_.metadata[entry.key()] = entry.value();
  check_nodes();
  note_uses(graph);
  for (const auto& f : model_.functions()) note_uses(f.node());

  // Old files list initializers among the inputs too; they are constants all the same.
  std::set<std::string> constants;
  for (const auto& t : graph.initializer()) constants.insert(t.name());
  std::vector<const onnx::ValueInfoProto*> inputs;
  for (const auto& in : graph.input())
    if (!constants.contains(in.name())) inputs.push_back(&in);
  add_inputs(inputs);
  for (int i = 0; i < graph.initializer_size(); ++i) {
    const auto& t = graph.initializer(i);
    if (!used_.contains(t.name())) continue;
    define(t.name(), add_constant(t.name(), t.data_type(), initializer(i)));
  }
  for (const auto* node : sorted(graph.node())) {
    try {
      import_node(*node);
    } catch (const Error& e) {
      throw ir::NodeError({label_of(*node)}, e.what(), e.code());
    }
  }
  for (const auto& out : graph.output()) {
    if (out.name().empty()) fail("an output has no name");
    if (has_past_ && is_kv_cache_output(out.name())) continue;
    ir::Value* value = lookup(out.name(), "the output list");
    if (const auto type = sub_bytes_.name_of(value); !type.empty())
      fail(fmt::format("the output '{}' is {}, which is not supported", out.name(), type),
           ErrorCode::unsupported);
    graph_.add_output(out.name(), value);
  }
  if (has_past_ && graph_.outputs().empty())
    fail("without past keys and values the model has no outputs; export hidden states or logits",
         ErrorCode::unsupported);
  restore_names();
  return std::move(graph_);
}

void Importer::restore_names() {
  const auto& tensors = scopes_.front();
  for (const auto& [name, value] : tensors) {
    const auto own = tensors.find(value->name);
    if (own != tensors.end() && own->second == value) continue;
    if (ir::Value* holder = graph_.find_value(name))
      graph_.swap_names(value, holder);
    else
      graph_.rename_if_free(value, name);
  }
}

ir::Value* Importer::add_constant(const std::string& name, std::int32_t onnx_type,
                                  ir::Tensor tensor) {
  bytes_in_file_ += tensor.size() * static_cast<std::int64_t>(ir::size_of(tensor.dtype()));
  ir::Value* value = graph_.add_constant(name, std::move(tensor));
  sub_bytes_.add(value, onnx_type);
  return value;
}

void Importer::take_memory(std::int64_t elements, ir::DType type) {
  // Weights of 2 bits become sixteen times as large.
  const std::int64_t allowed = options_.limits.constant_bytes(2 * bytes_in_file_);
  const auto size = static_cast<std::int64_t>(ir::size_of(type));
  if (elements > (allowed - made_bytes_) / size)
    throw Error(fmt::format("block-quantized weights take more than {} bytes as floats (raise {})",
                            allowed, option_name("max-memory")),
                ErrorCode::out_of_memory);
  made_bytes_ += elements * size;
}

void Importer::check_sub_bytes(const onnx::NodeProto& node, const std::string& name) const {
  if (sub_bytes_.empty() || reads_sub_bytes(name)) return;
  for (const std::string& input : node.input()) {
    if (input.empty()) continue;
    const auto type = sub_bytes_.name_of(optional_lookup(input, describe(node)));
    if (!type.empty())
      fail(fmt::format("{}: operand '{}' is {}, which only DequantizeLinear, GatherBlockQuantized "
                       "and Cast read",
                       describe(node), input, type),
           ErrorCode::unsupported);
  }
}

void Importer::import_node(const onnx::NodeProto& node) {
  const std::string name = full_name(node.domain(), node.op_type());
  if (const auto f = functions_.find(called_by(node)); f != functions_.end())
    return inline_function(node, *f->second);
  const bool standard = is_onnx_domain(node.domain());
  const auto opset = opsets_.find(standard ? "" : node.domain());
  const std::string version =
      opset == opsets_.end() ? "not imported" : fmt::format("opset {}", opset->second);
  const auto rule = rules().find(name);
  if (rule == rules().end())
    fail(fmt::format("node '{}': operator {} of domain '{}' ({}) is not supported{}; "
                     "docs/operators.md lists "
                     "the supported operators",
                     label_of(node), node.op_type(), standard ? "ai.onnx" : node.domain(), version,
                     did_you_mean(name, supported_operators())),
         ErrorCode::unsupported);
  for (const auto& a : node.attribute())
    if (!rule->second.attributes.contains(a.name()))
      fail(fmt::format("{}: attribute '{}' is not supported (supported: {})", describe(node),
                       a.name(), fmt::join(rule->second.attributes, ", ")),
           ErrorCode::unsupported);
  for (const auto& a : node.attribute())
    if (!a.ref_attr_name().empty())
      fail(
          fmt::format("{}: attribute '{}' refers to function attribute '{}', but the node is not "
                      "inside a function",
                      describe(node), a.name(), a.ref_attr_name()));
  check_sub_bytes(node, name);
  graph_.source_nodes.push_back({label_of(node), name});
  NodeImport import(*this, node, opset == opsets_.end() ? 1 : opset->second);
  try {
    rule->second.import(import);
  } catch (const FileError&) {
    throw;
  } catch (const Error& e) {
    fail(fmt::format("{}: {}", describe(node), e.what()), e.code());
  }
  if (!sub_bytes_.empty() && moves_sub_bytes(name) && node.output_size() > 0 &&
      !node.output(0).empty())
    sub_bytes_.copy_type(import.optional_input(0), lookup(node.output(0), name));
}

std::vector<ir::Value*> Importer::inline_branch(const onnx::GraphProto& branch) {
  if (++depth_ > kMaxDepth) fail(kTooDeep);
  scopes_.emplace_back();
  for (const auto& t : branch.initializer())
    define(t.name(), add_constant(t.name(), t.data_type(), read_tensor(t)));
  for (const auto& node : branch.node()) import_node(node);
  std::vector<ir::Value*> results;
  for (const auto& out : branch.output()) results.push_back(lookup(out.name(), "a branch"));
  scopes_.pop_back();
  --depth_;
  return results;
}

void Importer::inline_function(const onnx::NodeProto& node, const onnx::FunctionProto& function) {
  if (++depth_ > kMaxDepth) fail(kTooDeep);
  std::map<std::string, ir::Value*> scope;
  if (node.input_size() > function.input_size() || node.output_size() > function.output_size())
    fail(fmt::format("{}: the function takes {} operands and returns {} results", describe(node),
                     function.input_size(), function.output_size()));
  for (int i = 0; i < function.input_size(); ++i) {
    const bool given = i < node.input_size() && !node.input(i).empty();
    scope[function.input(i)] = given ? optional_lookup(node.input(i), describe(node)) : nullptr;
  }
  for (int i = 0; i < node.output_size(); ++i)
    if (is_used(node.output(i))) used_.insert(function.output(i));
  const std::size_t floor = std::exchange(scope_floor_, scopes_.size());
  scopes_.push_back(std::move(scope));
  Opsets opsets = opsets_;
  for (const auto& [domain, version] : read_opsets(function.opset_import()))
    opsets[domain] = version;
  opsets.swap(opsets_);
  const auto defaults = default_attributes(function);
  for (const auto& inner : function.node()) import_node(with_attributes(inner, node, defaults));
  std::vector<std::pair<std::string, ir::Value*>> results;
  for (int i = 0; i < node.output_size(); ++i)
    if (is_used(node.output(i)))
      results.emplace_back(node.output(i), lookup(function.output(i), describe(node)));
  opsets.swap(opsets_);
  scopes_.pop_back();
  scope_floor_ = floor;
  --depth_;
  for (const auto& [name, value] : results) define(name, value);
}

}  // namespace bertcl::onnx_io
