// SPDX-License-Identifier: Apache-2.0
// bertcl quantize: calibrate a float model on questions and write it with Q/DQ.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "bertcl/error.hpp"
#include "quant/quantizer.hpp"
#include "squad/dataset.hpp"
#include "squad/features.hpp"
#include "tools/model_options.hpp"
#include "tools/option_checks.hpp"
#include "tools/output.hpp"
#include "tools/progress.hpp"
#include "tools/table_options.hpp"

namespace bertcl::tools {
namespace {

struct QuantizeOptions : CommonOptions {
  std::string model, output, data, activations = "u8";
  std::size_t samples = quant::kDefaultSamples;
  bool no_head = false, two_sided = false;
  VocabularyOptions vocabulary;
  squad::FeatureOptions features;
  quant::Options quantizer;
  TableOptions table;
};

/// The first window of each chosen question, made when it is asked for.
class QuestionSamples {
 public:
  QuestionSamples(const squad::Dataset& dataset, const text::WordPieceTokenizer& tokenizer,
                  const squad::FeatureOptions& features, std::size_t wanted)
      : dataset_(dataset),
        tokenizer_(tokenizer),
        features_(features),
        chosen_(quant::spread(dataset.questions.size(), wanted)) {}

  std::size_t size() const { return chosen_.size(); }

  std::optional<quant::Sample> next() {
    while (next_ < chosen_.size()) {
      const squad::Question& question = dataset_.questions[chosen_[next_++]];
      const auto document = squad::make_document(dataset_.context_of(question), tokenizer_);
      const auto windows = squad::make_features(document, question.text, tokenizer_, features_);
      if (windows.empty()) continue;  // a context without words
      const squad::Feature& window = windows.front();
      quant::Sample sample;
      sample.ids.assign(window.input_ids.begin(), window.input_ids.end());
      sample.types.assign(window.length(), 1);
      std::fill_n(sample.types.begin(), window.doc_begin, 0);
      return sample;
    }
    return std::nullopt;
  }

