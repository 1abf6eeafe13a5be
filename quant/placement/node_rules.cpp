// SPDX-License-Identifier: Apache-2.0
// Nodes and operands selected by the user: patterns for nodes, keywords for quantizers.
#include "quant/placement/node_rules.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>
#include <iterator>
#include <utility>

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

std::string module_path(const std::string& name) {
  std::string path = name.starts_with('/') ? name.substr(1) : name;
  std::ranges::replace(path, '/', '.');
  const auto last = path.rfind('.');
  return last == std::string::npos ? "" : path.substr(0, last);
}

bool passes_on(const onnx::NodeProto& node) {
  constexpr std::string_view ops[] = {"Identity", "Cast", "Transpose", "DequantizeLinear",
                                      "QuantizeLinear"};
  return std::any_of(std::begin(ops), std::end(ops),
                     [&](std::string_view op) { return is_op(node, op); });
}

/// "....query.bias", also after Casts and Transposes.
std::string module_of_constant(const GraphIndex& index, std::string tensor) {
  for (int steps = 0; steps < 4; ++steps) {
    if (tensor.ends_with(".weight") || tensor.ends_with(".bias")) return module_path(tensor);
    const int producer = index.producer(tensor);
    if (producer < 0 || index.node(producer).input_size() == 0 || !passes_on(index.node(producer)))
      break;
    tensor = index.node(producer).input(0);
  }
  return "";
}

/// Of the first operand that tells it; empty where none does, or the node is -1.
std::string module_of_constants(const GraphIndex& index, int node) {
  if (node < 0) return "";
  for (const auto& input : index.node(node).input())
    if (auto module = module_of_constant(index, input); !module.empty()) return module;
  return "";
}

/// The path of the module that a node was exported from, with dots
/// ("bert.encoder.layer.0.attention.self.query"): of its name, else of a constant that it or the
/// node after it reads; of a sum, the module that holds its norm. Empty where none of these tells.
std::string module_of_node(const GraphIndex& index, const Structure& structure, int node) {
  const auto& n = index.node(node);
  if (n.name().find('/') != std::string::npos) return module_path(n.name());
  if (auto module = module_of_constants(index, node); !module.empty()) return module;
  if (n.output_size() == 0) return module_path(n.name());
  // Gamma or beta tells the module of the norm's parent, the bias that of the MatMul.
  if (const auto norm = structure.normalized.find(n.output(0)); norm != structure.normalized.end())
    if (auto module = module_of_constants(index, index.producer(norm->second)); !module.empty())
      return module_path(module);
  for (const Use use : index.uses(n.output(0)))
    if (auto module = module_of_constants(index, use.node); !module.empty()) return module;
  return module_path(n.name());
}

}  // namespace

std::size_t distance_to_part(std::string_view pattern, std::string_view name) {
  // Sellers' algorithm: costs[i] is that of the first i characters of the pattern against what ends
  // at the current character of the name, wherever it begins.
  std::vector<std::size_t> costs(pattern.size() + 1);
  for (std::size_t i = 0; i < pattern.size(); ++i)
    costs[i + 1] = costs[i] + (pattern[i] == '*' ? 0 : 1);
  std::size_t min_cost = costs.back();
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
    min_cost = std::min(min_cost, costs.back());
  }
  return min_cost;
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
  std::string module = module_of_node(index_, structure_, node);
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
    if (!e.used)
      fail("no quantizer name matches '{}' (an example of a name: '{}')", e.text, example_);
}

}  // namespace bertcl::quant
