// SPDX-License-Identifier: Apache-2.0
// The quantizer of the public interface.
#include "bertcl/quantize.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "api/boundary.hpp"
#include "onnx/model_path.hpp"
#include "onnx/read_model.hpp"
#include "quant/presets.hpp"
#include "quant/quantizer.hpp"
#include "quant/settings/accuracy_checks.hpp"
#include "quant/settings/settings.hpp"
#include "quant/writing/companions.hpp"
#include "runtime/report.hpp"
#include "runtime/sequences.hpp"
#include "runtime/session.hpp"
#include "support/json_text.hpp"
#include "support/same_file.hpp"
#include "support/written_files.hpp"

namespace bertcl {
namespace {

quant::JobOptions job_of(const QuantizeOptions& options) {
  return {.dynamic = options.dynamic,
          .per_token = options.per_token,
          .read_table = options.read_table,
          .write_table = options.write_table,
          .table_format = options.table_format,
          .copy_companions = options.copy_companions,
          .vocabulary = options.vocabulary,
          .replace_companions = options.replace_companions};
}

quant::Options to_quant(const QuantizeOptions& options, const quant::JobOptions& job) {
  quant::Options all = quant::preset(options.preset).options();
  quant::apply(options.settings, job, all);
  all.device = options.device;
  all.context = opencl::ContextFuture::open(options.device);
  all.placement.exclude.insert(all.placement.exclude.end(), options.exclude.begin(),
                               options.exclude.end());
  if (options.method) all.method = *options.method;
  if (options.smooth) all.accuracy.smooth = *options.smooth;
  if (options.gptq) all.accuracy.gptq = *options.gptq;
  if (options.bias_correction) all.accuracy.bias_correction = *options.bias_correction;
  quant::check_accuracy_options({options.smooth == true, options.gptq == true,
                                 options.bias_correction == true, options.method ? "method" : ""},
                                all, job);
  return all;
}

void check_sources(const quant::JobOptions& job, const Sequences& samples) {
  if (job.per_token && !job.dynamic) throw Error("per_token requires dynamic");
  if (!job.table_format.empty() && job.write_table.empty())
    throw Error("table_format requires write_table");
  quant::check_source(job, "samples", samples.count() > 0);
  if (job.calibrates()) runtime::check({samples.ids, samples.token_type_ids, samples.offsets});
}

/// Throws Error if an output is a file that is read, or the other output.
void check_outputs(const quant::Options& all, const QuantizeOptions& options) {
  std::vector<std::filesystem::path> read = onnx_io::external_files(all.model);
  read.insert(read.end(), {all.model, options.read_table, options.vocabulary});
  for (const std::filesystem::path& file : {all.model, options.vocabulary})
    if (!file.empty()) std::ranges::copy(quant::companion_files(file), std::back_inserter(read));
  for (const auto& [name, value] : options.settings)
    if (name == "overrides") read.emplace_back(value);
  for (const std::filesystem::path& made : {all.output, options.write_table})
    for (const std::filesystem::path& file : read)
      if (same_file(file, made))
        throw Error(made.string() + " would overwrite a file that is read; give another file");
  if (same_file(all.output, options.write_table))
    throw Error("the model and its table would both be written to " + all.output.string() +
                "; give each its own file");
}

/// Refuses a model that cannot run.
void check_runs(const quant::Options& options) {
  runtime::SessionOptions session;
  session.context = options.context;
  runtime::Session::load(options.model, session);
}

quant::SampleSource samples_of(const Sequences& sequences) {
  return [&sequences, next = std::size_t{0}]() mutable -> std::optional<quant::Sample> {
    if (next + 1 >= sequences.offsets.size()) return std::nullopt;
    const auto part = [&](const std::vector<std::int64_t>& values) {
      if (values.empty()) return values;
      return std::vector(values.begin() + sequences.offsets[next],
                         values.begin() + sequences.offsets[next + 1]);
    };
    quant::Sample sample{part(sequences.ids), part(sequences.token_type_ids)};
    ++next;
    return sample;
  };
}

/// What `bertcl quantize --json` writes, but for `data` and `task`.
std::string report_json(const quant::JobResult& made, const quant::Options& all,
                        const quant::JobOptions& job) {
  std::optional<opencl::DeviceInfo> device;
  if (job.calibrates()) device = all.context.get()->info();
  nlohmann::ordered_json json = {
      {"path", all.model.string()}, {"output", all.output.string()}, {"table", job.read_table}};
  json.update(quant::to_json(made));
  return json_text(runtime::report_of("quantize", device, json));
}

QuantizeReport to_public(const quant::JobResult& made) {
  const quant::Report& report = made.report;
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
  result.copied = made.copied;
  return result;
}

}  // namespace

std::map<std::string, std::string> quantizer_flags() {
  return translate_exceptions([] { return quant::flags(); });
}

QuantizeReport quantize(const std::filesystem::path& model, const std::filesystem::path& output,
                        const Sequences& samples, const QuantizeOptions& options,
                        const QuantizeProgress& progress) {
  return translate_exceptions([&] {
    const quant::JobOptions job = job_of(options);
    check_sources(job, samples);
    quant::Options all = to_quant(options, job);
    all.model = onnx_io::find_model(model);
    all.output = output;
    check_outputs(all, options);
    const auto tell = [&](std::string_view pass, std::int64_t done) {
      if (progress && !call_user_callback([&] { return progress(pass, done); }))
        throw Error("the quantization was cancelled", ErrorCode::cancelled);
    };
    WrittenFiles written;
    const quant::JobResult made = quant::run_job(
        all, job, written, [&] { check_runs(all); },
        [&](const quant::Options& own) { return quant::quantize(own, samples_of(samples), tell); });
    QuantizeReport result = to_public(made);
    result.json = report_json(made, all, job);
    written.keep();
    return result;
  });
}

}  // namespace bertcl
