// SPDX-License-Identifier: Apache-2.0
// The search for the part of a graph that bertcl takes.
#include "onnxruntime_ep/partition.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>

namespace bertcl::onnxruntime_ep {
namespace {

constexpr int kMostFailures = 16;  // nodes that the importer may refuse before all stay

bool multiplies(const Node& node) {
  const std::string_view op = node.proto.op_type();
  return op.find("MatMul") != op.npos || op.find("Attention") != op.npos || op == "Gemm" ||
         op == "Einsum";
}

/// The error of an import; none: it succeeds.
std::optional<std::string> failure(const Graph& graph, const NodeSet& part) {
  try {
    graph.import(part, false);
    return std::nullopt;
  } catch (const Error& error) {
    return error.what();
  }
}

/// The last node of the shortest beginning of `part` that the importer refuses, which is the cause:
/// it goes through a graph from the first node to the last.
std::size_t culprit(const Graph& graph, const NodeSet& part) {
  std::size_t good = 0, bad = part.size();
  while (bad - good > 1) {
    const std::size_t middle = (good + bad) / 2;
    const NodeSet beginning(part.begin(), part.begin() + static_cast<std::ptrdiff_t>(middle));
    (failure(graph, beginning) ? bad : good) = middle;
  }
  return part[bad - 1];
}

/// The largest of the parts that nodes with refusals divide a graph into. A node's level is how
/// often a path to it can leave what is supported and come back, so nodes of one level are never on
/// both sides of one that is not; a node that only later levels use moves up to them.
NodeSet largest_part(const Graph& graph, const std::vector<char>& supported) {
  const auto& nodes = graph.nodes();
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

Partition choose(const Graph& graph) {
  Partition result;
  const auto& nodes = graph.nodes();
  std::vector<char> supported;
  const auto refuse = [&](const Node& node, const std::string& why) {
    result.reasons.push_back(
        fmt::format("{} '{}': {}", node.proto.op_type(), node.proto.name(), why));
  };
  for (const Node& node : nodes) {
    supported.push_back(node.refusal.empty() ? 1 : 0);
    if (!node.refusal.empty()) refuse(node, node.refusal);
  }
  for (int failures = 0; failures < kMostFailures; ++failures) {
    const NodeSet part = largest_part(graph, supported);
    if (part.empty()) return result;
    const auto error = failure(graph, part);
    if (!error) {
      result.nodes = part;
      return result;
    }
    const std::size_t cause = culprit(graph, part);
    supported[cause] = 0;
    refuse(nodes[cause], *error);
  }
  return result;
}

}  // namespace bertcl::onnxruntime_ep
