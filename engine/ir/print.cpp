// SPDX-License-Identifier: Apache-2.0
// Printer of the text form.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "ir/text.hpp"

namespace bertcl::ir {
namespace {

/// Shortest decimal that reads back equal, always recognizable as a float.
std::string float_text(double v) {
  std::string s = fmt::format("{}", v);
  if (s.find_first_of(".eni") == std::string::npos) s += ".0";
  return s;
}

std::string element_text(DType type, double v) {
  return type == DType::f64 ? float_text(v)
                            : float_text(std::stod(fmt::format("{}", static_cast<float>(v))));
}

std::string constant_text(const Tensor& t, std::int64_t max_elements) {
  if (t.size() > max_elements) return "...";
  std::vector<std::string> parts;
  if (is_float(t.dtype()))
    for (const double v : t.to_doubles()) parts.push_back(element_text(t.dtype(), v));
  else
    for (const std::int64_t v : t.to_ints()) parts.push_back(std::to_string(v));
  if (t.shape().empty()) return parts.front();
  return fmt::format("[{}]", fmt::join(parts, ", "));
}

std::string attribute_text(const Attribute& attribute) {
  struct Visitor {
    std::string operator()(std::int64_t v) const { return std::to_string(v); }
    std::string operator()(double v) const { return float_text(v); }
    std::string operator()(const std::string& v) const { return fmt::format("\"{}\"", v); }
    std::string operator()(const std::vector<std::int64_t>& v) const {
      return fmt::format("[{}]", fmt::join(v, ", "));
    }
    std::string operator()(const std::vector<double>& v) const {
      std::vector<std::string> parts;
      for (const double d : v) parts.push_back(float_text(d));
      return fmt::format("f[{}]", fmt::join(parts, ", "));
    }
  };
  return std::visit(Visitor{}, attribute);
}

class Printer {
 public:
  Printer(const Graph& graph, const PrintOptions& options) : graph_(graph), options_(options) {
    if (!options.renumber) return;
    int next = 0;
    for (const auto& node : graph.nodes())
      for (const Value* out : node->outputs) names_[out] = std::to_string(next++);
  }

  std::string run() {
    std::vector<std::string> inputs;
    for (const Value* in : graph_.inputs()) inputs.push_back(typed(in));
    std::string text = fmt::format("graph {}({}) {{\n", graph_.name, fmt::join(inputs, ", "));
    std::set<const Value*> printed;
    const auto constant = [&](const Value* v) {
      if (!v || !v->is_constant() || !printed.insert(v).second) return;
      if (options_.renumber) names_.emplace(v, fmt::format("c{}", printed.size() - 1));
      text += fmt::format("  const {} = {}\n", typed(v),
                          constant_text(*v->constant, options_.max_elements));
    };
    for (const auto& node : graph_.nodes()) {
      for (const Value* in : node->inputs) constant(in);
      text += "  " + line(*node) + "\n";
    }
    for (const GraphOutput& out : graph_.outputs()) constant(out.value);
    std::vector<std::string> results;
    for (const GraphOutput& out : graph_.outputs())
      results.push_back(fmt::format("{} as {}", ref(out.value), out.name));
    text += fmt::format("  return {}\n}}\n", fmt::join(results, ", "));
    return text;
  }

 private:
  std::string ref(const Value* v) const {
    if (!v) return "_";
    const auto it = names_.find(v);
    std::string name = it == names_.end() ? v->name : it->second;
    for (char& c : name)  // the characters that end a name in the text form
      if (std::string_view(" ,(){}=\"\n\t").find(c) != std::string_view::npos) c = '_';
    return "%" + name;
  }
  std::string typed(const Value* v) const { return fmt::format("{}: {}", ref(v), str(v->type)); }

  std::string line(const Node& node) const {
    std::vector<std::string> outs, ins, attributes;
    for (const Value* v : node.outputs) outs.push_back(typed(v));
    for (const Value* v : node.inputs) ins.push_back(ref(v));
    for (const auto& [key, value] : node.attributes)
      attributes.push_back(fmt::format("{} = {}", key, attribute_text(value)));
    std::string text = fmt::format("{}{}{}({})", fmt::join(outs, ", "), outs.empty() ? "" : " = ",
                                   node.op, fmt::join(ins, ", "));
    if (!attributes.empty()) text += fmt::format(" {{{}}}", fmt::join(attributes, ", "));
    return text;
  }

  const Graph& graph_;
  const PrintOptions& options_;
  std::map<const Value*, std::string> names_;
};

}  // namespace

std::string print(const Graph& graph, const PrintOptions& options) {
  return Printer(graph, options).run();
}

}  // namespace bertcl::ir
