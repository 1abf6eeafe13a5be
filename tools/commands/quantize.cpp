// SPDX-License-Identifier: Apache-2.0
// bertcl quantize: calibrate a float model on questions and write it with Q/DQ.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "bertcl/error.hpp"
#include "quant/calibrated_model.hpp"
#include "quant/graph/workspace.hpp"
#include "quant/presets.hpp"
#include "quant/quantizer.hpp"
#include "quant/settings/accuracy_checks.hpp"
#include "quant/settings/quantize_options.hpp"
#include "quant/tables/table.hpp"
#include "support/fail.hpp"
#include "support/option_checks.hpp"
#include "support/written_files.hpp"
#include "tools/help/help_formatter.hpp"
#include "tools/measure/op_choice.hpp"
#include "tools/models/calibration_samples.hpp"
#include "tools/models/text_model.hpp"
#include "tools/options/file_options.hpp"
#include "tools/options/json_report.hpp"
#include "tools/options/model_options.hpp"
#include "tools/options/table_options.hpp"
#include "tools/options/task_options.hpp"
#include "tools/options/vocabulary_options.hpp"
#include "tools/terminal/interruption.hpp"
#include "tools/terminal/output.hpp"
#include "tools/terminal/progress.hpp"
#include "tools/terminal/terminal.hpp"

