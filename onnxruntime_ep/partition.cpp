// SPDX-License-Identifier: Apache-2.0
// The search for the part of a graph that bertcl takes.
#include "onnxruntime_ep/partition.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>

#include "ir/node_error.hpp"

namespace bertcl::onnxruntime_ep {
namespace {

constexpr int kMaxSearches = 16;  // for nodes that the importer refuses without a name

bool multiplies(const Node& node) {
  const std::string_view op = node.proto.op_type();
  return op.find("MatMul") != op.npos || op.find("Attention") != op.npos || op == "Gemm" ||
         op == "Einsum";
}

/// The error of an import, with the nodes that it names; none: it succeeds.
std::optional<ir::NodeError> failure(const Graph& graph, const NodeSet& part) {
  try {
    graph.import(part, false);
    return std::nullopt;
  } catch (const ir::NodeError& error) {
    return error;
  } catch (const Error& error) {
    return ir::NodeError({}, error.what(), error.code());
  }
}

/// The last node of the shortest beginning of `part` that the importer refuses, which is the cause:
/// it goes through a graph from the first node to the last.
std::string culprit(const Graph& graph, const NodeSet& part) {
  std::size_t good = 0, bad = part.size();
  while (bad - good > 1) {
    const std::size_t middle = (good + bad) / 2;
    const NodeSet beginning(part.begin(), part.begin() + static_cast<std::ptrdiff_t>(middle));
    (failure(graph, beginning) ? bad : good) = middle;
  }
  return graph.nodes()[part[bad - 1]].name();
}

/// The largest of the parts that nodes with refusals divide a graph into. A node's level is how
/// often a path to it can leave what is supported and come back, so nodes of one level are never on
/// both sides of one that is not; a node that only later levels use moves up to them.
NodeSet largest_part(const Graph& graph) {
  const auto& nodes = graph.nodes();
  std::vector<char> supported;
  for (const Node& node : nodes) supported.push_back(node.refusal.empty() ? 1 : 0);
  std::map<std::string, std::size_t> producer;
  std::vector<int> level(nodes.size(), 0);
  std::vector<std::vector<std::size_t>> users(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (const std::string& name : nodes[i].proto.input()) {
      const auto found = producer.find(name);
      if (name.empty() || found == producer.end()) continue;
      const std::size_t from = found->second;
      users[from].push_back(i);
      level[i] = std::max(level[i], level[from] + (supported[i] && !supported[from] ? 1 : 0));
    }
    for (const std::string& name : nodes[i].proto.output()) producer.emplace(name, i);
  }
  for (std::size_t i = nodes.size(); i-- > 0;) {
    if (!supported[i] || users[i].empty()) continue;
    if (!std::ranges::all_of(users[i], [&](std::size_t user) { return supported[user] != 0; }))
      continue;
    const auto earliest =
        std::ranges::min(users[i], {}, [&](std::size_t user) { return level[user]; });
    level[i] = level[earliest];
  }
  std::map<int, std::pair<int, NodeSet>> parts;  // by level: multiplications, nodes
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!supported[i]) continue;
    auto& [multiplications, part] = parts[level[i]];
    multiplications += multiplies(nodes[i]) ? 1 : 0;
    part.push_back(i);
  }
  const auto best =
      std::ranges::max_element(parts, {}, [](const auto& part) { return part.second.first; });
  return best == parts.end() || best->second.first == 0 ? NodeSet() : best->second.second;
}

}  // namespace

NodeSet choose(Graph& graph) {
  for (int searches = 0;;) {
    const NodeSet part = largest_part(graph);
    if (part.empty()) return {};
    const auto error = failure(graph, part);
    if (!error) return part;
    if (graph.refuse(part, error->sources, error->what())) continue;
    if (++searches > kMaxSearches) return {};
    graph.refuse(part, {culprit(graph, part)}, error->what());
  }
}

std::vector<std::string> reasons(const Graph& graph) {
  std::vector<std::string> result;
  for (const Node& node : graph.nodes())
    if (!node.refusal.empty())
      result.push_back(fmt::format("{} '{}': {}", node.proto.op_type(), node.name(), node.refusal));
  return result;
}

}  // namespace bertcl::onnxruntime_ep
