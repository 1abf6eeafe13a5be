// SPDX-License-Identifier: Apache-2.0
// Which nodes and operands the user names: by patterns on nodes, by keywords on quantizers.
#include "quant/node_rules.hpp"

#include <fmt/format.h>
#include <fnmatch.h>

#include "bertcl/error.hpp"

namespace bertcl::quant {

const std::string* NodePatterns::find(const onnx::NodeProto& node) {
  const std::string* found = nullptr;
  for (std::size_t i = 0; i < patterns_.size(); ++i)
    if (::fnmatch(patterns_[i].c_str(), label_of(node).c_str(), 0) == 0) {
      used_[i] = true;
      found = &patterns_[i];
    }
  return found;
}

void NodePatterns::check_all_used() const {
  for (std::size_t i = 0; i < patterns_.size(); ++i)
    if (!used_[i])
      throw Error(
          fmt::format("no node has a name like '{}', which {}; `bertcl inspect` lists the "
                      "nodes",
                      patterns_[i], purpose_));
}

QuantizerNames::QuantizerNames(const GraphIndex& index,
                               const std::vector<AttentionParts>& attentions)
    : index_(index) {
  for (const auto& parts : attentions) {
    products_[parts.scores] = "qk";
    products_[parts.context] = "av";
  }
}

std::string QuantizerNames::operator()(int node, int input, bool weight) const {
  const auto& proto = index_.node(node);
  std::string quantizer = weight ? "_weight_quantizer" : "_input_quantizer";
  if (const auto it = products_.find(node); it != products_.end() && input < 2) {
    quantizer =
        fmt::format("matmul_{}_input_quantizer", it->second[static_cast<std::size_t>(input)]);
  } else if (is_op(proto, "Add")) {
    // The local input comes from a product, the other one around it.
    const auto from_product = [&](int producer) {
      return producer >= 0 && is_op(index_.node(producer), "MatMul");
    };
    const int producer = index_.producer(proto.input(input));
    bool local = from_product(producer);
    if (producer >= 0 && is_op(index_.node(producer), "Add"))
      for (const auto& i : index_.node(producer).input())
        local = local || from_product(index_.producer(i));
    quantizer = local ? "add_local_input_quantizer" : "add_residual_input_quantizer";
  }
  std::string module = module_of(index_, node);
  return (module.empty() ? label_of(proto) : module) + "." + quantizer;
}

Keywords::Keywords(const std::vector<std::string>& disable,
                   const std::vector<std::string>& disable_module,
                   const std::vector<std::string>& enable_module) {
  const auto add = [&](const std::string& text, const char* prefix, bool enables) {
    try {
      expressions_.push_back({text, std::regex(prefix + text), enables, false});
    } catch (const std::regex_error& e) {
      throw Error(fmt::format("'{}' is no regular expression: {}", text, e.what()));
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
      throw Error(fmt::format("no quantizer has a name that matches '{}'; one of them is '{}'",
                              e.text, example_));
}

}  // namespace bertcl::quant
