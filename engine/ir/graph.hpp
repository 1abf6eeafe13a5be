// SPDX-License-Identifier: Apache-2.0
// The typed SSA graph that the compiler rewrites.
#pragma once
#include <initializer_list>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "ir/dim.hpp"
#include "ir/dtype.hpp"
#include "ir/tensor.hpp"

namespace bertcl::ir {

struct Type {
  DType dtype = DType::f32;
  Shape shape;
  friend bool operator==(const Type&, const Type&) = default;
};
/// A dimension of a tensor of that rank, negative values counted from the end; null if it is out of
/// range.
inline std::optional<std::size_t> axis_within(std::int64_t axis, std::size_t rank) {
  const std::int64_t from_start = axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis;
  if (from_start < 0 || from_start >= static_cast<std::int64_t>(rank)) return std::nullopt;
  return static_cast<std::size_t>(from_start);
}

/// Text form "f32[batch, seq, 768]".
std::string str(const Type& type);

using Attribute =
    std::variant<std::int64_t, double, std::string, std::vector<std::int64_t>, std::vector<double>>;
using Attributes = std::map<std::string, Attribute, std::less<>>;

struct Node;

/// One SSA value: a graph input, a constant, or a result of a node.
struct Value {
  std::string name;  // unique within the graph
  Type type;
  Node* producer = nullptr;        // null for inputs and constants
  std::optional<Tensor> constant;  // its bytes, for constants
  std::vector<Node*> users;        // one entry for each operand that reads it

  bool is_constant() const { return constant.has_value(); }
};

/// Whether it has one element, in any shape.
inline bool is_scalar(const Value* value) { return element_count(value->type.shape) == Dim(1); }

/// One operation. Operators of ONNX keep their names, and the importer normalizes their form;
/// bertcl's own operators are in lower case (`linear`, `add_norm`).
struct Node {
  std::string op;
  std::vector<Value*> inputs;  // null where an optional operand is absent
  std::vector<Value*> outputs;
  Attributes attributes;
  std::vector<std::string> sources;  // names of the ONNX nodes it stands for

  Value* input(std::size_t i) const { return i < inputs.size() ? inputs[i] : nullptr; }
  Value* output() const { return outputs.front(); }

  bool has(std::string_view key) const { return attributes.find(key) != attributes.end(); }
  /// The attribute's value; throws bertcl::Error naming node and attribute if it is absent or of
  /// another kind.
  std::int64_t int_attribute(std::string_view key) const;
  double float_attribute(std::string_view key) const;
  const std::string& string_attribute(std::string_view key) const;
  const std::vector<std::int64_t>& ints_attribute(std::string_view key) const;
  /// The same with a default for an absent attribute.
  std::int64_t int_attribute(std::string_view key, std::int64_t default_value) const;
  double float_attribute(std::string_view key, double default_value) const;

  /// "MatMul '/encoder/layer.0/MatMul'" for messages.
  std::string describe() const;
};

/// True if it computes one of these.
bool is_any_of(const Node& node, std::initializer_list<std::string_view> ops);

/// A node of the ONNX file, functions and branches inlined. Node::sources names those that a node
/// stands for.
struct SourceNode {
  std::string name;  // its first output if the file gives none
  std::string op;
};

struct GraphOutput {
  std::string name;  // as the user calls it; the value's own name may differ after rewrites
  Value* value;
};

/// A graph owns its values and nodes. Nodes are in topological order, which every mutation
/// preserves.
class Graph {
 public:
  Graph() = default;
  Graph(Graph&&) = default;
  Graph& operator=(Graph&&) = default;

  std::string name = "graph";
  std::vector<SourceNode> source_nodes;  // of the file, in its order; rewrites leave them alone
  std::map<std::string, std::string> metadata;  // of the file, what its author wrote into it

  Value* add_input(std::string_view name, Type type);
  Value* add_constant(std::string_view name, Tensor tensor);
  /// Appends a node, or inserts it before `before`. Result names are made unique.
  struct Result {
    std::string name;
    Type type;
  };
  Node* add_node(std::string op, std::vector<Value*> inputs, Attributes attributes,
                 std::vector<Result> results, Node* before = nullptr);
  /// The common case of one result, which is returned.
  Value* add(std::string op, std::vector<Value*> inputs, Attributes attributes, Type type,
             Node* before = nullptr, std::string_view result_name = {});
  /// One more result of a node.
  Value* add_result(Node* node, std::string_view name, Type type);
  void add_output(std::string name, Value* value) { outputs_.push_back({std::move(name), value}); }

  /// Redirects every use of `old`, graph outputs included, to `replacement`.
  void replace_uses(Value* old, Value* replacement);
  /// Swaps the names of two values, so that a value that replaces another takes its name.
  void swap_names(Value* a, Value* b);
  /// Gives a value another name; it keeps its own if that one is taken.
  void rename_if_free(Value* value, std::string_view to);
  void set_input(Node* node, std::size_t index, Value* value);
  /// Removes a node whose results are all unused.
  void erase(Node* node);
  /// Removes nodes and constants that nothing uses; true if there were any. Inputs stay.
  bool remove_dead();

  const std::vector<Value*>& inputs() const { return inputs_; }
  /// The symbols of their shapes: sizes that every run knows.
  Symbols input_symbols() const;
  const std::vector<GraphOutput>& outputs() const { return outputs_; }
  std::vector<GraphOutput>& outputs() { return outputs_; }
  /// Nodes in topological order. Stays valid while nodes are added; do not erase the current one.
  const std::list<std::unique_ptr<Node>>& nodes() const { return nodes_; }
  /// A copy of the node list, safe to iterate over while rewriting (skip entries that contains()
  /// denies).
  std::vector<Node*> node_list() const;
  bool contains(const Node* node) const { return position_.contains(const_cast<Node*>(node)); }
  std::vector<Value*> constants() const;
  Value* find_value(std::string_view name) const;
  /// True if `value` has exactly one use, graph outputs included.
  bool used_once(const Value* value) const;
  bool is_output(const Value* value) const;
  /// A symbol that no shape of this graph uses yet: "n0", "n1", ...
  Dim fresh_symbol();
  /// Two sizes that must be equal in every run: the operators of the graph need it, but the file
  /// does not state it.
  void assume_equal(const Dim& a, const Dim& b);
  const std::vector<std::pair<Dim, Dim>>& assumptions() const { return assumptions_; }
  /// Likewise, that the first size of each pair must be at most the second.
  void assume_at_most(const Dim& size, const Dim& most) { at_most_.emplace(size, most); }
  const std::set<std::pair<Dim, Dim>>& at_most() const { return at_most_; }

 private:
  using NodeList = std::list<std::unique_ptr<Node>>;
  Value* make_value(std::string_view name, Type type);
  void drop_value(Value* value);

  std::map<std::string, std::unique_ptr<Value>, std::less<>> values_;
  std::map<Node*, NodeList::iterator> position_;
  NodeList nodes_;
  std::vector<Value*> inputs_;
  std::vector<GraphOutput> outputs_;
  int next_symbol_ = 0;
  std::vector<std::pair<Dim, Dim>> assumptions_;
  std::set<std::pair<Dim, Dim>> at_most_;
  std::map<std::string, int, std::less<>> next_suffix_;
};

}  // namespace bertcl::ir
