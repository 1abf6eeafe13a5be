// SPDX-License-Identifier: Apache-2.0
// A calibrated model, from which files with any part left in float are made.
#include "quant/calibrated_model.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <utility>

#include "quant/calibration/calibrate.hpp"
#include "quant/calibration/channel_pass.hpp"
#include "quant/calibration/nonfinite_tensor.hpp"
#include "quant/graph/workspace.hpp"
#include "quant/quantization.hpp"
#include "support/fail.hpp"
#include "support/option_name.hpp"
#include "support/stopwatch.hpp"

namespace bertcl::quant {
namespace {

/// The samples again and again: each stage passes over them once.
class Samples {
 public:
  explicit Samples(const SampleSource& source) {
    while (auto sample = source()) all_.push_back(std::move(*sample));
  }
  std::span<const Sample> all() const { return all_; }
  SampleSource source() const {
    return [this, next = std::size_t{0}]() mutable -> std::optional<Sample> {
      if (next == all_.size()) return std::nullopt;
      return all_[next++];
    };
  }

 private:
  std::vector<Sample> all_;
};

PassProgress pass(const Progress& progress, std::string_view name) {
  return [&progress, name](std::int64_t samples) {
    if (progress) progress(name, samples);
  };
}

/// Names the nodes to exclude where a tensor of the step is not finite.
template <class Step>
auto naming_nodes(const Quantization& quantization, const Step& step) {
  try {
    return step();
  } catch (const NonfiniteTensor& error) {
    fail("{}; exclude '{}' ({}) or correct the model", error.what(),
         fmt::join(quantization.nodes_quantizing(error.tensor()), "', '"), option_name("exclude"));
  }
}

ChannelRanges find_channel_ranges(const Quantization& quantization, const Workspace& workspace,
                                  const Samples& samples, const Progress& progress) {
  const auto tensors = quantization.channel_tensors();
  if (tensors.empty()) return {};
  return channel_statistics(workspace, tensors, samples.all(),
                            pass(progress, "calibrate channels"));
}

/// The ranges of `quantization`'s tensors; fills its report.
Ranges find_ranges(Quantization& quantization, const Options& options, const Workspace& workspace,
                   const SampleSource& samples, const Progress& progress) {
  const Stopwatch clock;
  const auto tensors = quantization.activations();
  const PassProgress told = pass(progress, "calibrate");
  auto session = workspace.session(tensors, [&] { told(0); });
  MethodOptions method_options = options.method_options;
  method_options.scheme = options.activations;
  Calibration calibration =
      calibrate(session, tensors, method(options.method), method_options, samples, options.batch,
                [&](std::int64_t done, std::int64_t) { told(done); });
  Report& report = quantization.report();
  report.device = session.context().info().name;
  report.calibrate_seconds = clock.seconds();
  report.samples = calibration.samples;
  report.tokens = calibration.tokens;
  report.data_sha256 = calibration.data_sha256;
  report.coarse_ranges = std::move(calibration.coarse);
  return std::move(calibration.ranges);
}

}  // namespace

std::string why_not_smoothed(const Options& options) {
  const PlacementOptions& placement = options.placement;
  if (!options.accuracy.smooth) return "";
  if (options.ranges.clip_gelu) return "GELU is clipped";
  if (!options.overrides.empty()) return "overrides apply to the tensors before smoothing";
  if (!placement.output_op_types.empty() || !placement.places.empty())
    return "outputs of operators are quantized";
  if (options.all_readers && !placement.add_channels)
    return "all readers of a tensor share its one scale";
  return "";
}

struct CalibratedModel::State {
  State(const Options& given, const SampleSource& source, const Progress& progress)
      : options(given),
        workspace(given.model,
                  given.context ? given.context : opencl::ContextFuture::open(given.device)) {
    check_settings(method(options.method), options.method_options);  // before the work
    const AccuracyOptions& accuracy = options.accuracy;
    if (accuracy.smooth || accuracy.gptq || accuracy.bias_correction ||
        options.placement.add_channels) {
      by_passes(Samples(source), progress);
    } else {
      quantization.emplace(options, workspace, ActivationScales::calibrated, clock);
      quantization->encode(naming_nodes(*quantization, [&] {
        return find_ranges(*quantization, options, workspace, source, progress);
      }));
    }
    ops = quantization->ops();
  }

