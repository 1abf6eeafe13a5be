// SPDX-License-Identifier: Apache-2.0
// A calibrated model, from which files with any part left in float are made.
#include "quant/calibrated_model.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <utility>

#include "quant/calibration/calibrate.hpp"
#include "quant/calibration/nonfinite_tensor.hpp"
#include "quant/calibration/sample_pass.hpp"
#include "quant/quantization.hpp"
#include "support/fail.hpp"
#include "support/option_name.hpp"
#include "support/stopwatch.hpp"

namespace bertcl::quant {

/// An encoded model and the origin of its scales.
struct Calibrated {
  std::unique_ptr<const Quantization> quantization;
  Origin origin;
};

namespace {

bool runs_samples_again(const Options& options) {
  const AccuracyOptions& accuracy = options.accuracy;
  return accuracy.smooth || accuracy.gptq || accuracy.bias_correction ||
         options.placement.add_channels;
}

std::vector<Sample> all_of(const SampleSource& source) {
  std::vector<Sample> all;
  while (auto sample = source()) all.push_back(std::move(*sample));
  return all;
}

SampleSource one_by_one(std::span<const Sample> samples) {
  return [samples, next = std::size_t{0}]() mutable -> std::optional<Sample> {
    if (next == samples.size()) return std::nullopt;
    return samples[next++];
  };
}

PassProgress pass(const Progress& progress, std::string_view name) {
  return [&progress, name](std::int64_t samples) {
    if (progress) progress(name, samples);
  };
}

/// Names the nodes to exclude.
[[noreturn]] void refuse(const NonfiniteTensor& tensor, const Quantization& quantization) {
  fail("{}; exclude '{}' ({}) or correct the model", tensor.what(),
       fmt::join(quantization.nodes_quantizing(tensor.tensor()), "', '"), option_name("exclude"));
}

/// Replaces the model of `workspace` if that reduces the error.
Smoothed smooth(const Options& options, Workspace& workspace, std::span<const Sample> samples,
                const Progress& progress) {
  if (!options.accuracy.smooth) return {};
  if (std::string reason = why_not_smoothed(options); !reason.empty())
    return {.why_not = std::move(reason)};
  Quantization original(options, workspace);
  try {
    return original.smooth(samples, pass(progress, "smooth"));
  } catch (const NonfiniteTensor& error) {
    refuse(error, original);
  }
}

Calibration find_ranges(const Quantization& quantization, const Options& options,
                        const Workspace& workspace, const SampleSource& samples,
                        const Progress& progress) {
  const PassProgress report_done = pass(progress, "calibrate");
  const auto tensors = quantization.activations();
  auto session = workspace.session(tensors, [&] { report_done(0); });
  MethodOptions method_options = options.method_options;
  method_options.scheme = options.activations;
  return calibrate(session, tensors, method(options.method), method_options, samples, options.batch,
                   report_done);
}

ChannelRanges find_channel_ranges(const Quantization& quantization, const Workspace& workspace,
                                  std::span<const Sample> samples, const Progress& progress) {
  const auto tensors = quantization.channel_tensors();
  if (tensors.empty()) return {};
  return channel_statistics(workspace, tensors, samples, pass(progress, "calibrate channels"));
}

Workspace read(const Options& options) {
  check_settings(method(options.method), options.method_options);  // before the work
  return {options.model,
          options.context ? options.context : opencl::ContextFuture::open(options.device)};
}

/// The stages of quantize() before the file. Samples are kept only where several stages run them.
Calibrated calibrate(const Options& options, Workspace& workspace, const SampleSource& source,
                     const Progress& progress) {
  const auto kept = runs_samples_again(options) ? all_of(source) : std::vector<Sample>{};
  Smoothed smoothed = smooth(options, workspace, kept, progress);
  auto quantization = std::make_unique<Quantization>(options, workspace);
  try {
    const Stopwatch clock;
    Calibration calibration = find_ranges(*quantization, options, workspace,
                                          kept.empty() ? source : one_by_one(kept), progress);
    const double seconds = clock.seconds();
    quantization->encode(std::move(calibration.ranges),
                         find_channel_ranges(*quantization, workspace, kept, progress));
    if (options.accuracy.gptq && !options.weights.as_float)
      quantization->round_weights(kept, pass(progress, "round weights"));
    if (options.accuracy.bias_correction)
      quantization->correct_biases(kept, pass(progress, "correct biases"));
    return {std::move(quantization),
            {.method = options.method,
             .device = workspace.device().get()->info().name,
             .samples = calibration.samples,
             .tokens = calibration.tokens,
             .data_sha256 = std::move(calibration.data_sha256),
             .calibrate_seconds = seconds,
             .coarse_ranges = std::move(calibration.coarse),
             .smoothed = std::move(smoothed)}};
  } catch (const NonfiniteTensor& error) {
    refuse(error, *quantization);
  }
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
  State(const Options& given, Workspace&& read, const SampleSource& source,
        const Progress& progress)
      : options(given),
        workspace(std::move(read)),
        calibrated(calibrate(options, workspace, source, progress)),
        ops(calibrated.quantization->ops()) {}

  /// The placement with the ops that `quantized` accepts.
  template <class Quantized>
  Placement part(const Quantized& quantized) const {
    const Placement& all = calibrated.quantization->placement();
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

  const Options options;
  Workspace workspace;  // whose model may be the smoothed one
  const Calibrated calibrated;
  const std::vector<QuantizedOp> ops;
};

CalibratedModel::CalibratedModel(const Options& options, const SampleSource& samples,
                                 const Progress& progress)
    : CalibratedModel(options, read(options), samples, progress) {}

CalibratedModel::CalibratedModel(const Options& options, Workspace workspace,
                                 const SampleSource& samples, const Progress& progress) {
  check_settings(method(options.method), options.method_options);
  state_ = std::make_unique<State>(options, std::move(workspace), samples, progress);
}

CalibratedModel::~CalibratedModel() = default;

const Options& CalibratedModel::options() const { return state_->options; }
const opencl::ContextFuture& CalibratedModel::device() const { return state_->workspace.device(); }
const std::vector<QuantizedOp>& CalibratedModel::ops() const { return state_->ops; }

bool CalibratedModel::can_unnormalize() const {
  return state_->calibrated.quantization->can_unnormalize();
}

Model CalibratedModel::part(const std::set<std::size_t>& quantized, bool unnormalize) const {
  return state_->calibrated.quantization->quantized(
      state_->part([&](std::size_t op) { return quantized.contains(op); }), unnormalize);
}

Report CalibratedModel::write(const std::map<std::size_t, std::string>& skipped, bool unnormalize) {
  Placement part = state_->part([&](std::size_t op) { return !skipped.contains(op); });
  for (const auto& [op, reason] : skipped)
    part.skipped.push_back({state_->ops[op].node, state_->ops[op].op, reason});
  return state_->calibrated.quantization->write(part, unnormalize, state_->calibrated.origin);
}

Report quantize(const Options& options, const SampleSource& samples, const Progress& progress) {
  return CalibratedModel(options, samples, progress).write();
}

}  // namespace bertcl::quant
