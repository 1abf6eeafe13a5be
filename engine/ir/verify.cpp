// SPDX-License-Identifier: Apache-2.0
// The verifier that runs after every pass.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>
#include <utility>
#include <vector>

#include "bertcl/error.hpp"
#include "ir/text.hpp"

namespace bertcl::ir {

void verify(const Graph& graph, std::string_view where) {
  const auto fail = [&](const std::string& what) {
    throw Error(where.empty() ? fmt::format("invalid graph: {}", what)
                              : fmt::format("invalid graph after {}: {}", where, what));
  };
  std::unordered_set<const Value*> defined(graph.inputs().begin(), graph.inputs().end());
  for (const Value* c : graph.constants()) {
    defined.insert(c);
    const auto sizes = constant_shape(c->type.shape);
    if (!sizes || *sizes != c->constant->shape() || c->type.dtype != c->constant->dtype())
      fail(fmt::format("constant '{}' is declared {} but its data is {}[{}]", c->name, str(c->type),
                       name_of(c->constant->dtype()), fmt::join(c->constant->shape(), ", ")));
  }
  std::vector<std::pair<const Value*, const Node*>> read, listed;  // uses, by nodes and by values
  for (const auto& node : graph.nodes()) {
    for (const Value* in : node->inputs) {
      if (!in) continue;
      if (!defined.contains(in))
        fail(fmt::format("{} reads '{}' before it is defined", node->describe(), in->name));
      read.emplace_back(in, node.get());
    }
    for (const Value* out : node->outputs) {
      if (out->producer != node.get())
        fail(fmt::format("'{}' does not record {} as its producer", out->name, node->describe()));
      if (!defined.insert(out).second) fail(fmt::format("'{}' is defined twice", out->name));
    }
  }
  for (const Value* v : defined)
    for (const Node* user : v->users) listed.emplace_back(v, user);
  std::ranges::sort(read);
  std::ranges::sort(listed);
  if (const auto [r, l] = std::mismatch(read.begin(), read.end(), listed.begin(), listed.end());
      r != read.end() || l != listed.end()) {
    const bool unlisted = l == listed.end() || (r != read.end() && *r < *l);
    const Value& v = *(unlisted ? r : l)->first;
    fail(unlisted ? fmt::format("the use list of '{}' lacks {}", v.name, r->second->describe())
                  : fmt::format("'{}' lists a use that no node has", v.name));
  }
  for (const GraphOutput& out : graph.outputs())
    if (!out.value || !defined.contains(out.value))
      fail(fmt::format("nothing produces graph output '{}'", out.name));
}

}  // namespace bertcl::ir