 private:
  const squad::Dataset& dataset_;
  const text::WordPieceTokenizer& tokenizer_;
  squad::FeatureOptions features_;
  std::vector<std::size_t> chosen_;
  std::size_t next_ = 0;
};

/// Calibrates on the questions of the data file.
quant::Report quantize_by_data(const QuantizeOptions& options) {
  const squad::Dataset dataset = squad::load_dataset(options.data);
  const text::WordPieceTokenizer tokenizer = load_tokenizer(options.vocabulary, {options.model});
  QuestionSamples samples(dataset, tokenizer, options.features, options.samples);
  Progress progress("calibrate", "questions");
  return quant::quantize(
      options.quantizer, [&] { return samples.next(); },
      [&](std::int64_t done, std::int64_t) {
        progress.update(static_cast<std::size_t>(done), samples.size());
      });
}

quant::Report quantize_by_table(const QuantizeOptions& options) {
  const quant::ReadTable read = quant::read_table(options.table.read);
  quant::Report report = quant::quantize_with_table(options.quantizer, read.table);
  if (options.prints_text())
    fmt::print("{}: {} of {} tensors, format {}\n", options.table.read,
               read.format->magnitudes ? "magnitudes" : "ranges", read.table.ranges.size(),
               read.format->name);
  return report;
}

void print_report(const quant::Report& report, const QuantizeOptions& options) {
  const auto size = model_bytes(options.output);
  fmt::print("{}: {}, {:.0f} % of {} and {:.0f} % of the weights in fp32\n", options.output,
             bytes_text(size),
             100.0 * static_cast<double>(size) / static_cast<double>(model_bytes(options.model)),
             options.model,
             100.0 * static_cast<double>(size) /
                 static_cast<double>(std::max<std::int64_t>(1, report.float_bytes)));
  if (options.table.read.empty())
    fmt::print("calibrated by {} on {} questions ({} tokens) in {}\n", report.method,
               grouped(report.samples), grouped(report.tokens),
               duration_text(report.calibrate_seconds));
  fmt::print("{} nodes quantized: {} activations ({}), {} weights (i8 per channel), {} constants\n",
             report.quantized_nodes, report.count(quant::Role::activation), options.activations,
             report.count(quant::Role::weight), report.count(quant::Role::constant));
  // Nodes by reason: a deep model has many that share one. All names are in the JSON.
  std::map<std::string, std::vector<std::string>> reasons;
  for (const quant::Left& left : report.left) reasons[left.reason].push_back(left.node);
  for (const auto& [reason, nodes] : reasons) {
    fmt::print("left in float: {}{}: {}\n", nodes.front(),
               nodes.size() == 1 ? "" : fmt::format(" and {} more", nodes.size() - 1), reason);
  }
}

int run_quantize(QuantizeOptions& options) {
  check_readable(options.model);
  check_writable(options.output);
  std::error_code different;
  if (std::filesystem::equivalent(options.model, options.output, different)) {
    throw Error(options.output + ": the model itself; name another file to write");
  }
  if (options.data.empty() == options.table.read.empty())
    throw Error(options.data.empty()
                    ? "nothing to take ranges from: give --data FILE to calibrate on, or a table "
                      "of ranges by --read-table FILE"
                    : "--data and --read-table exclude each other: ranges are either found by "
                      "calibration or read");
  check_table_options(options.table);
  quant::Options& quantizer = options.quantizer;
  quantizer.model = options.model;
  quantizer.output = options.output;
  quantizer.device = options.device;
  quantizer.activations = options.activations == "u8" ? quant::Scheme{ir::DType::u8, false}
                                                      : quant::Scheme{ir::DType::i8, true};
  quantizer.placement.head = !options.no_head;
  quantizer.method_options.absolute = !options.two_sided;

  const quant::Report report =
      options.table.read.empty() ? quantize_by_data(options) : quantize_by_table(options);
  if (options.prints_text()) print_report(report, options);
  write_table(options.table, report, options.prints_text());
  nlohmann::ordered_json json = {{"path", options.model},
                                 {"output", options.output},
                                 {"data", options.data},
                                 {"table", options.table.read}};
  json.update(nlohmann::ordered_json(quant::to_json(report)));
  write_json(options.json, json);
  return kOk;
}

void add_placement_options(CLI::App& command, QuantizeOptions& options) {
  const char* group = "What is quantized, and how";
  std::vector<std::string> names;
  std::string summaries = "How ranges of activations are chosen:";
  for (const quant::Method& method : quant::methods()) {
    names.emplace_back(method.name);
    summaries += fmt::format("\n{}: {}", method.name, method.summary);
  }
  one_of(command.add_option("--method", options.quantizer.method, summaries), names)->group(group);
  command
      .add_option("--percentile", options.quantizer.method_options.percentile,
                  "percentile: share of the values inside the range, in percent")
      ->type_name("P")
      ->capture_default_str()
      ->group(group);
  command
      .add_flag("--two-sided", options.two_sided,
                "percentile: cut the smallest and the largest values, each for itself, instead of\n"
                "those of largest magnitude")
      ->group(group);
  one_of(command.add_option("--activations", options.activations,
                            "u8: asymmetric unsigned, s8: symmetric signed"),
         {"u8", "s8"})
      ->group(group);
  command
      .add_flag("--residual", options.quantizer.placement.residual,
                "Quantize both inputs of the Adds in front of LayerNorms, too")
      ->group(group);
  command.add_flag("--no-head", options.no_head, "Leave the last product of the model in float")
      ->group(group);
  command
      .add_option("--exclude", options.quantizer.placement.exclude,
                  "Nodes to leave in float, by name; * and ? as in file names; repeatable")
      ->type_name("PATTERN")
      ->allow_extra_args(false)
      ->group(group);
  command
      .add_flag("--weights-qdq", options.quantizer.float_weights,
                "Keep weights as float behind Q -> DQ, as TensorRT expects, not as int8 behind DQ")
      ->group(group);
}

}  // namespace

void add_quantize(CLI::App& program, Action& action) {
  const auto options = std::make_shared<QuantizeOptions>();
  CLI::App* command = add_command(
      program, "quantize",
      "Calibrate a float model and write an int8 model (ONNX with Q/DQ)\n\n"
      "Runs the model on questions of a SQuAD file, spread evenly over it, and observes the "
      "inputs\n"
      "of its matrix products on the device. The file that is written is ordinary ONNX: any "
      "runtime\n"
      "that knows QuantizeLinear and DequantizeLinear gives the same answers.",
      "bertcl quantize models/minilm-l6-squad/model.onnx -o int8.onnx --data data/calibration.json",
      *options);
  command->add_option("MODEL", options->model, "ONNX model in float")->required()->type_name("");
  command->add_option("-o,--output", options->output, "The int8 model")
      ->required()
      ->type_name("OUT.onnx");
  command->add_option("--data", options->data, "SQuAD file with questions to calibrate on")
      ->type_name("FILE");
  command->add_option("--samples", options->samples, "Questions to calibrate on; 0 is all")
      ->type_name("N")
      ->capture_default_str();
  positive(command->add_option("--max-seq-length", options->features.max_seq_length,
                               "Tokens of a question with its text at most"));
  add_vocabulary_options(*command, options->vocabulary);
  add_placement_options(*command, *options);
  add_table_options(*command, options->table);
  command->callback([options, &action] { action = [options] { return run_quantize(*options); }; });
}

}  // namespace bertcl::tools
