// SPDX-License-Identifier: Apache-2.0
// Which inputs of which nodes get Q/DQ.
#include "quant/placement/placement.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <unordered_set>

#include "ir/input_role.hpp"
#include "quant/graph/matmuls.hpp"
#include "quant/placement/node_rules.hpp"
#include "quant/placement/operators.hpp"
#include "support/did_you_mean.hpp"
#include "support/fail.hpp"
#include "support/option_name.hpp"

namespace bertcl::quant {
namespace {

/// Tensors that hold data: not those that follow from the sizes of the inputs and from positions
/// alone, as angles do, of which no sample of calibration shows a range. Nodes stand after their
/// operands.
std::unordered_set<std::string> tensors_of_data(const GraphIndex& index) {
  std::unordered_set<std::string> data;
  const auto holds_data = [&](const std::string& tensor) {
    return data.contains(tensor) ||
           (index.is_input(tensor) && ir::role_of_input(tensor) != ir::InputRole::positions);
  };
  const auto has_graph = [](const onnx::AttributeProto& attribute) { return attribute.has_g(); };
  for (int n = 0; n < index.node_count(); ++n) {
    const onnx::NodeProto& node = index.node(n);
    if (is_op(node, "Shape") || is_op(node, "Size")) continue;
    // A branch may read any tensor.
    if (std::ranges::any_of(node.input(), holds_data) ||
        std::ranges::any_of(node.attribute(), has_graph))
      data.insert(node.output().begin(), node.output().end());
  }
  return data;
}

class Placer {
 public:
  Placer(const GraphIndex& index, Constants& constants, const Structure& structure,
         const PlacementOptions& options, const TypeOf& type_of, const UnexpandedNodes& unexpanded,
         std::vector<SkippedNode> nested)
      : index_(index),
        constants_(constants),
        structure_(structure),
        options_(options),
        type_of_(type_of),
        unexpanded_(unexpanded),
        data_(tensors_of_data(index)),
        matmuls_(index),
        quantizer_name_(index, structure),
        include_(options.include, "quantize"),
        exclude_(options.exclude, "exclude"),
        keywords_(options.disable_keywords, options.disable_layer_modules,
                  options.enable_layer_modules),
        placement_{{}, {}, std::move(nested)} {
    for (const auto* ops : {&options.op_types, &options.output_op_types})
      for (const auto& op : *ops)
        if (const auto known = quantizable_operators(); std::ranges::find(known, op) == known.end())
          bertcl::fail(
              "operator '{}' cannot be quantized{}; `bertcl quantize --help-all` lists "
              "those that can",
              op, did_you_mean(op, known));
  }

  Placement place() {
    for (int n = 0; n < index_.node_count(); ++n) place_node(n);
    place_outputs();
    drop_moved();
    include_.check_all_used(index_);
    exclude_.check_all_used(index_);
    keywords_.check_all_used();
    if (placement_.sites.empty() && placement_.outputs.empty()) fail();
    return std::move(placement_);
  }

 private:
  [[noreturn]] void fail() const {
    // The reason of a fused operator says most, that of an operator not asked for nothing.
    const auto weight = [&](const SkippedNode& node) {
      return unexpanded_.contains(node.node) ? 2 : options_.op_types.contains(node.op) ? 1 : 0;
    };
    const auto found = std::ranges::max_element(placement_.skipped, {}, weight);
    if (found == placement_.skipped.end() || weight(*found) == 0)
      bertcl::fail("nothing to quantize: the model has no {}{}",
                   fmt::join(options_.op_types, " or "), choices());
    const SkippedNode& first = *found;
    bertcl::fail("nothing to quantize; an example is node '{}' ({}): {}", first.node, first.op,
                 first.reason);
  }

  /// The operators of the model that can be quantized, and the option for them; "" if none can.
  std::string choices() const {
    std::set<std::string> found;
    for (int n = 0; n < index_.node_count(); ++n)
      if (find_operator(index_.node(n))) found.insert(index_.node(n).op_type());
    if (found.empty()) return "";
    return fmt::format(" ({}: choose from {})", option_name("op-types"), fmt::join(found, ", "));
  }

