// SPDX-License-Identifier: Apache-2.0
// Nodes and operands selected by the user: patterns for nodes, keywords for quantizers.
#pragma once
#include <map>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "quant/graph/constants.hpp"
#include "quant/graph/graph_index.hpp"
#include "quant/graph/structure.hpp"

namespace bertcl::quant {

/// Patterns on node names, `*` and `?` as in file names.
class NodePatterns {
 public:
  /// `purpose` is the verb in the message about a pattern that matches nothing: "exclude".
  NodePatterns(const std::vector<std::string>& patterns, std::string purpose)
      : patterns_(patterns), purpose_(std::move(purpose)), used_(patterns.size(), false) {}
  bool empty() const { return patterns_.empty(); }
  /// The pattern that matches the node, or null.
  const std::string* find(const onnx::NodeProto& node);
  /// Throws Error, with the nearest names, if one has never matched. `graph` has the nodes that
  /// were not checked. Does nothing if none was.
  void check_all_used(const GraphIndex& graph) const;

 private:
  const std::vector<std::string>& patterns_;
  std::string purpose_;
  std::vector<bool> used_;
  std::vector<std::string> asked_;  // names, each once
};

/// The distance of `pattern` from matching a part of `name`: characters to insert, drop or replace.
std::size_t distance_to_part(std::string_view pattern, std::string_view name);

/// The quantizers' names as those of Hugging Face's QDQBERT: the module, and after a dot
/// `_input_quantizer`, `_weight_quantizer`, `matmul_{q,k,a,v}_input_quantizer`, or
/// `add_{local,residual}_input_quantizer`. A node without a module is known by its label.
class QuantizerNames {
 public:
  QuantizerNames(const GraphIndex& index, const Structure& structure);
  std::string operator()(int node, int input, bool weight) const;

 private:
  const GraphIndex& index_;
  const Structure& structure_;
  std::map<int, std::string> matmuls_;  // of attention: the letters of their two inputs
};

/// The quantizers that --disable-keyword, --disable-layer-module and --enable-layer-module name, as
/// in Hugging Face's QDQBERT example.
class Keywords {
 public:
  /// Regular expressions on whole names, and on the part after "layer.N.". Throws Error on an
  /// invalid one.
  Keywords(const std::vector<std::string>& disable, const std::vector<std::string>& disable_module,
           const std::vector<std::string>& enable_module);
  /// The expression that turns this quantizer off, or null.
  const std::string* disabled_by(const std::string& quantizer);
  /// Throws Error, with one of the checked names, if an expression has never matched.
  void check_all_used() const;

 private:
  struct Expression {
    std::string text;
    std::regex regex;
    bool enables = false;
    bool used = false;
  };
  std::vector<Expression> expressions_;
  std::string example_;
};

}  // namespace bertcl::quant
