// SPDX-License-Identifier: Apache-2.0
// Mutations of the graph; each maintains use lists and topological order.
#include "ir/graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "bertcl/error.hpp"
#include "support/parse_number.hpp"

namespace bertcl::ir {
namespace {

template <class T>
const T* find_attribute(const Node& node, std::string_view key) {
  const auto it = node.attributes.find(key);
  if (it == node.attributes.end()) return nullptr;
  const T* value = std::get_if<T>(&it->second);
  if (!value)
    throw Error(fmt::format("{}: attribute '{}' has an unexpected type", node.describe(), key));
  return value;
}

template <class T>
const T& need_attribute(const Node& node, std::string_view key) {
  if (const T* value = find_attribute<T>(node, key)) return *value;
  throw Error(fmt::format("{}: attribute '{}' is missing", node.describe(), key));
}

}  // namespace

std::string str(const Type& type) {
  return fmt::format("{}{}", name_of(type.dtype), str(type.shape));
}

std::int64_t Node::int_attribute(std::string_view key) const {
  return need_attribute<std::int64_t>(*this, key);
}
double Node::float_attribute(std::string_view key) const {
  return need_attribute<double>(*this, key);
}
const std::string& Node::string_attribute(std::string_view key) const {
  return need_attribute<std::string>(*this, key);
}
const std::vector<std::int64_t>& Node::ints_attribute(std::string_view key) const {
  return need_attribute<std::vector<std::int64_t>>(*this, key);
}
std::int64_t Node::int_attribute(std::string_view key, std::int64_t default_value) const {
  const auto* value = find_attribute<std::int64_t>(*this, key);
  return value ? *value : default_value;
}
double Node::float_attribute(std::string_view key, double default_value) const {
  const auto* value = find_attribute<double>(*this, key);
  return value ? *value : default_value;
}

std::string Node::describe() const {
  if (!sources.empty() && !sources.front().empty())
    return fmt::format("{} '{}'", op, sources.front());
  if (!outputs.empty()) return fmt::format("{} (result '{}')", op, outputs.front()->name);
  return op;
}

Value* Graph::make_value(std::string_view name, Type type) {
  std::string unique(name.empty() ? "v" : name);
  if (name.empty() || values_.contains(unique)) {
    int& suffix = next_suffix_[unique];
    std::string candidate;
    do candidate = fmt::format("{}_{}", unique, suffix++);
    while (values_.contains(candidate));
    unique = std::move(candidate);
  }
  auto value = std::make_unique<Value>();
  value->name = unique;
  value->type = std::move(type);
  Value* raw = value.get();
  values_.emplace(std::move(unique), std::move(value));
  return raw;
}

void Graph::drop_value(Value* value) { values_.erase(values_.find(value->name)); }

Value* Graph::add_input(std::string_view name, Type type) {
  inputs_.push_back(make_value(name, std::move(type)));
  return inputs_.back();
}

Value* Graph::add_constant(std::string_view name, Tensor tensor) {
  Type type{tensor.dtype(), Shape(tensor.shape().begin(), tensor.shape().end())};
  Value* value = make_value(name.empty() ? "c" : name, std::move(type));
  value->constant = std::move(tensor);
  return value;
}

Node* Graph::add_node(std::string op, std::vector<Value*> inputs, Attributes attributes,
                      std::vector<Result> results, Node* before) {
  auto owned = std::make_unique<Node>();
  Node* node = owned.get();
  node->op = std::move(op);
  node->inputs = std::move(inputs);
  node->attributes = std::move(attributes);
  for (Value* in : node->inputs)
    if (in) in->users.push_back(node);
  for (Result& r : results) add_result(node, r.name, std::move(r.type));
  const auto where = before ? position_.at(before) : nodes_.end();
  position_[node] = nodes_.insert(where, std::move(owned));
  return node;
}

Value* Graph::add_result(Node* node, std::string_view name, Type type) {
  Value* result = make_value(name, std::move(type));
  result->producer = node;
  node->outputs.push_back(result);
  return result;
}

Value* Graph::add(std::string op, std::vector<Value*> inputs, Attributes attributes, Type type,
                  Node* before, std::string_view result_name) {
  return add_node(std::move(op), std::move(inputs), std::move(attributes),
                  {{std::string(result_name), std::move(type)}}, before)
      ->output();
}

void Graph::replace_uses(Value* old, Value* replacement) {
  if (old == replacement) return;
  for (Node* user : old->users)
    for (Value*& operand : user->inputs)
      if (operand == old) {
        operand = replacement;
        replacement->users.push_back(user);
      }
  old->users.clear();
  for (GraphOutput& out : outputs_)
    if (out.value == old) out.value = replacement;
}

void Graph::rename_if_free(Value* value, std::string_view to) {
  if (to.empty() || values_.contains(to)) return;
  auto held = values_.extract(value->name);
  held.key() = value->name = to;
  values_.insert(std::move(held));
}

void Graph::swap_names(Value* a, Value* b) {
  values_.at(a->name).swap(values_.at(b->name));
  std::swap(a->name, b->name);
}

void Graph::set_input(Node* node, std::size_t index, Value* value) {
  if (node->inputs.size() <= index) node->inputs.resize(index + 1, nullptr);
  if (Value* old = node->inputs[index]) old->users.erase(std::ranges::find(old->users, node));
  node->inputs[index] = value;
  if (value) value->users.push_back(node);
}

void Graph::erase(Node* node) {
  for (const Value* out : node->outputs)
    if (!out->users.empty() || is_output(out))
      throw Error(fmt::format("cannot remove {}: '{}' is still used", node->describe(), out->name));
  for (std::size_t i = 0; i < node->inputs.size(); ++i) set_input(node, i, nullptr);
  for (Value* out : node->outputs) drop_value(out);
  const auto it = position_.find(node);
  nodes_.erase(it->second);
  position_.erase(it);
}

bool Graph::remove_dead() {
  std::unordered_set<const Value*> kept;
  for (const GraphOutput& out : outputs_) kept.insert(out.value);
  std::unordered_set<const Node*> dead;
  const auto is_dead = [&](const Node* node) { return dead.contains(node); };
  for (auto node = nodes_.rbegin(); node != nodes_.rend(); ++node) {
    const auto& outputs = (*node)->outputs;
    // A node without results is there for its effect (`observe`).
    if (!outputs.empty() && std::ranges::all_of(outputs, [&](const Value* v) {
          return !kept.contains(v) && std::ranges::all_of(v->users, is_dead);
        }))
      dead.insert(node->get());
  }
  // All uses of a value at once: one by one, thousands of dead users of one value take long.
  std::unordered_set<Value*> read;
  for (const Node* node : dead) read.insert(node->inputs.begin(), node->inputs.end());
  for (Value* v : read)
    if (v) std::erase_if(v->users, is_dead);
  for (auto node = nodes_.begin(); node != nodes_.end();) {
    if (!is_dead(node->get())) {
      ++node;
      continue;
    }
    for (Value* out : (*node)->outputs) drop_value(out);
    position_.erase(node->get());
    node = nodes_.erase(node);
  }
  for (Value* c : constants())
    if (c->users.empty() && !kept.contains(c)) drop_value(c);
  return !dead.empty();
}

std::vector<Node*> Graph::node_list() const {
  std::vector<Node*> list;
  for (const auto& n : nodes_) list.push_back(n.get());
  return list;
}

std::vector<Value*> Graph::constants() const {
  std::vector<Value*> list;
  for (const auto& [name, value] : values_)
    if (value->is_constant()) list.push_back(value.get());
  return list;
}

Value* Graph::find_value(std::string_view value_name) const {
  const auto it = values_.find(value_name);
  return it == values_.end() ? nullptr : it->second.get();
}

bool Graph::used_once(const Value* value) const {
  return value->users.size() + (is_output(value) ? 1u : 0u) == 1;
}

bool Graph::is_output(const Value* value) const {
  return std::ranges::any_of(outputs_, [&](const GraphOutput& o) { return o.value == value; });
}

bool is_any_of(const Node& node, std::initializer_list<std::string_view> ops) {
  return std::ranges::find(ops, node.op) != ops.end();
}

Symbols Graph::input_symbols() const {
  Symbols symbols;
  for (const Value* in : inputs_)
    for (const Dim& d : in->type.shape) symbols.insert(d.symbols().begin(), d.symbols().end());
  return symbols;
}

Dim Graph::fresh_symbol() {
  const auto reserve_symbols_of = [&](const Dim& dim) {
    for (const std::string& symbol : dim.symbols()) {
      if (!is_fresh_symbol(symbol)) continue;
      const auto number = parse_number<int>(std::string_view(symbol).substr(1));
      if (number && *number < (1 << 30)) next_symbol_ = std::max(next_symbol_, *number + 1);
    }
  };
  // Symbols in use are looked up once: shapes that come later get theirs here.
  if (next_symbol_ == 0) {
    for (const auto& [name, value] : values_)
      std::ranges::for_each(value->type.shape, reserve_symbols_of);
    const auto reserve_both = [&](const std::pair<Dim, Dim>& pair) {
      reserve_symbols_of(pair.first);
      reserve_symbols_of(pair.second);
    };
    std::ranges::for_each(assumptions_, reserve_both);
    std::ranges::for_each(at_most_, reserve_both);
  }
  return Dim::symbol(fmt::format("n{}", next_symbol_++));
}

void Graph::assume_equal(const Dim& a, const Dim& b) {
  const std::pair pair(std::min(a, b), std::max(a, b));
  if (std::ranges::find(assumptions_, pair) == assumptions_.end()) assumptions_.push_back(pair);
}

}  // namespace bertcl::ir
