// SPDX-License-Identifier: Apache-2.0
// Refusals of options and models, before any work.
#include "quant/checks.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "bertcl/error.hpp"
#include "support/fail.hpp"
#include "support/option_name.hpp"

namespace bertcl::quant {
namespace {

/// True for operators that make integers of activations, compute on such, or hold weights in a few
/// bits.
bool is_quantized_operator(const std::string& op) {
  constexpr const char* kPrefixes[] = {"QuantizeLinear", "DynamicQuantize", "QLinear",
                                       "QOrdered",       "QAttention",      "QGemm",
                                       "QEmbed",         "MatMulInteger",   "ConvInteger",
                                       "MatMulNBits",    "MatMulBnb4",      "GatherBlockQuantized"};
  return std::any_of(std::begin(kPrefixes), std::end(kPrefixes),
                     [&](const char* prefix) { return op.starts_with(prefix); });
}

/// True if both have the type and the symmetry that one value of an option gives activations.
bool same_kind(const Scheme& a, const Scheme& b) {
  return a.type == b.type && a.symmetric == b.symmetric;
}

/// What makes activations as usual, where they are not.
std::string usual_option(const Scheme& activations) {
  const Scheme usual;
  if (!same_kind(activations, usual)) return option_name("activations", "u8");
  if (activations.steps != usual.steps) return option_name("narrow-range");
  if (activations.min_range != usual.min_range) return option_name("minimum-range", "0");
  return "the default scheme";
}

}  // namespace

void check_types(const Options& options) {
  if (options.activations.type == ir::DType::i8 && options.weights.scheme.type == ir::DType::u8)
    throw Error(
        "i8 activations with u8 weights are not supported (nor by onnxruntime's MatMulInteger); "
        "use " +
        option_name("weights", "i8") + " or " + option_name("activations", "u8"));
  const WeightOptions& weights = options.weights;
  if (weights.scheme.steps == Steps::reduced && weights.scheme.bits != 8)
    fail("{} quantizes weights to 7 bits and cannot be combined with {}",
         option_name("reduce-range"),
         option_name("weight-bits", std::to_string(weights.scheme.bits)));
  if (weights.scale == WeightScale::mse && weights.as_float &&
      saturation_of(weights.scheme) != integers_of(weights.scheme.type))
    throw Error(
        "QuantizeLinear clips weights to 8 bits; for fewer bits, write them as integers, not as "
        "float after Q -> DQ");
}

void check_float(const onnx::GraphProto& graph, const std::filesystem::path& path) {
  std::map<std::string, int> counts;
  bool quantized = false;
  for (const auto& node : graph.node()) {
    const bool one = is_quantized_operator(node.op_type());
    quantized = quantized || one;
    if (one || node.op_type() == "DequantizeLinear") ++counts[node.op_type()];
  }
  if (!quantized) return;
  std::vector<std::string> found;
  for (const auto& [op, count] : counts) found.push_back(fmt::format("{} {}", count, op));
  fail("{}: already quantized, it has {} nodes; give the float model it was made from",
       path.string(), fmt::join(found, " and "));
}

void check_dynamic(const Options& options, ActivationScales scales) {
  const PlacementOptions& placement = options.placement;
  for (const std::string& op : placement.op_types)
    if (op != "MatMul" && op != "Gather")
      fail(
          "operator {} cannot be quantized dynamically (only MatMul and Gather can); "
          "calibrate instead",
          op);
  if (!placement.output_op_types.empty() || !placement.places.empty())
    throw Error(
        "outputs cannot be quantized dynamically, only inputs of MatMuls; calibrate instead");
  if (options.softmax == Softmax::unnormalized)
    throw Error("MatMuls after an unnormalized Softmax cannot be quantized dynamically; use " +
                option_name("softmax", "plain"));
  const bool per_token = scales == ActivationScales::per_token;
  if (!per_token && options.activations != Scheme{})
    fail(
        "DynamicQuantizeLinear supports only asymmetric u8 activations, and computes their scales "
        "itself; use {}, or calibrate",
        usual_option(options.activations));
  const Scheme symmetric_i8{.type = ir::DType::i8, .symmetric = true};
  if (per_token && !same_kind(options.activations, Scheme{}) &&
      !same_kind(options.activations, symmetric_i8))
    fail("{} quantizes activations to symmetric i8; use {}", option_name("per-token"),
         option_name("activations", "i8"));
  if (per_token && options.weights.scheme.type != ir::DType::i8)
    fail("{} needs i8 weights; use {}", option_name("per-token"), option_name("weights", "i8"));
  if (options.weights.as_float || options.weights.transposed)
    throw Error(
        "dynamically quantized MatMuls read integer weights in MatMul's layout, not float or "
        "transposed ones");
}

}  // namespace bertcl::quant
