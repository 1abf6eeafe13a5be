// SPDX-License-Identifier: Apache-2.0
// The quantizer: a float ONNX model and token sequences in, a Q/DQ model and a report out.
#include "quant/quantizer.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <system_error>

#include "quant/accuracy/channel_pass.hpp"
#include "quant/calibrate.hpp"
#include "quant/quantization.hpp"
#include "runtime/session.hpp"

namespace bertcl::quant {
namespace {

/// A model beside the one to come, for as long as it is calibrated.
class TemporaryModel {
 public:
  explicit TemporaryModel(const std::filesystem::path& output)
      : path_(fmt::format("{}.{}.smoothed", output.string(), ::getpid())) {}
  TemporaryModel(const TemporaryModel&) = delete;
  TemporaryModel& operator=(const TemporaryModel&) = delete;
  ~TemporaryModel() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
    std::filesystem::remove(path_.string() + ".data", ignored);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

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

ChannelRanges find_channel_ranges(const Quantization& quantization, const Options& options,
                                  const Samples& samples, const Progress& progress) {
  const auto tensors = quantization.channel_tensors();
  if (tensors.empty()) return {};
  return channel_statistics(options.model, options.device, tensors, samples.all(),
                            pass(progress, "calibrate channels"));
}

/// The ranges of `quantization`'s tensors; fills its report.
Ranges find_ranges(Quantization& quantization, const Options& options, const SampleSource& samples,
                   const Progress& progress) {
  const auto start = std::chrono::steady_clock::now();
  const auto tensors = quantization.activations();
  runtime::SessionOptions session_options;
  session_options.device = options.device;
  session_options.observe = {tensors.begin(), tensors.end()};
  auto session = runtime::Session::load(options.model, session_options);
  MethodOptions method_options = options.method_options;
  method_options.scheme = options.activations;
  Calibration calibration = calibrate(session, tensors, method(options.method), method_options,
                                      samples, options.batch, [&](std::int64_t done, std::int64_t) {
                                        if (progress) progress("calibrate", done);
                                      });
  Report& report = quantization.report();
  report.device = session.context().info().name;
  report.calibrate_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  report.samples = calibration.samples;
  report.tokens = calibration.tokens;
  report.data_sha256 = calibration.data_sha256;
  return std::move(calibration.ranges);
}

/// True if no other option speaks of the tensors that smoothing would replace.
bool smooths(const Options& options) {
  const PlacementOptions& placement = options.placement;
  return options.accuracy.smooth && !options.ranges.clip_gelu && options.overrides.empty() &&
         placement.output_op_types.empty() && placement.places.empty() &&
         (!options.all_readers || placement.add_channels);
}

}  // namespace

Report quantize(const Options& options, const SampleSource& source, const Progress& progress) {
  method(options.method);  // an error before the work
  const bool passes =
      options.accuracy.smooth || options.accuracy.gptq || options.placement.add_channels;
  if (!passes) {
    Quantization quantization(options);
    return quantization.write(find_ranges(quantization, options, source, progress));
  }

  Options work = options;  // whose model may be the smoothed one
  const TemporaryModel smoothed(options.output);
  const Samples samples(source);
  std::optional<Report> source_report;  // of the model as it was given, if it is another now
  if (smooths(options)) {
    Quantization original(options);
    auto chosen = original.smooth(samples.all(), smoothed.path(), pass(progress, "smooth"));
    if (!chosen.empty()) {
      work.model = smoothed.path();
      source_report = original.report();
      source_report->smoothings = std::move(chosen);
    }
  }
  Quantization quantization(work);
  Ranges ranges = find_ranges(quantization, work, samples.source(), progress);
  ChannelRanges channels = find_channel_ranges(quantization, work, samples, progress);
  if (source_report) {
    Report& report = quantization.report();
    report.smoothings = std::move(source_report->smoothings);
    report.opset_before = source_report->opset_before;
    report.source_bytes = source_report->source_bytes;
    report.float_bytes = source_report->float_bytes;
  }
  return quantization.write(std::move(ranges), std::move(channels), samples.all(),
                            pass(progress, "round weights"));
}

}  // namespace bertcl::quant
