// SPDX-License-Identifier: Apache-2.0
// The importer: walks the nodes of a model and calls the rule of each operator to write IR nodes.
#pragma once
#include <fmt/format.h>

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bertcl/error.hpp"
#include "ir/graph.hpp"
#include "onnx/proto.hpp"
#include "onnx/read_model.hpp"
#include "onnx/sub_byte.hpp"
#include "onnx/tensors.hpp"
#include "ops/symbolic.hpp"

namespace bertcl::onnx_io {

class Importer;

/// An Error whose message already names the file.
class FileError : public Error {
 public:
  using Error::Error;
};

/// Types that operators take, for NodeImport::input().
inline constexpr std::array kFloatTypes{ir::DType::f32, ir::DType::f16, ir::DType::bf16,
                                        ir::DType::f64};
inline constexpr std::array kByteTypes{ir::DType::i8, ir::DType::u8};

/// One node during import: what its rule reads and writes.
class NodeImport {
 public:
  NodeImport(Importer& importer, const onnx::NodeProto& proto, std::int64_t opset)
      : importer_(importer), proto_(proto), opset_(opset) {}

  const onnx::NodeProto& proto() const { return proto_; }
  /// The opset version of the node's domain.
  std::int64_t opset() const { return opset_; }
  [[noreturn]] void fail(const std::string& what) const;
  template <class First, class... Rest>
  [[noreturn]] void fail(fmt::format_string<First, Rest...> what, First&& first,
                         Rest&&... rest) const {
    fail(fmt::format(what, std::forward<First>(first), std::forward<Rest>(rest)...));
  }

  // Operands.
  std::size_t input_count() const { return static_cast<std::size_t>(proto_.input_size()); }
  /// Operand i, null if absent.
  ir::Value* optional_input(std::size_t i) const;
  /// Operand i; throws if it is absent.
  ir::Value* input(std::size_t i) const;
  /// The same; fails if it is of none of these types.
  ir::Value* input(std::size_t i, std::span<const ir::DType> types) const;
  std::vector<ir::Value*> inputs() const;
  const ir::Shape& shape(std::size_t i) const { return input(i)->type.shape; }
  /// Operand i as numbers; throws if it is not constant. Empty if absent.
  std::optional<std::vector<std::int64_t>> constant_ints(std::size_t i) const;

  // Attributes.
  const onnx::AttributeProto* attribute(std::string_view name) const;
  std::int64_t int_attribute(std::string_view name, std::int64_t default_value) const;
  double float_attribute(std::string_view name, double default_value) const;
  std::string string_attribute(std::string_view name, std::string default_value) const;
  std::optional<std::vector<std::int64_t>> ints_attribute(std::string_view name) const;
  /// The attribute `axis` of operand 0, counted from the start; throws if it is out of range.
  std::int64_t axis(std::int64_t default_value) const;
  /// The same of a number that the node gives as `name`.
  std::int64_t axis_within(std::int64_t given, std::size_t rank,
                           std::string_view name = "axis") const;
  /// All attributes in the IR's form; throws for tensors and graphs.
  ir::Attributes attributes() const;

  // Results.
  std::size_t output_count() const;
  /// Adds an inner node with one result, typed by inference.
  ir::Value* emit(std::string op, std::vector<ir::Value*> inputs, ir::Attributes attributes = {});
  /// Adds an inner node whose result type gives its shape (Reshape, Expand, Range).
  ir::Value* emit_typed(std::string op, std::vector<ir::Value*> inputs, ir::Type type,
                        ir::Attributes attributes = {});
  /// start, start + 1, ... [length]
  ir::Value* range(const ir::Dim& length, ir::DType dtype = ir::DType::i64, std::int64_t start = 0);
  /// Adds a node with `count` results. Trailing operands may be null here and below.
  std::vector<ir::Value*> emit_many(std::string op, std::vector<ir::Value*> inputs,
                                    ir::Attributes attributes, std::size_t count);
  /// Adds the node that produces the outputs of this one, under their names.
  void emit_outputs(std::string op, std::vector<ir::Value*> inputs, ir::Attributes attributes = {});
  /// The same with unused trailing outputs, and at least `least` results if the file lists fewer.
  void emit_all_outputs(std::string op, std::vector<ir::Value*> inputs,
                        ir::Attributes attributes = {}, std::size_t least = 1);
  /// Sets the value of output i.
  void set_output(std::size_t i, ir::Value* value);

  ir::Value* constant(ir::Tensor tensor, std::string_view hint = "constant");
  /// A scalar of that type.
  ir::Value* scalar(double value, ir::DType dtype);
  ir::Value* cast(ir::Value* value, ir::DType dtype);
  ir::Value* reshape(ir::Value* value, ir::Shape shape);
  ir::Value* transpose(ir::Value* value, std::vector<std::int64_t> perm);
  /// Swaps the last two axes.
  ir::Value* transpose_last_two(ir::Value* value);
  ir::Value* add(ir::Value* a, ir::Value* b) { return emit("Add", {a, b}); }
  ir::Value* mul(ir::Value* a, ir::Value* b) { return emit("Mul", {a, b}); }

