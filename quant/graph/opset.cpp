// SPDX-License-Identifier: Apache-2.0
// Upgrades a model to the opset that per-axis Q/DQ needs.
#include "quant/graph/opset.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>
#include <string_view>
#include <vector>

#include "quant/graph/graph_edit.hpp"
#include "support/fail.hpp"

namespace bertcl::quant {
namespace {

constexpr std::int64_t kOldest = 9;
constexpr std::int64_t kIrVersion = 7;     // of ONNX 1.8, which brought opset 13
constexpr std::int64_t kNewIrVersion = 8;  // of ONNX 1.10, which brought opset 15

/// Operators that changed in ways this file has no rule for, and the opset that changed them.
struct Unsupported {
  std::string_view op;
  std::int64_t since;
};
constexpr Unsupported kUnsupported[] = {{"Upsample", 10}, {"TopK", 10},      {"Resize", 11},
                                        {"Scatter", 11},  {"MaxUnpool", 11}, {"DynamicSlice", 10}};

class Raiser {
 public:
  /// Nodes of a local function see none of the model's initializers: `in_function`.
  Raiser(Model& model, std::int64_t from, const TypeOf& type_of, bool in_function = false)
      : model_(model), from_(from), type_of_(type_of), in_function_(in_function) {}

  void raise(onnx::NodeProto& node, std::int64_t to) {
    if (!onnx_io::is_onnx_domain(node.domain())) return;
    const auto refuse = [&](std::int64_t target, std::int64_t first) {
      fail(node, fmt::format("cannot be upgraded from opset {} to {}; convert the model to opset "
                             "{} first (onnx.version_converter)",
                             from_, target, first));
    };
    if (node.op_type() == "BatchNormalization" && from_ < 15 && to >= 14) refuse(to, 15);
    if (from_ >= kQuantizedOpset) return;
    const std::string& op = node.op_type();
    for (const auto& u : kUnsupported)
      if (op == u.op && from_ < u.since) refuse(kQuantizedOpset, kQuantizedOpset);
    if (op == "Squeeze" || op == "Unsqueeze" || op == "ReduceSum") ints_to_input(node, "axes", 1);
    if (op == "Split") ints_to_input(node, "split", 1);
    if (op == "Softmax" || op == "LogSoftmax" || op == "Hardmax") softmax(node);
    if (from_ < 12 && op == "Dropout") remove(node, "ratio");  // at inference it does nothing
    if (from_ < 11 && op == "Clip") {
      const float max = std::numeric_limits<float>::max();
      float_to_input(node, "min", 1, -max);
      float_to_input(node, "max", 2, max);
    }
    if (from_ < 11 && op == "Pad") {
      ints_to_input(node, "pads", 1);
      float_to_input(node, "value", 2, 0.0f);
    }
    if (from_ < 10 && op == "Slice") {
      ints_to_input(node, "starts", 1);
      ints_to_input(node, "ends", 2);
      ints_to_input(node, "axes", 3);
    }
  }

 private:
  [[noreturn]] void fail(const onnx::NodeProto& node, const std::string& what) const {
    bertcl::fail("{}: node '{}' ({}) {}", model_.path().string(), label_of(node), node.op_type(),
                 what);
  }

  static void remove(onnx::NodeProto& node, std::string_view attribute) {
    erase_if(*node.mutable_attribute(), [&](const auto& a) { return a.name() == attribute; });
  }

  void set_input(onnx::NodeProto& node, int place, const std::string& suffix,
                 const ir::Tensor& values) {
    if (in_function_)
      fail(node, fmt::format("of a local function cannot be upgraded from opset {} to {}; inline "
                             "functions first (onnx.inliner)",
                             from_, kQuantizedOpset));
    if (node.input_size() > place)
      fail(node, fmt::format("has more inputs than opset {} allows", from_));
    while (node.input_size() < place) node.add_input("");
    node.add_input(model_.add(model_.fresh_name(label_of(node) + "_" + suffix), values));
  }

