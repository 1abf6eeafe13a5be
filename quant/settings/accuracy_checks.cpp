// SPDX-License-Identifier: Apache-2.0
// What accuracy measures need, and which of them the source of the ranges excludes.
#include "quant/settings/accuracy_checks.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "quant/placement/operators.hpp"
#include "support/fail.hpp"
#include "support/option_name.hpp"

namespace bertcl::quant {

namespace {

/// The first of the options that was given, and not as --no-..., by the name of its value; "" for
/// none.
std::string first_asked(const std::vector<const CLI::Option*>& options) {
  for (const CLI::Option* option : options) {
    if (option->count() == 0 || option->results().back() == "false") continue;
    const std::vector<std::string>& names = option->get_lnames();
    const bool undone = option->get_items_expected_max() == 0 && option->results().back() == "-1";
    return undone ? names.back() : names.front();  // as add_switch() has them
  }
  return "";
}

}  // namespace

ExplicitOptions explicit_options(const CLI::App& command, const MarkedOptions& marked,
                                 const Options& options) {
  return {
      .smooth = options.accuracy.smooth && command.count("--smooth") > 0,
      .gptq = options.accuracy.gptq && command.count("--weight-rounding") > 0,
      .bias_correction = options.accuracy.bias_correction && command.count("--bias-correction") > 0,
      .calibration = first_asked(marked.of_samples),
      .activations = first_asked(marked.of_activations),
      .adds = first_asked(marked.of_adds),
      .axes = command.count("--axis") > 0,
      .enabled_modules = command.count("--enable-layer-module") > 0,
      .recalibrated_weights = command.count("--recalibrate-weights") > 0};
}

void check_accuracy_options(const ExplicitOptions& asked, const Options& options,
                            const JobOptions& job) {
  const auto refuse = [](std::string_view option, std::string_view reason) {
    fail("{} has no effect here: {}", option, reason);
  };
  if (asked.smooth)
    if (const std::string reason = why_not_smoothed(options); !reason.empty())
      refuse(option_name("smooth"), reason);
  if (asked.smooth && (!job.read_table.empty() || !job.write_table.empty()))
    refuse(option_name("smooth"),
           "smoothing changes tensors, and a table holds the ranges of the original model");
  if (asked.gptq && options.weights.as_float)
    refuse(option_name("weight-rounding", "gptq"),
           "weights written as float are rounded by QuantizeLinear at run time");
  const PlacementOptions& placement = options.placement;
  const WeightOptions& weights = options.weights;
  const std::set<std::string>& ops = placement.op_types;
  if (asked.gptq && weights.scales_rows())
    refuse(option_name("weight-rounding", "gptq"), "weights have scales along their rows");
  if (!asked.adds.empty() && !ops.contains("Add") && !job.dynamic)
    refuse(option_name(asked.adds), "no Add is quantized; see " + option_name("residual"));
  if (asked.adds == "add-channels" &&
      (placement.adds == Adds::all || placement.places.contains(Place::sum) ||
       placement.output_op_types.contains("Add")))
    refuse(option_name(asked.adds),
           fmt::format("Adds get per-tensor scales if their outputs are quantized, or with {}",
                       option_name("adds", "all")));
  if (asked.enabled_modules && options.placement.disable_layer_modules.empty())
    refuse(option_name("enable-layer-module"),
           "it re-enables disabled modules, and none are disabled; see " +
               option_name("disable-layer-module"));
  if (asked.axes)
    for (const auto& [op, axis] : weights.axes)
      if (!ops.contains(op))
        refuse(option_name("axis", fmt::format("{}={}", op, axis)),
               fmt::format("no {} is quantized; see {}", op, option_name("op-types")));
  const std::vector<std::string> known = quantizable_operators();
  for (const std::string& op : placement.output_op_types)
    if (!ops.contains(op) && std::ranges::find(known, op) != known.end() && !job.dynamic)
      refuse(option_name("outputs", op),
             fmt::format("no {} is quantized; see {}", op, option_name("op-types")));
  if (asked.axes && !weights.per_channel)
    refuse(option_name("axis"),
           "it sets the channel axis of weights, which are quantized per tensor; see " +
               option_name("per-channel"));
  if (job.dynamic && options.ranges.fuse_qkv && weights.per_channel)
    refuse(option_name("fuse-qkv"),
           "only activation ranges and per-tensor weight ranges are fused; see " +
               option_name("per-tensor"));
  if (job.dynamic && !asked.activations.empty())
    refuse(option_name(asked.activations),
           option_name("dynamic") + " quantizes only MatMuls, and activations at run time");
  if (asked.recalibrated_weights && job.read_table.empty())
    refuse(option_name("recalibrate-weights"),
           "only a table has ranges of weights; see " + option_name("read-table"));
  const std::string reason = job.dynamic ? option_name("dynamic") + " takes no samples"
                             : !job.read_table.empty() ? "a table of ranges has no samples"
                                                       : "";
  if (reason.empty()) return;
  if (asked.smooth) refuse(option_name("smooth"), reason);
  if (asked.gptq) refuse(option_name("weight-rounding", "gptq"), reason);
  if (asked.bias_correction) refuse(option_name("bias-correction"), reason);
  if (!asked.calibration.empty()) refuse(option_name(asked.calibration), reason);
}

}  // namespace bertcl::quant
