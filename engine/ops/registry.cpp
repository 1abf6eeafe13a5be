// SPDX-License-Identifier: Apache-2.0
// The table of operators and the contexts that their functions see.
#include <fmt/format.h>

#include <map>

#include "bertcl/error.hpp"
#include "ops/definitions/all.hpp"
#include "ops/op.hpp"
#include "support/for_each.hpp"

namespace bertcl::ops {

// Each file NAME.cpp of definitions/ has the function NAME_ops().
#define BERTCL_DECLARE_OPS(name) std::vector<OpDef> name##_ops();
BERTCL_FOR_EACH(BERTCL_DECLARE_OPS, BERTCL_DEFINITION_FILES)

namespace {

using Registry = std::map<std::string, OpDef, std::less<>>;

const Registry& registry() {
  static const Registry table = [] {
    Registry r;
#define BERTCL_LIST_OPS(name) name##_ops,
    for (const auto file_ops : {BERTCL_FOR_EACH(BERTCL_LIST_OPS, BERTCL_DEFINITION_FILES)})
      for (OpDef& def : file_ops()) r.emplace(def.name, def);
    return r;
  }();
  return table;
}

}  // namespace

const OpDef* find(std::string_view op) {
  const auto it = registry().find(op);
  return it == registry().end() ? nullptr : &it->second;
}

const OpDef& get(const ir::Node& node) {
  if (const OpDef* def = find(node.op)) return *def;
  NodeContext{node}.fail("this operator cannot be evaluated on the host");
}

const Traits& traits(std::string_view op) {
  static const Traits none;
  const OpDef* def = find(op);
  return def ? def->traits : none;
}

std::vector<std::string> names() {
  std::vector<std::string> list;
  for (const auto& [name, def] : registry()) list.push_back(name);
  return list;
}

std::size_t axis_of(const ir::Node& node, std::string_view key, std::int64_t default_value,
                    std::size_t rank) {
  return NodeContext{node}.axis(node.int_attribute(key, default_value), rank, key);
}

bool is_last_axis(const ir::Node& node, std::int64_t default_value, const ir::Shape& shape) {
  const std::int64_t axis = node.int_attribute("axis", default_value);
  return axis == -1 || axis == std::ssize(shape) - 1;
}

std::size_t NodeContext::axis(std::int64_t given, std::size_t rank, std::string_view name) const {
  if (const auto axis = ir::axis_within(given, rank)) return *axis;
  fail("{} {} is out of range for rank {}", name, given, rank);
}

void NodeContext::fail(const std::string& what) const {
  throw Error(fmt::format("{}: {}", node.describe(), what));
}

const ir::Type& InferContext::type(std::size_t i) const {
  if (!has(i)) fail(fmt::format("operand {} is missing", i));
  return node.input(i)->type;
}
const std::vector<ir::Dim>* InferContext::elements(std::size_t i) const {
  return has(i) ? values.find(node.input(i)) : nullptr;
}
std::string InferContext::described(std::size_t i) const {
  return fmt::format("'{}' {}", node.input(i)->name, ir::str(type(i)));
}

const ir::Tensor& EvaluateContext::in(std::size_t i) const {
  if (!has(i)) fail(fmt::format("operand {} is missing", i));
  return *inputs[i];
}
ir::Sizes EvaluateContext::result_sizes(std::size_t i) const {
  return ir::evaluate(node.outputs.at(i)->type.shape, bindings);
}

}  // namespace bertcl::ops