  void ints_to_input(onnx::NodeProto& node, const std::string& name, int place) {
    const auto* a = find_attribute(node, name);
    if (!a) return;  // its default is the absent input's
    const std::vector<std::int64_t> values(a->ints().begin(), a->ints().end());
    remove(node, name);
    set_input(node, place, name, ir::Tensor::of<std::int64_t>({std::ssize(values)}, values));
  }

  void float_to_input(onnx::NodeProto& node, const std::string& name, int place,
                      float default_value) {
    const float value = float_attribute(node, name, default_value);
    remove(node, name);
    set_input(node, place, name, ir::Tensor::scalar<float>(value));
  }

  /// Before opset 13 Softmax made rows of all axes from `axis` on (1 by default).
  void softmax(onnx::NodeProto& node) {
    const std::int64_t axis = int_attribute(node, "axis", 1);
    const ir::Type* type = axis == -1 ? nullptr : type_of_(node.input(0));
    if (axis != -1 && !type)
      fail(node,
           fmt::format("has axis {} and an input of unknown rank: its meaning changes at opset "
                       "{}; convert the model first (onnx.version_converter)",
                       axis, kQuantizedOpset));
    if (type && axis + 1 != std::ssize(type->shape))
      fail(node, fmt::format("works on axes {} to {} as one, which opset {} cannot express", axis,
                             type->shape.size() - 1, kQuantizedOpset));
    remove(node, "axis");
    set_attribute(node, "axis", -1);
  }

  Model& model_;
  std::int64_t from_;
  const TypeOf& type_of_;
  bool in_function_;
};

void raise_functions(Model& model, std::int64_t to) {
  const TypeOf unknown = [](const std::string&) { return nullptr; };
  for (auto& function : *model.proto().mutable_functions())
    for (auto& opset : *function.mutable_opset_import()) {
      if (!onnx_io::is_onnx_domain(opset.domain()) || opset.version() >= to) continue;
      Raiser raiser(model, opset.version(), unknown, true);
      const auto raise_all = [&](onnx::GraphProto& branch) {
        for_each_graph(branch, [&](onnx::GraphProto& graph) {
          for (auto& node : *graph.mutable_node()) raiser.raise(node, to);
        });
      };
      for (auto& node : *function.mutable_node()) {
        raiser.raise(node, to);
        for_each_branch(node, raise_all);
      }
      opset.set_version(to);
    }
}

void raise_nodes(Model& model, const TypeOf& type_of, std::int64_t from, std::int64_t to) {
  Raiser raiser(model, from, type_of);
  for_each_graph(*model.proto().mutable_graph(), [&](onnx::GraphProto& graph) {
    for (auto& node : *graph.mutable_node()) raiser.raise(node, to);
  });
  raise_functions(model, to);
  for (auto& opset : *model.proto().mutable_opset_import())
    if (onnx_io::is_onnx_domain(opset.domain())) opset.set_version(to);
}

}  // namespace

void raise_opset(Model& model, const TypeOf& type_of, std::int64_t wanted) {
  const std::int64_t from = opset_of(model.proto());
  if (wanted > std::max(from, kNewestRaised))
    fail("{}: cannot upgrade opset {} to {} (supported: up to {})", model.path().string(), from,
         wanted, kNewestRaised);
  if (from < kOldest)
    fail("{}: opset {} is not supported (minimum: {})", model.path().string(), from, kOldest);
  const std::int64_t to = std::max({from, kQuantizedOpset, wanted});
  // Up to IR version 3 initializers had to be listed as inputs; since then that means defaults.
  const bool lists_initializers = model.proto().ir_version() < 4;
  if (from == to && !lists_initializers) return;
  if (from < to) raise_nodes(model, type_of, from, to);
  if (lists_initializers) {
    std::set<std::string> initializers;
    for (const auto& t : model.graph().initializer()) initializers.insert(t.name());
    erase_if(*model.proto().mutable_graph()->mutable_input(),
             [&](const auto& v) { return initializers.contains(v.name()); });
  }
  model.proto().set_ir_version(
      std::max<std::int64_t>(model.proto().ir_version(), to >= 15 ? kNewIrVersion : kIrVersion));
}

}  // namespace bertcl::quant