  /// What needs the samples more than once.
  void by_passes(const Samples& samples, const Progress& progress) {
    std::vector<Smoothing> smoothings;
    std::map<std::string, std::vector<SkippedNode>> not_applied;
    const std::string not_smoothed = why_not_smoothed(options);
    if (options.accuracy.smooth && not_smoothed.empty()) {
      Quantization original(options, workspace);
      smoothings = naming_nodes(
          original, [&] { return original.smooth(samples.all(), pass(progress, "smooth")); });
      not_applied = std::move(original.report().not_applied);
    }
    quantization.emplace(options, workspace, ActivationScales::calibrated, clock);
    Report& report = quantization->report();
    report.smoothings = std::move(smoothings);
    report.not_smoothed = not_smoothed;
    report.not_applied = std::move(not_applied);
    Ranges ranges = naming_nodes(*quantization, [&] {
      return find_ranges(*quantization, options, workspace, samples.source(), progress);
    });
    ChannelRanges channels = naming_nodes(*quantization, [&] {
      return find_channel_ranges(*quantization, workspace, samples, progress);
    });
    naming_nodes(*quantization, [&] {
      quantization->encode(std::move(ranges), std::move(channels), samples.all(),
                           pass(progress, "round weights"));
    });
    if (options.accuracy.bias_correction)
      quantization->correct_biases(samples.all(), pass(progress, "correct biases"));
  }

  /// The placement with the ops that `quantized` accepts.
  template <class Quantized>
  Placement part(const Quantized& quantized) const {
    const Placement& all = quantization->placement();
    Placement kept{{}, {}, all.skipped};
    for (std::size_t i = 0; i < ops.size(); ++i) {
      if (!quantized(i)) continue;
      if (ops[i].result)
        kept.outputs.push_back(all.outputs[ops[i].place]);
      else
        kept.sites.push_back(all.sites[ops[i].place]);
    }
    return kept;
  }

  const Stopwatch clock;  // smoothing is part of the work, too
  const Options options;
  Workspace workspace;  // whose model may be the smoothed one
  std::optional<Quantization> quantization;
  std::vector<QuantizedOp> ops;
};

CalibratedModel::CalibratedModel(const Options& options, const SampleSource& samples,
                                 const Progress& progress)
    : state_(std::make_unique<State>(options, samples, progress)) {}
CalibratedModel::~CalibratedModel() = default;

const Options& CalibratedModel::options() const { return state_->options; }
const opencl::ContextFuture& CalibratedModel::device() const { return state_->workspace.device(); }
const std::vector<QuantizedOp>& CalibratedModel::ops() const { return state_->ops; }

bool CalibratedModel::can_unnormalize() const { return state_->quantization->can_unnormalize(); }

Model CalibratedModel::part(const std::set<std::size_t>& quantized, bool unnormalize) const {
  return state_->quantization->quantized(
      state_->part([&](std::size_t op) { return quantized.contains(op); }), unnormalize);
}

Report CalibratedModel::write(const std::map<std::size_t, std::string>& skipped, bool unnormalize) {
  Placement part = state_->part([&](std::size_t op) { return !skipped.contains(op); });
  for (const auto& [op, reason] : skipped)
    part.skipped.push_back({state_->ops[op].node, state_->ops[op].op, reason});
  return state_->quantization->write(part, unnormalize);
}

Report quantize(const Options& options, const SampleSource& samples, const Progress& progress) {
  return CalibratedModel(options, samples, progress).write();
}

}  // namespace bertcl::quant
