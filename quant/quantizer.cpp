// SPDX-License-Identifier: Apache-2.0
// One quantization with all its files: ranges that are read, the model, its companions, its table.
#include "quant/quantizer.hpp"

#include <functional>
#include <nlohmann/json.hpp>
#include <utility>

#include "quant/writing/companions.hpp"
#include "support/fail.hpp"
#include "support/option_name.hpp"
#include "support/pending_file.hpp"

namespace bertcl::quant {
namespace {

/// Tables hold ranges of the model's own tensors.
std::vector<std::string> leave_out_by_table(Options& options, const JobOptions& job) {
  std::vector<std::string> left;
  const bool reads = !job.read_table.empty();
  if (!reads && job.write_table.empty()) return left;
  if (options.accuracy.smooth) left.push_back("smoothing");
  if (options.placement.add_channels && options.placement.op_types.contains("Add"))
    left.push_back("per-channel scales");
  if (reads && options.accuracy.gptq && !options.weights.as_float) left.push_back("GPTQ");
  if (reads && options.accuracy.bias_correction) left.push_back("bias correction");
  options.accuracy.smooth = options.placement.add_channels = false;
  return left;
}

}  // namespace

void check_source(const JobOptions& job, std::string_view data, bool has_data) {
  const std::string samples = option_name(data), table = option_name("read-table"),
                    dynamic = option_name("dynamic");
  if (job.dynamic && (has_data || !job.read_table.empty() || !job.write_table.empty()))
    fail("{} cannot be combined with {} or tables: activation ranges are computed at run time",
         dynamic, samples);
  if (job.calibrates() && !has_data)
    fail(
        "no source of ranges: give calibration data with {}, a table of ranges with {}, or {} to "
        "compute them at run time",
        samples, table, dynamic);
  if (has_data && !job.read_table.empty())
    fail("{} and {} cannot be combined: ranges are either calibrated or read from the table",
         samples, table);
}

JobResult run_job(Options options, const JobOptions& job, WrittenFiles& written,
                  const std::function<void()>& check_runs,
                  const std::function<Report(const Options&)>& calibrate) {
  JobResult result;
  result.left_out = leave_out_by_table(options, job);
  if (!job.write_table.empty())
    result.written_format = &table_format(job.table_format, job.write_table);
  std::optional<Companions> companions;
  if (job.copy_companions)
    companions.emplace(options.model, job.vocabulary, options.output, job.replace_companions);
  check_writable(options.output);
  if (result.written_format) check_writable(job.write_table);
  if (!job.calibrates()) check_runs();
  options.written = &written;
  options.before_output = [&](const Report& report) {
    if (companions) result.copied = companions->copy(written);
    if (!result.written_format) return;
    const auto table = scale_table_of(report);
    result.written_ranges = table.ranges.size();
    written.write(job.write_table, table_text(table, *result.written_format));
  };
  if (job.dynamic) {
    result.report = quantize_dynamic(
        options, job.per_token ? ActivationScales::per_token : ActivationScales::per_tensor);
  } else if (job.calibrates()) {
    result.report = calibrate(options);
  } else {
    const ReadTable read = read_table(job.read_table);
    result.read_format = read.format;
    result.report = quantize_with_table(options, read.table);
  }
  written.commit();
  return result;
}

nlohmann::ordered_json to_json(const JobResult& result) {
  nlohmann::ordered_json json = {{"left_out_by_table", result.left_out}, {"copied", result.copied}};
  json.update(nlohmann::ordered_json(to_json(result.report)));
  return json;
}

}  // namespace bertcl::quant