  /// onnxruntime fuses a quantized node with the quantization of its result, and refuses more than
  /// one scale there. Such nodes are Adds where others or their results are quantized, and the
  /// MatMul of a layer without biases.
  bool has_channels(int n, const std::string& tensor) const {
    return options_.add_channels && options_.adds != Adds::all &&
           !options_.places.contains(Place::sum) && !options_.output_op_types.contains("Add") &&
           structure_.is_residual(n) && !chosen(producer_through_copies(tensor));
  }

  /// The node that computes the value, past those that copy it, which are removed before fusion.
  int producer_through_copies(const std::string& tensor) const {
    int producer = index_.producer(tensor);
    while (producer >= 0 && copies(index_.node(producer)))
      producer = index_.producer(index_.node(producer).input(0));
    return producer;
  }

  static bool copies(const onnx::NodeProto& node) {
    return is_op(node, "Cast") || is_op(node, "Identity") || is_op(node, "Dropout");
  }

  /// The type of a tensor that is known not to be f32.
  std::optional<ir::DType> other_type(const std::string& tensor) const {
    const ir::Type* type = type_of_ ? type_of_(tensor) : nullptr;
    return type && type->dtype != ir::DType::f32 ? std::optional(type->dtype) : std::nullopt;
  }

  /// Why the options leave the node in float; empty if they do not.
  std::string left_by_options(int n) {
    const auto& node = index_.node(n);
    const std::string* excluded = exclude_.find(node);
    const std::string* included = include_.find(node);
    if (excluded) return fmt::format("excluded by '{}'", *excluded);
    if (!include_.empty() && !included) return "not among the nodes to include";
    if (!options_.op_types.contains(node.op_type())) {
      if (structure_.is_residual(n))
        return fmt::format("residual Adds stay float (use {} to quantize them)",
                           option_name("residual"));
      const std::string types = fmt::format("{}", fmt::join(options_.op_types, ","));
      if (!find_operator(node))
        return fmt::format("operator {} is not among those to quantize ({})", node.op_type(),
                           types);
      return fmt::format("operator {} stays float (use {} to quantize it)", node.op_type(),
                         option_name("op-types", types + "," + node.op_type()));
    }
    if (is_op(node, "Add") && options_.adds == Adds::encoder &&
        std::ranges::none_of(node.input(), [&](const std::string& tensor) {
          return matmul_before(index_, tensor) >= 0;
        }))
      return fmt::format("the sum of the embeddings stays float (use {} to quantize it)",
                         option_name("adds", "layer-norm"));
    if (is_matmul(node) && !options_.head && !matmuls_.is_followed(n))
      return fmt::format("the head stays float (use {} to quantize it)", option_name("head"));
    return "";
  }

  void place_node(int n) {
    const auto& node = index_.node(n);
    const Operator* op = find_operator(node);
    const bool wanted = op && options_.op_types.contains(std::string(op->name));
    if (!wanted && !is_matmul(node) && !structure_.is_residual(n)) return;
    if (op && is_op(node, "Add") && options_.adds != Adds::all && !structure_.is_residual(n))
      return;
    Site site{n, {}};
    std::string reason = left_by_options(n);
    if (reason.empty()) {
      for (int i = 0; i < std::min(op->data, node.input_size()) && !op->weight; ++i)
        if (const auto type = other_type(node.input(i)); type && !ir::is_float(*type))
          return;  // arithmetic on shapes and positions
      reason = collect_operands(n, *op, site.operands);
    }
    if (const auto why = unexpanded_.find(label_of(node)); why != unexpanded_.end())
      reason = fmt::format("{} was not expanded: {}", node.op_type(), why->second);
    if (!reason.empty()) placement_.skipped.push_back({label_of(node), node.op_type(), reason});
    if (!site.operands.empty()) placement_.sites.push_back(std::move(site));
  }