  Importer& importer() { return importer_; }

 private:
  /// Prefix of the names of values made for this node.
  const std::string& base_name() const;
  /// The node's name in the file, else its first output.
  const std::string& source() const { return proto_.name().empty() ? base_name() : proto_.name(); }
  ir::Node* add_node(std::string op, std::vector<ir::Value*> inputs, ir::Attributes attributes,
                     std::vector<ir::Graph::Result> results, bool infer = true);
  void emit_as_outputs(std::string op, std::vector<ir::Value*> inputs, ir::Attributes attributes,
                       std::size_t count);

  Importer& importer_;
  const onnx::NodeProto& proto_;
  std::int64_t opset_;
  std::set<const ir::Value*> made_;  // for this node, under names of our own
};

/// How an operator is imported. Attributes that are not named in `attributes` are refused.
struct Rule {
  void (*import)(NodeImport&);
  std::set<std::string> attributes;
};

/// By "Name" (default domain) or "domain::Name".
using Rules = std::map<std::string, Rule>;

/// Those of all files of onnx/rules/.
const Rules& rules();

/// The default: the same operator with the same operands and attributes.
void import_same(NodeImport& node);

/// State of the import of one model.
class Importer {
 public:
  Importer(const onnx::ModelProto& model, std::string file, TensorReader& tensors,
           const ReadOptions& options);
  ir::Graph run(const InitializerReader& initializer);

  ir::Graph& graph() { return graph_; }
  ops::SymbolicValues& values() { return values_; }
  /// Throws FileError.
  ir::Tensor read_tensor(const onnx::TensorProto& tensor);
  /// A constant of the file, of that type there.
  ir::Value* add_constant(const std::string& name, std::int32_t onnx_type, ir::Tensor tensor);
  SubByteValues& sub_bytes() { return sub_bytes_; }
  /// Throws Error before a rule makes a constant of that size, if all of them together would exceed
  /// the limit.
  void take_memory(std::int64_t elements, ir::DType type);
  /// Weights that rules made, by settings and operands, for nodes that share one.
  std::map<std::pair<std::string, std::vector<const void*>>, ir::Value*> made_weights;
  /// The value a name stands for; throws naming `user` if there is none.
  ir::Value* lookup(const std::string& name, const std::string& user) const;
  /// The same; null for an operand that the call of a local function omits.
  ir::Value* optional_lookup(const std::string& name, const std::string& user) const;
  void define(const std::string& name, ir::Value* value);
  /// Gives the tensors of the file's graph their names: a function, whose names are its own, may
  /// have used them first, or have named its results otherwise.
  void restore_names();
  /// Imports the nodes of a branch in the current scope and returns its outputs.
  std::vector<ir::Value*> inline_branch(const onnx::GraphProto& branch);
  [[noreturn]] void fail(const std::string& what, ErrorCode code = ErrorCode::invalid_file) const;
  std::string describe(const onnx::NodeProto& node) const;
  /// Throws Error if a value is beyond what limits.hpp allows.
  void check_extents(const ir::Value& value) const;
  bool is_used(const std::string& name) const { return !name.empty() && used_.contains(name); }

 private:
  using Opsets = std::map<std::string, std::int64_t>;

  Opsets read_opsets(const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>&) const;
  void note_uses(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes);
  void note_uses(const onnx::GraphProto& graph);
  void check_nodes() const;
  /// Inputs that past_axis() knows become empty constants.
  void add_inputs(const std::vector<const onnx::ValueInfoProto*>& inputs);
  void import_node(const onnx::NodeProto& node);
  /// Throws where the node's result would depend on the number of bits of a constant that has few.
  void check_sub_bytes(const onnx::NodeProto& node, const std::string& name) const;
  void inline_function(const onnx::NodeProto& node, const onnx::FunctionProto& function);

  const onnx::ModelProto& model_;
  std::string file_;
  TensorReader& tensors_;
  ReadOptions options_;
  Opsets opsets_;
  std::map<std::string, const onnx::FunctionProto*> functions_;  // by "domain::name:overload"
  ir::Graph graph_;
  ops::SymbolicValues values_;
  std::vector<std::map<std::string, ir::Value*>> scopes_{1};
  std::size_t scope_floor_ = 0;  // the scopes below belong to the caller of a function
  std::set<std::string> used_;
  SubByteValues sub_bytes_;
  std::int64_t made_bytes_ = 0, bytes_in_file_ = 0;
  int depth_ = 0;
  bool has_past_ = false;
};

}  // namespace bertcl::onnx_io
