// SPDX-License-Identifier: Apache-2.0
// Nodes and operands selected by the user: patterns for nodes, keywords for quantizers.
#include "quant/placement/node_rules.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>
#include <utility>

#include "quant/placement/module_path.hpp"
#include "support/fail.hpp"

namespace bertcl::quant {

namespace {

constexpr std::size_t kShownNames = 3;

bool fits(const std::string& pattern, const std::string& name) {
  return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

/// The names that are nearest to a pattern, quoted.
std::vector<std::string> nearest(const std::string& pattern,
                                 const std::vector<std::string>& names) {
  std::vector<std::pair<std::size_t, std::string>> by_distance;
  for (const std::string& name : names)
    by_distance.emplace_back(distance_to_part(pattern, name), fmt::format("'{}'", name));
  std::ranges::stable_sort(by_distance,
                           [](const auto& a, const auto& b) { return a.first < b.first; });
  by_distance.resize(std::min(by_distance.size(), kShownNames));
  std::vector<std::string> shown;
  for (auto& [distance, name] : by_distance) shown.push_back(std::move(name));
  return shown;
}

}  // namespace

std::size_t distance_to_part(std::string_view pattern, std::string_view name) {
  // Sellers' algorithm: costs[i] is that of the first i characters of the pattern against what ends
  // at the current character of the name, wherever it begins.
  std::vector<std::size_t> costs(pattern.size() + 1);
  for (std::size_t i = 0; i < pattern.size(); ++i)
    costs[i + 1] = costs[i] + (pattern[i] == '*' ? 0 : 1);
  std::size_t least = costs.back();
  for (const char c : name) {
    std::size_t diagonal = costs[0];
    for (std::size_t i = 0; i < pattern.size(); ++i) {
      const std::size_t above = costs[i + 1];
      if (pattern[i] == '*')
        costs[i + 1] = std::min(costs[i], above);
      else
        costs[i + 1] = std::min(
            {diagonal + (pattern[i] == c || pattern[i] == '?' ? 0 : 1), above + 1, costs[i] + 1});
      diagonal = above;
    }
    least = std::min(least, costs.back());
  }
  return least;
}

const std::string* NodePatterns::find(const onnx::NodeProto& node) {
  if (patterns_.empty()) return nullptr;
  const std::string& name = label_of(node);
  if (std::ranges::find(asked_, name) == asked_.end()) asked_.push_back(name);
  const std::string* found = nullptr;
  for (std::size_t i = 0; i < patterns_.size(); ++i)
    if (fits(patterns_[i], name)) {
      used_[i] = true;
      found = &patterns_[i];
    }
  return found;
}

void NodePatterns::check_all_used(const GraphIndex& graph) const {
  for (std::size_t i = 0; i < patterns_.size(); ++i) {
    if (used_[i] || asked_.empty()) continue;
    std::string what = fmt::format("no node to {} matches '{}'", purpose_, patterns_[i]);
    for (int n = 0; n < graph.node_count(); ++n)
      if (const auto& node = graph.node(n); fits(patterns_[i], label_of(node))) {
        what = fmt::format(
            "no node to {} matches '{}': node '{}' ({}) is not quantized with these options",
            purpose_, patterns_[i], label_of(node), node.op_type());
        break;
      }
    fail(
        "{}; nearest of the {} candidates: {}; a pattern must match the whole name, * "
        "matches any characters",
        what, asked_.size(), fmt::join(nearest(patterns_[i], asked_), ", "));
  }
}

QuantizerNames::QuantizerNames(const GraphIndex& index, const Structure& structure)
    : index_(index), structure_(structure) {
  for (const auto& parts : structure.attentions) {
    matmuls_[parts.scores] = "qk";
    matmuls_[parts.context] = "av";
  }
}

std::string QuantizerNames::operator()(int node, int input, bool weight) const {
  const auto& proto = index_.node(node);
  std::string quantizer = weight ? "_weight_quantizer" : "_input_quantizer";
  if (const auto it = matmuls_.find(node); it != matmuls_.end() && input < 2) {
    quantizer = fmt::format("matmul_{}_input_quantizer", it->second[input]);
  } else if (is_op(proto, "Add")) {
    // The local input comes from a MatMul and its bias, the other one around it.
    const auto from_matmul = [&](int producer) {
      return producer >= 0 && is_op(index_.node(producer), "MatMul");
    };
    const int producer = index_.producer(proto.input(input));
    bool local = from_matmul(producer);
    if (producer >= 0 && is_op(index_.node(producer), "Add") && !structure_.is_residual(producer))
      for (const auto& i : index_.node(producer).input())
        local = local || from_matmul(index_.producer(i));
    quantizer = local ? "add_local_input_quantizer" : "add_residual_input_quantizer";
  }
  std::string module = module_of(index_, structure_, node);
  return (module.empty() ? label_of(proto) : module) + "." + quantizer;
}

Keywords::Keywords(const std::vector<std::string>& disable,
                   const std::vector<std::string>& disable_module,
                   const std::vector<std::string>& enable_module) {
  const auto add = [&](const std::string& text, const char* prefix, bool enables) {
    try {
      expressions_.push_back({text, std::regex(prefix + text), enables, false});
    } catch (const std::regex_error& e) {
      fail("'{}' is not a regular expression: {}", text, e.what());
    }
  };
  const char* layer = "layer.\\d+.";
  for (const auto& text : disable) add(text, "", false);
  for (const auto& text : disable_module) add(text, layer, false);
  for (const auto& text : enable_module) add(text, layer, true);
}

const std::string* Keywords::disabled_by(const std::string& quantizer) {
  example_ = example_.empty() ? quantizer : example_;
  const std::string* by = nullptr;
  for (auto& e : expressions_)
    if (std::regex_search(quantizer, e.regex)) {
      e.used = true;
      by = e.enables ? nullptr : &e.text;
    }
  return by;
}

void Keywords::check_all_used() const {
  for (const auto& e : expressions_)
    if (!e.used) fail("no quantizer name matches '{}' (one of them is '{}')", e.text, example_);
}

}  // namespace bertcl::quant
