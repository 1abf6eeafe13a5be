// SPDX-License-Identifier: Apache-2.0
// The quantizer's report as JSON.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "quant/quantizer.hpp"

namespace bertcl::quant {

ScaleTable scale_table_of(const Report& report) {
  ScaleTable table{report.given, report.method, report.samples, report.tokens, report.data_sha256};
  for (const TensorReport& tensor : report.tensors)
    if (tensor.role == Role::activation) table.ranges[tensor.tensor] = tensor.range;
  return table;
}

namespace {

nlohmann::json nodes_json(const std::vector<SkippedNode>& nodes) {
  auto json = nlohmann::json::array();
  for (const SkippedNode& s : nodes)
    json.push_back({{"node", s.node}, {"op", s.op}, {"reason", s.reason}});
  return json;
}

}  // namespace

nlohmann::json to_json(const Report& r) {
  auto tensors = nlohmann::json::array();
  for (const TensorReport& t : r.tensors)
    tensors.push_back({{"tensor", t.tensor},
                       {"role", name_of(t.role)},
                       {"low", t.range.low},
                       {"high", t.range.high},
                       {"scale", t.scale},
                       {"smallest_scale", t.smallest_scale},
                       {"zero_point", t.zero_point},
                       {"channels", t.channels},
                       {"zero_channels", t.zero_channels},
                       {"nodes", t.nodes}});
  auto not_applied = nlohmann::json::object();
  for (const auto& [measure, nodes] : r.not_applied) not_applied[measure] = nodes_json(nodes);
  auto smoothings = nlohmann::json::array();
  for (const Smoothing& m : r.smoothed.tensors) {
    const auto [min, max] = std::minmax_element(m.factors.begin(), m.factors.end());
    smoothings.push_back({{"tensor", m.tensor},
                          {"choice", m.choice},
                          {"least_factor", *min},
                          {"largest_factor", *max},
                          {"error_before", m.error_before},
                          {"error_after", m.error_after}});
  }
  return {{"method", r.method},
          {"device", r.device},
          {"activations",
           {{"type", ir::name_of(r.activations.type)}, {"symmetric", r.activations.symmetric}}},
          {"weights",
           {{"type", ir::name_of(r.weights.scheme.type)},
            {"symmetric", r.weights.scheme.symmetric},
            {"per_channel", r.weights.per_channel},
            {"scale", r.weights.scale == WeightScale::mse ? "mse" : "max"},
            {"bits", r.weights.scheme.used_bits()}}},
          {"expanded_nodes", r.expanded_nodes},
          {"unnormalized_softmaxes", r.unnormalized_softmaxes},
          {"samples", r.samples},
          {"tokens", r.tokens},
          {"data_sha256", r.data_sha256},
          {"quantized_nodes", r.quantized_nodes},
          {"quantized_outputs", r.quantized_outputs},
          {"opset_before", r.opset_before},
          {"opset_after", r.opset_after},
          {"source_bytes", r.source_bytes},
          {"float_bytes", r.float_bytes},
          {"written_bytes", r.written_bytes},
          {"calibrate_seconds", r.calibrate_seconds},
          {"total_seconds", r.total_seconds},
          {"tensors", std::move(tensors)},
          {"smoothings", std::move(smoothings)},
          {"not_smoothed", r.smoothed.why_not},
          {"gptq_weights", r.gptq_weights},
          {"corrected_biases", r.corrected_biases},
          {"coarse_ranges", r.coarse_ranges},
          {"without_column_scales", r.without_column_scales},
          {"not_applied", std::move(not_applied)},
          {"left_in_float", nodes_json(r.skipped)}};
}

}  // namespace bertcl::quant
