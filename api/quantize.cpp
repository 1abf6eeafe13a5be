// SPDX-License-Identifier: Apache-2.0
// The quantizer of the public interface.
#include "bertcl/quantize.hpp"

#include <nlohmann/json.hpp>
#include <utility>

#include "api/boundary.hpp"
#include "api/evaluation.hpp"
#include "api/tokenizer_impl.hpp"
#include "bertcl/version.hpp"
#include "quant/presets.hpp"
#include "quant/quantizer.hpp"
#include "runtime/sequences.hpp"
#include "squad/dataset.hpp"
#include "squad/features.hpp"

namespace bertcl {
namespace {

quant::Options to_quant(const QuantizeOptions& options) {
  quant::Options all = quant::preset(options.preset).options();
  all.device = options.device;
  all.placement.exclude = options.exclude;
  if (options.method) all.method = *options.method;
  if (options.smooth) all.accuracy.smooth = *options.smooth;
  if (options.gptq) all.accuracy.gptq = *options.gptq;
  if (options.bias_correction) all.accuracy.bias_correction = *options.bias_correction;
  return all;
}

quant::SampleSource samples_of(const Sequences& sequences) {
  return [&sequences, next = std::size_t{0}]() mutable -> std::optional<quant::Sample> {
    if (next + 1 >= sequences.offsets.size()) return std::nullopt;
    const auto part = [&](const std::vector<std::int64_t>& values) {
      if (values.empty()) return values;
      return std::vector(values.begin() + sequences.offsets[next],
                         values.begin() + sequences.offsets[next + 1]);
    };
    quant::Sample sample{part(sequences.ids), part(sequences.types)};
    ++next;
    return sample;
  };
}

std::string report_json(const quant::Report& report, const quant::Options& options) {
  nlohmann::ordered_json json = {{"schema", "bertcl.quantize/1"},
                                 {"bertcl", version()},
                                 {"device", report.device},
                                 {"path", options.model.string()},
                                 {"output", options.output.string()}};
  json.update(nlohmann::ordered_json(quant::to_json(report)));
  return dump(json);
}

QuantizeReport to_public(const quant::Report& report) {
  QuantizeReport result;
  result.method = report.method;
  result.device = report.device;
  result.samples = report.samples;
  result.tokens = report.tokens;
  result.quantized_nodes = report.quantized_nodes;
  for (const quant::SkippedNode& node : report.skipped)
    result.skipped.push_back({node.node, node.reason});
  result.float_bytes = report.float_bytes;
  result.written_bytes = report.written_bytes;
  result.seconds = report.total_seconds;
  return result;
}

}  // namespace

QuantizeReport quantize(const std::filesystem::path& model, const std::filesystem::path& output,
                        const Sequences& samples, const QuantizeOptions& options,
                        const QuantizeProgress& progress) {
  return at_boundary([&] {
    runtime::check({samples.ids, samples.types, samples.offsets});
    quant::Options all = to_quant(options);
    all.model = model;
    all.output = output;
    const auto tell = [&](std::string_view pass, std::int64_t done) {
      if (progress && !progress(pass, done))
        throw Error("the quantization was cancelled", ErrorCode::cancelled);
    };
    const quant::Report report = quant::quantize(all, samples_of(samples), tell);
    QuantizeReport result = to_public(report);
    result.json = report_json(report, all);
    return result;
  });
}

Sequences read_squad_samples(const std::filesystem::path& data, const Tokenizer& tokenizer,
                             std::size_t count, int max_length) {
  return at_boundary([&] {
    const squad::Dataset dataset = squad::load_dataset(data);
    squad::FeatureOptions options;
    options.max_seq_length = max_length;
    const text::Tokenizer& pieces = TokenizerAccess::of(tokenizer);
    Sequences samples;
    for (const std::size_t index : quant::spread(dataset.questions.size(), count)) {
      const squad::Question& question = dataset.questions[index];
      const auto document = squad::make_document(dataset.context_of(question), pieces);
      const auto windows = squad::make_features(document, question.text, pieces, options);
      if (windows.empty()) continue;
      const squad::Feature& first = windows.front();
      samples.ids.insert(samples.ids.end(), first.input_ids.begin(), first.input_ids.end());
      for (std::size_t i = 0; i < first.length(); ++i) samples.types.push_back(i >= first.second);
      samples.offsets.push_back(static_cast<std::int64_t>(samples.ids.size()));
    }
    return samples;
  });
}

}  // namespace bertcl
