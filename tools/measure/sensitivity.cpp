// SPDX-License-Identifier: Apache-2.0
// The cost of quantized ops, as table and JSON.
#include "tools/measure/sensitivity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "tools/terminal/output.hpp"

namespace bertcl::tools {
namespace {

std::string percent(double part) { return fmt::format("{:.3f} %", 100.0 * part); }

/// What an op's error is of the sum of all, in squares, which add up.
double share(const quant::OpGroup& op, const quant::Sensitivity& sensitivity) {
  if (std::isinf(op.errors.alone)) return 1.0;
  double sum = 0.0;
  for (const quant::OpGroup& other : sensitivity.ops)
    sum += other.errors.alone * other.errors.alone;
  return sum > 0.0 ? op.errors.alone * op.errors.alone / sum : 0.0;
}

double largest_unnormalized(const quant::Sensitivity& sensitivity) {
  double largest = 0.0;
  for (const auto& [op, alone] : sensitivity.unnormalized->alone)
    largest = std::max(largest, alone);
  return largest;
}

std::string group_table(const char* head, const std::vector<quant::OpGroup>& groups) {
  Table table({head, ">ops", ">alone", ">without"});
  for (const quant::OpGroup& group : groups)
    table.add({group.name, std::to_string(group.ops.size()), percent(group.errors.alone),
               percent(group.errors.without)});
  return table.str();
}

nlohmann::ordered_json groups_json(const std::vector<quant::OpGroup>& groups) {
  auto list = nlohmann::ordered_json::array();
  for (const quant::OpGroup& group : groups)
    list.push_back({{"name", group.name},
                    {"ops", group.ops.size()},
                    {"alone", group.errors.alone},
                    {"without", group.errors.without}});
  return list;
}

}  // namespace

std::string sensitivity_text(const quant::Sensitivity& sensitivity,
                             const std::vector<quant::QuantizedOp>& ops) {
  Table table({"op", "kind", ">layer", ">alone", ">share", ">without"});
  for (const quant::OpGroup& group : sensitivity.ops) {
    const quant::QuantizedOp& op = ops[group.ops.front()];
    table.add({op.node, op.kind_name(), op.layer ? std::to_string(*op.layer) : "",
               percent(group.errors.alone),
               fmt::format("{:.1f} %", 100.0 * share(group, sensitivity)),
               percent(group.errors.without)});
  }
  std::string text = fmt::format(
      "\nRelative error of the outputs over {} ({}): {} with all ops quantized.\nalone: only this "
      "op, kind or layer quantized; without: all but this quantized.\n\n{}\n",
      counted(sensitivity.samples, "samples"), counted(sensitivity.tokens, "tokens"),
      percent(sensitivity.all), group_table("kind", sensitivity.kinds));
  if (sensitivity.unnormalized)
    text += fmt::format(
        "With --softmax unnormalized: {} with all ops quantized, at most {} alone\nfor a MatMul "
        "after a Softmax.\n\n",
        percent(sensitivity.unnormalized->all), percent(largest_unnormalized(sensitivity)));
  if (!sensitivity.layers.empty()) text += group_table("layer", sensitivity.layers) + "\n";
  return text + table.str();
}

nlohmann::ordered_json sensitivity_json(const quant::Sensitivity& sensitivity,
                                        const std::vector<quant::QuantizedOp>& ops) {
  auto list = nlohmann::ordered_json::array();
  for (const quant::OpGroup& group : sensitivity.ops) {
    const quant::QuantizedOp& op = ops[group.ops.front()];
    nlohmann::ordered_json layer;
    if (op.layer) layer = *op.layer;
    list.push_back({{"node", op.node},
                    {"op", op.op},
                    {"kind", op.kind_name()},
                    {"layer", layer},
                    {"alone", group.errors.alone},
                    {"share", share(group, sensitivity)},
                    {"without", group.errors.without}});
  }
  nlohmann::ordered_json json = {{"samples", sensitivity.samples},
                                 {"tokens", sensitivity.tokens},
                                 {"all", sensitivity.all},
                                 {"ops", std::move(list)},
                                 {"kinds", groups_json(sensitivity.kinds)},
                                 {"layers", groups_json(sensitivity.layers)}};
  if (sensitivity.unnormalized) {
    json["all_unnormalized"] = sensitivity.unnormalized->all;
    auto& unnormalized = json["alone_unnormalized"] = nlohmann::ordered_json::object();
    for (const auto& [op, alone] : sensitivity.unnormalized->alone)
      unnormalized[ops[op].node] = alone;
  }
  return json;
}

}  // namespace bertcl::tools