namespace bertcl::tools {
namespace {

struct QuantizeOptions : CommonOptions {
  std::string model, output, overrides;
  bool model_only = false;
  TaskOptions task;
  SampleOptions samples;
  std::optional<int> max_length;  ///< tokens of a sequence
  VocabularyOptions vocabulary;
  quant::Options quantizer = quant::presets().front().options();
  quant::MarkedOptions marked;
  quant::JobOptions job;
  OpChoiceOptions ops;
};

/// A written model, and what the options asked to know about its ops.
struct Quantized {
  quant::JobResult made;
  std::optional<OpChoice> choice;
  std::string unit;                          ///< of made.report.samples: "questions"
  std::optional<opencl::DeviceInfo> device;  ///< what ran it, if anything
};

/// Tokens of the longest sample: as asked for, which the model has to take, or the usual number
/// within what it takes. The vocabulary has to be that of the model.
int sample_length(const QuantizeOptions& options, const quant::Workspace& workspace,
                  const text::Tokenizer& tokenizer) {
  runtime::SessionOptions session_options;
  session_options.context = workspace.device();
  session_options.self_check = true;
  runtime::Session session =
      make_session(options.model, session_options,
                   [&](const runtime::SessionOptions& all) { return workspace.session(all); });
  TextModel model(session);
  model.check_vocabulary(tokenizer);
  const int length = model.max_length(options.max_length);
  return options.max_length ? length : std::min(length, options.samples.features.max_seq_length);
}

/// Calibrates on the questions or texts of the data file.
quant::Report quantize_by_data(const QuantizeOptions& options, const quant::Options& quantizer,
                               WrittenFiles& written, Quantized& result) {
  const auto device = opencl::ContextFuture::open(options.device);
  const text::Tokenizer tokenizer = options.task.is_squad()
                                        ? load_squad_tokenizer(options.vocabulary, {options.model})
                                        : load_tokenizer(options.vocabulary, {options.model});
  quant::Workspace workspace = device.meanwhile([&] {
    return naming_model(options.model, [&] { return quant::Workspace(options.model, device); });
  });
  SampleOptions wanted = options.samples;
  wanted.features.max_seq_length = sample_length(options, workspace, tokenizer);
  CalibrationSamples samples(options.task, tokenizer, wanted);
  CalibrationData data{options.task, samples.dataset(), samples.chosen(),
                       tokenizer,    wanted.features,   {}};
  std::optional<Progress> progress;
  std::string shown;
  quant::CalibratedModel model(
      quantizer, std::move(workspace),
      [&] {
        auto sample = samples.next();
        if (sample && options.ops.wanted()) data.samples.push_back(*sample);
        return sample;
      },
      [&](std::string_view pass, std::int64_t done) {
        throw_if_interrupted();
        if (shown != pass) {
          shown = pass;
          progress.emplace(shown, samples.unit());
        }
        progress->update(static_cast<std::size_t>(done), samples.size(),
                         done == 0 ? "building kernels" : "");
      });
  progress.reset();
  result.unit = samples.unit();
  result.device = device.get()->info();
  if (options.ops.wanted()) result.choice = choose_ops(model, data, options.ops, written);
  return result.choice ? model.write(result.choice->float_ops(), result.choice->unnormalize())
                       : model.write();
}

/// Refuses a model that cannot run.
void check_runs(const QuantizeOptions& options) {
  runtime::SessionOptions session_options;
  session_options.context = options.quantizer.context;
  load_model(options.model, session_options);
}

/// "NAME and 3 more"
std::string first_of(const std::vector<std::string>& names) {
  return names.size() == 1 ? names.front()
                           : fmt::format("{} and {} more", names.front(), names.size() - 1);
}

/// By reason: a deep model has many nodes that share one. All names are in the JSON.
void print_skipped(const std::string& what, const std::vector<quant::SkippedNode>& nodes) {
  std::map<std::string, std::vector<std::string>> reasons;
  for (const quant::SkippedNode& node : nodes) reasons[node.reason].push_back(node.node);
  for (const auto& [reason, names] : reasons)
    print_text("{}: {}: {}\n", what, first_of(names), reason);
}

void print_table(const std::string& file, const quant::ScaleTableFormat& format, std::size_t ranges,
                 std::string_view of) {
  print_text("{}: {} of {} {}, format {}\n", file, format.magnitudes ? "magnitudes" : "ranges",
             ranges, of, format.name);
}

void print_size(const quant::Report& report, const QuantizeOptions& options) {
  const auto percent_of = [&](std::int64_t bytes) {
    return 100.0 * static_cast<double>(report.written_bytes) /
           static_cast<double>(std::max<std::int64_t>(1, bytes));
  };
  print_text("{}: {}, {:.0f} % of {} and {:.0f} % of the weights in fp32\n", options.output,
             bytes_text(report.written_bytes), percent_of(report.source_file_bytes), options.model,
             percent_of(report.float_bytes));
}

void print_calibration(const quant::Report& report, const quant::JobOptions& job,
                       const std::string& unit) {
  if (job.dynamic)
    print_text("activation scales are computed at run time, per {}\n",
               job.per_token ? "token" : "tensor");
  else if (job.calibrates())
    print_text("calibrated by {} on {} ({}) in {}\n", report.method, counted(report.samples, unit),
               counted(report.tokens, "tokens"), duration_text(report.calibrate_seconds));
}

void print_tensors(const quant::Report& report, bool dynamic) {
  const auto count_of = [&](quant::Role role, std::string_view unit) {
    return counted(report.count(role), unit);
  };
  print_text(
      "{} quantized: {} ({}), {} ({} per {}{}), {}\n", counted(report.quantized_nodes, "nodes"),
      dynamic ? "activations at run time" : count_of(quant::Role::activation, "activations"),
      quant::scheme_text(report.activations), count_of(quant::Role::weight, "weights"),
      quant::scheme_text(report.weights.scheme), report.weights.per_channel ? "channel" : "tensor",
      report.weights.scale == quant::WeightScale::mse ? ", mse scales" : "",
      count_of(quant::Role::constant, "constants"));
  if (report.count(quant::Role::channels) > 0)
    print_text("{} with per-channel scales\n", count_of(quant::Role::channels, "activations"));
  if (const auto& tensors = report.coarse_ranges; !tensors.empty())
    print_text(
        "coarse ranges: {}: a few values are many times as large as the others, which share few "
        "bins of the histogram; raise --bins\n",
        first_of(tensors));
}

void print_transforms(const quant::Report& report, bool corrects_biases) {
  if (report.expanded_nodes > 0)
    print_text("{} expanded into MatMuls and plain operators\n",
               counted(report.expanded_nodes, "fused operators"));
  if (report.unnormalized_softmaxes > 0)
    print_text("{} Softmax unnormalized: exponentials quantized instead of probabilities\n",
               report.unnormalized_softmaxes);
  if (!report.smoothed.tensors.empty())
    print_text("{} smoothed: scale moved from their channels to the weights\n",
               counted(std::ssize(report.smoothed.tensors), "activations"));
  if (!report.smoothed.why_not.empty()) print_text("not smoothed: {}\n", report.smoothed.why_not);
  if (report.gptq_weights > 0)
    print_text("{} rounded by GPTQ\n", counted(report.gptq_weights, "weights"));
  if (corrects_biases) print_text("{} corrected\n", counted(report.corrected_biases, "biases"));
}

void print_left_in_float(const quant::Report& report) {
  if (const auto& nodes = report.without_column_scales; !nodes.empty())
    print_text(
        "no int8 GEMM: {}: weights have scales along another axis than their columns; bertcl "
        "computes these MatMuls in float; with graph optimizations ONNX Runtime fails or returns "
        "wrong results\n",
        first_of(nodes));
  for (const auto& [measure, nodes] : report.not_applied) print_skipped("no " + measure, nodes);
  print_skipped("left in float", report.skipped);
}

void print_report(const Quantized& quantized, const QuantizeOptions& options) {
  const quant::JobResult& made = quantized.made;
  const quant::Report& report = made.report;
  if (made.read_format)
    print_table(options.job.read_table, *made.read_format, report.given.size(), "tensors");
  print_size(report, options);
  print_calibration(report, options.job, quantized.unit);
  print_tensors(report, options.job.dynamic);
  print_transforms(report, options.quantizer.accuracy.bias_correction);
  print_left_in_float(report);
  if (!made.copied.empty()) print_text("copied beside it: {}\n", fmt::join(made.copied, ", "));
  if (!made.left_out.empty())
    print_text("without {}: a table holds the per-tensor ranges of the original model{}\n",
               fmt::join(made.left_out, ", "), made.read_format ? ", and no samples" : "");
  if (made.written_format)
    print_table(options.job.write_table, *made.written_format, made.written_ranges, "activations");
}

/// Refuses pipes and standard input where what they hold is read again to measure the score.
void check_read_twice(const QuantizeOptions& options) {
  if (!options.ops.max_drop) return;
  const auto same = [](const std::string& one, const std::string& other) {
    struct stat a, b;
    const auto find = [](const std::string& path, struct stat& found) {
      return ::stat(path == "-" ? "/dev/stdin" : path.c_str(), &found) == 0;
    };
    return find(one, a) && find(other, b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
  };
  const auto check = [](const char* option, const std::string& path) {
    std::error_code ignored;
    const std::filesystem::file_status status = std::filesystem::status(path, ignored);
    if (path == "-" || (std::filesystem::exists(status) && !std::filesystem::is_directory(status) &&
                        !std::filesystem::is_regular_file(status)))
      fail("{}: {} is read twice with --max-drop; name a file", option, path);
  };
  const bool read_again = options.ops.drop_data.empty()
                              ? !options.task.is_squad()
                              : same(options.task.data, options.ops.drop_data);
  if (read_again) check("--data", options.task.data);
  check("--labels", options.task.labels);
}

int run_quantize(const CLI::App& command, QuantizeOptions& options) {
  check_readable(options.model);
  check_read_twice(options);
  quant::check_source(options.job, "data", !options.task.data.empty());
  if (command.count("--max-query-length") > 0 && !options.task.is_squad())
    fail("--max-query-length is for --task {}, not {}", kQuestionAnswering, options.task.name);
  check_op_choice_options(options.ops, options.task, options.model);
  quant::Options& quantizer = options.quantizer;
  quantizer.model = options.model;
  quantizer.output = options.output;
  quantizer.device = options.device;
  if (!options.overrides.empty()) quantizer.overrides = quant::read_overrides(options.overrides);
  options.job.copy_companions = !options.model_only;
  options.job.vocabulary = options.vocabulary.vocabulary;
  quant::check_accuracy_options(quant::explicit_options(command, options.marked, quantizer),
                                quantizer, options.job);
  Quantized quantized;
  WrittenFiles written;
  quantized.made = quant::run_job(
      quantizer, options.job, written, [&] { check_runs(options); },
      [&](const quant::Options& own) {
        return quantize_by_data(options, own, written, quantized);
      });
  if (options.prints_text()) print_report(quantized, options);
  written.keep();
  nlohmann::ordered_json json = {{"path", options.model},
                                 {"output", options.output},
                                 {"data", options.task.data},
                                 {"task", options.task.name},
                                 {"table", options.job.read_table}};
  json.update(quant::to_json(quantized.made));
  if (quantized.choice) {
    json.update(to_json(*quantized.choice));
    if (options.prints_text()) print_text("{}", text_of(*quantized.choice));
  }
  write_report(options, quantized.device, json);
  return kOk;
}

void add_sample_options(CLI::App& command, QuantizeOptions& options) {
  const OptionMark of_samples(command, options.marked.of_samples);
  not_negative(command, "--samples", options.samples.wanted,
               "Questions or texts to calibrate on; 0 is all");
  command
      .add_flag("--first-samples", options.samples.first,
                "Take the first samples of the file instead of spreading them over it")
      ->group("Samples");
  positive(command, "--max-seq-length", options.max_length,
           "Maximum tokens of a text, with its question; by default 384, or the model's limit if "
           "that is less");
  positive(command, "--max-query-length", options.samples.features.max_query_length,
           "Longest question, in tokens; the rest is truncated")
      ->group("Samples");
}

}  // namespace

void add_quantize(CLI::App& program, Action& action) {
  const auto options = std::make_shared<QuantizeOptions>();
  CLI::App* command = add_command(
      program, "quantize",
      "Calibrate a float model and write an int8 model (ONNX with Q/DQ)\n\n"
      "Runs the model on questions of a SQuAD file, or on texts of another task, spread evenly "
      "over the file, and observes the inputs of its MatMuls on the device. The file that is "
      "written is ordinary ONNX, for any runtime that knows QuantizeLinear and DequantizeLinear; "
      "on CPUs without VNNI, ONNX Runtime's sums of 8-bit products saturate unless --reduce-range "
      "is given. Vocabulary, tokenizer and config.json of the model are copied beside it.",
      "bertcl quantize models/minilm-l6-squad/model.onnx -o int8.onnx --data data/calibration.json",
      *options);
  shorten_help(*command);
  model_file(command->add_option("MODEL", options->model, "Float ONNX model"))->required();
  output_file(command->add_option("-o,--output", options->output, "Int8 model to write"))
      ->required()
      ->type_name("OUT.onnx");
  add_force_flag(*command, options->job.replace_companions);
  command->add_flag("--model-only", options->model_only,
                    "Do not copy vocabulary, tokenizer and config.json beside the int8 model");
  add_task_options(*command, options->task, tasks::kCalibrationTasks,
                   "SQuAD file with calibration questions, or the file of another task (see bertcl "
                   "eval --help); of text: lines, JSON lines {\"text\": \"..\"}, with "
                   "\"text_pair\" for two texts, or the contexts of a SQuAD file",
                   "--data,--calibration");
  add_sample_options(*command, *options);
  command->add_flag("--dynamic", options->job.dynamic,
                    "No calibration: activation scales are computed at run time "
                    "(DynamicQuantizeLinear, MatMulInteger). Only MatMuls with weights");
  command
      ->add_flag("--per-token", options->job.per_token,
                 "With --dynamic: per-token instead of per-tensor scales, symmetric i8")
      ->needs("--dynamic")
      ->group("Integers");
  add_vocabulary_options(*command, options->vocabulary);
  command->get_option("--strip-accents")->group("Samples");
  for (const char* name : {"--task", "--lower-case", "--strip-accents"})
    options->marked.of_samples.push_back(command->get_option(name));
  quant::add_quantizer_options(*command, options->quantizer, options->marked);
  input_file(command->add_option("--overrides", options->overrides,
                                 "Scales, ranges and types of individual tensors: a JSON file of "
                                 "onnxruntime's TensorQuantOverrides. Disables smoothing"))
      ->group("Integers");
  add_table_options(*command, options->job);
  add_op_choice_options(*command, options->ops, options->task);
  command->callback([options, command, &action] {
    action = [options, command] {
      return run_interruptibly([&] { return run_quantize(*command, *options); });
    };
  });
}

}  // namespace bertcl::tools