  /// The operands of a node. Returns why it, or one of them, stays in float.
  std::string collect_operands(int n, const Operator& op, std::vector<Operand>& operands) {
    const auto& node = index_.node(n);
    if (looks_up(node)) return leave(operands, "it selects rows of a table, by OneHot");
    std::string reason;
    bool varies = false;
    for (int i = 0; i < std::min(op.data, node.input_size()); ++i) {
      const std::string& tensor = node.input(i);
      const int producer = index_.producer(tensor);
      if (producer >= 0 && is_op(index_.node(producer), "DequantizeLinear"))
        return leave(operands, fmt::format("its operand '{}' is already quantized", tensor));
      if (const auto type = other_type(tensor))
        return leave(operands, fmt::format("its operand '{}' is {}; {}", tensor, ir::name_of(*type),
                                           "only f32 can be quantized: export the model in f32, or "
                                           "keep weights in half precision before a Cast to f32"));
      if (structure_.masks.contains(tensor))
        return leave(
            operands,
            fmt::format("its operand '{}' is an attention mask, which stays float", tensor));
      const bool constant = constants_.contains(tensor);
      const bool weight = constant && op.weight && i == 1;
      varies = varies || is_op(node, "Gather") ||
               (!constant && (index_.is_input(tensor) || data_.contains(tensor)));
      const std::string* disabled = keywords_.disabled_by(quantizer_name_(n, i, weight));
      if (goes_past_norm(n, tensor))
        reason = fmt::format(
            "the residual input of this Add stays float because a norm also reads it (use {} to "
            "quantize it)",
            option_name("adds", "all"));
      else if (disabled)
        reason = fmt::format("input '{}' is disabled by '{}'", tensor, *disabled);
      else
        operands.push_back({i, tensor,
                            weight                    ? Role::weight
                            : constant                ? Role::constant
                            : has_channels(n, tensor) ? Role::channels
                                                      : Role::activation});
    }
    if (!varies)
      return leave(operands, "its operands are constant or follow from sizes and positions");
    if (is_op(node, "Add") && feeds_root(n))
      return leave(operands, "the variance of a LayerNorm stays float");
    return reason;
  }

  /// A MatMul that the engine reads as Gather, as long as it is float.
  bool looks_up(const onnx::NodeProto& node) const {
    const int producer = is_op(node, "MatMul") ? index_.producer(node.input(0)) : -1;
    return producer >= 0 && is_op(index_.node(producer), "OneHot");
  }

  /// The residual input of a pre-norm block: it is never normalized itself, and each rounding of
  /// it would stay to the end of the encoder.
  bool goes_past_norm(int n, std::string tensor) const {
    if (options_.adds == Adds::all || !structure_.is_residual(n)) return false;
    while (!structure_.normalized.contains(tensor)) {
      const int producer = index_.producer(tensor);
      if (producer < 0) return false;
      if (!copies(index_.node(producer))) return false;
      tensor = index_.node(producer).input(0);
    }
    return true;
  }

  static std::string leave(std::vector<Operand>& operands, std::string reason) {
    operands.clear();
    return reason;
  }

  /// Variance + epsilon.
  bool feeds_root(int n) const {
    if (index_.node(n).output_size() == 0) return false;
    const auto& uses = index_.uses(index_.node(n).output(0));
    return std::ranges::any_of(uses, [&](Use use) { return is_op(index_.node(use.node), "Sqrt"); });
  }

  /// The places of the options, in the order of the nodes that give them.
  void place_outputs() {
    std::set<std::string> outputs = outputs_of_attention(), included;
    for (int n = 0; n < index_.node_count(); ++n) {
      const auto& node = index_.node(n);
      if (node.output_size() == 0) continue;
      const std::string& output = node.output(0);
      if (is_by_operator(n)) by_operator_.insert(output);
      if (wants(Place::gelu) && structure_.gelus.contains(output)) outputs.insert(output);
      if (wants(Place::sum) && structure_.is_residual(n)) outputs.insert(output);
      if (wants(Place::linear) && is_linear(n))
        if (const std::string& result = structure_.with_bias(output); !feeds_residual(result)) {
          outputs.insert(result);
          if (is_included(n)) included.insert(result);  // by the MatMul's name, not the bias's
        }
    }
    if (wants(Place::layer_norm))
      outputs.insert(structure_.layer_norms.begin(), structure_.layer_norms.end());
    outputs.insert(by_operator_.begin(), by_operator_.end());
    for (const auto& output : outputs) {
      if (constants_.contains(output) || other_type(output)) continue;
      const int n = index_.producer(output);
      if (!exclude_.find(index_.node(n)) && (is_included(n) || included.contains(output)))
        placement_.outputs.push_back(output);
    }
    std::ranges::stable_sort(placement_.outputs, [&](const auto& a, const auto& b) {
      return index_.producer(a) < index_.producer(b);
    });
  }

