// SPDX-License-Identifier: Apache-2.0
// The verifier that runs after every pass.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "bertcl/error.hpp"
#include "ir/text.hpp"

namespace bertcl::ir {

void verify(const Graph& graph, std::string_view where) {
  const auto fail = [&](const std::string& what) {
    throw Error(where.empty() ? fmt::format("invalid graph: {}", what)
                              : fmt::format("invalid graph after {}: {}", where, what));
  };
  std::set<const Value*> defined(graph.inputs().begin(), graph.inputs().end());
  for (const Value* c : graph.constants()) {
    defined.insert(c);
    const auto sizes = constant_shape(c->type.shape);
    if (!sizes || *sizes != c->constant->shape() || c->type.dtype != c->constant->dtype())
      fail(fmt::format("constant '{}' is declared {} but its bytes are of another type", c->name,
                       str(c->type)));
  }
  std::map<const Value*, std::size_t> uses;
  for (const auto& node : graph.nodes()) {
    for (const Value* in : node->inputs) {
      if (!in) continue;
      if (!defined.contains(in))
        fail(fmt::format("{} reads '{}' before it is defined", node->describe(), in->name));
      ++uses[in];
      if (std::count(in->users.begin(), in->users.end(), node.get()) !=
          std::count(node->inputs.begin(), node->inputs.end(), in))
        fail(fmt::format("the use list of '{}' does not match {}", in->name, node->describe()));
    }
    for (const Value* out : node->outputs) {
      if (out->producer != node.get())
        fail(fmt::format("'{}' does not know that {} makes it", out->name, node->describe()));
      if (!defined.insert(out).second) fail(fmt::format("'{}' is defined twice", out->name));
    }
  }
  for (const Value* v : defined)
    if (v->users.size() != uses[v])
      fail(fmt::format("'{}' lists {} uses, {} were found", v->name, v->users.size(), uses[v]));
  for (const GraphOutput& out : graph.outputs())
    if (!out.value || !defined.contains(out.value))
      fail(fmt::format("output '{}' is not defined", out.name));
}

}  // namespace bertcl::ir