  bool is_included(int n) { return include_.empty() || include_.find(index_.node(n)); }

  bool wants(Place place) const { return options_.places.contains(place); }

  std::set<std::string> outputs_of_attention() const {
    std::set<std::string> outputs;
    for (const auto& parts : structure_.attentions) {
      const auto add = [&](Place place, int n) {
        if (wants(place)) outputs.insert(index_.node(n).output(0));
      };
      add(Place::scores, parts.scores);
      add(Place::probabilities, parts.probabilities);
      add(Place::context, parts.context);
    }
    return outputs;
  }

  /// A site whose operator is among those with quantized outputs.
  bool is_by_operator(int n) const {
    const auto& node = index_.node(n);
    return node.domain().empty() && options_.output_op_types.contains(node.op_type()) && chosen(n);
  }

  /// A MatMul with a weight that is not the head: another MatMul follows it.
  bool is_linear(int n) {
    const auto& node = index_.node(n);
    return is_op(node, "MatMul") && node.input_size() == 2 && constants_.contains(node.input(1)) &&
           matmuls_.is_followed(n);
  }

  bool feeds_residual(const std::string& tensor) const {
    const auto& uses = index_.uses(tensor);
    return std::ranges::any_of(uses, [&](Use u) { return structure_.is_residual(u.node); });
  }

  /// An operand that only moves the elements of a quantized place holds integers already, and so
  /// does q or k that is scaled, as attention takes the factor. After an
  /// output by operator it is quantized again, with its own range, as onnxruntime does.
  void drop_moved() {
    std::set<std::string> outputs(placement_.outputs.begin(), placement_.outputs.end());
    std::erase_if(outputs, [&](const std::string& o) { return by_operator_.contains(o); });
    const auto is_moved = [&](const Operand& operand) {
      std::string tensor = operand.tensor;
      if (const auto it = structure_.scaled.find(tensor); it != structure_.scaled.end())
        tensor = it->second;
      for (int steps = 0; steps < 8 && !outputs.contains(tensor); ++steps) {
        const int producer = index_.producer(tensor);
        if (producer < 0 || !moves_elements(index_.node(producer))) return false;
        tensor = index_.node(producer).input(0);
      }
      return tensor != operand.tensor && outputs.contains(tensor);
    };
    for (Site& site : placement_.sites) std::erase_if(site.operands, is_moved);
  }

  /// True for the nodes that were made sites.
  bool chosen(int n) const {
    const auto it = std::ranges::lower_bound(placement_.sites, n, {}, &Site::node);
    return it != placement_.sites.end() && it->node == n;
  }

  const GraphIndex& index_;
  Constants& constants_;
  const Structure& structure_;
  const PlacementOptions& options_;
  const TypeOf& type_of_;
  const UnexpandedNodes& unexpanded_;
  const std::unordered_set<std::string> data_;
  MatMuls matmuls_;
  QuantizerNames quantizer_name_;
  NodePatterns include_, exclude_;
  Keywords keywords_;
  std::set<std::string> by_operator_;  // outputs of options_.output_op_types
  Placement placement_;
};

}  // namespace

const char* name_of(Role role) {
  static constexpr std::array names = {"activation", "activation per channel", "weight",
                                       "constant"};
  static_assert(names.size() == static_cast<std::size_t>(Role::constant) + 1);
  return names[static_cast<std::size_t>(role)];
}

Placement place(const GraphIndex& index, Constants& constants, const Structure& structure,
                const PlacementOptions& options, const TypeOf& type_of,
                const UnexpandedNodes& unexpanded, std::vector<SkippedNode> nested) {
  return Placer(index, constants, structure, options, type_of, unexpanded, std::move(nested))
      .place();
}

}  // namespace bertcl::quant
