// SPDX-License-Identifier: Apache-2.0
// bertcl eval: what models answer to a SQuAD data set, their scores and times side by side.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "squad/pipeline.hpp"
#include "tools/model_options.hpp"
#include "tools/option_checks.hpp"
#include "tools/output.hpp"
#include "tools/progress.hpp"
#include "tools/qa_model.hpp"
#include "tools/vocabulary_options.hpp"

namespace bertcl::tools {
namespace {

struct EvalOptions : ModelOptions {
  std::vector<std::string> models, compare;
  std::string data, task = "squad", predictions, null_odds, nbest;
  VocabularyOptions vocabulary;
  squad::EvaluateOptions evaluate;
  std::size_t limit = 0;
};

struct Row {
  std::filesystem::path path;
  std::string precision;
  squad::Evaluation evaluation;
  std::uintmax_t bytes = 0;
};

double tokens_per_second(const Row& row) {
  return static_cast<double>(row.evaluation.tokens) / std::max(1e-9, row.evaluation.total_seconds);
}

Row evaluate_model(runtime::Session& session, const EvalOptions& options,
                   const squad::Dataset& dataset, const text::WordPieceTokenizer& tokenizer) {
  Row row{session.path(), precision_of(session.plan(), options), {}, model_bytes(session.path())};
  QaModel model(session);
  squad::EvaluateOptions evaluate = options.evaluate;
  model.bound(evaluate.features, evaluate.batches);
  model.warm_up();
  Progress progress(row.precision + " " + row.path.filename().string(), "questions");
  row.evaluation = squad::evaluate(
      dataset, tokenizer, evaluate, std::ref(model),
      [&](const squad::Progress& now) {
        const double seconds = std::max(1e-9, now.model_seconds);
        progress.update(
            now.questions, now.questions_total,
            grouped(static_cast<std::int64_t>(static_cast<double>(now.tokens) / seconds)) +
                " tokens/s");
      },
      options.limit);
  return row;
}

void write_files(const EvalOptions& options, const squad::Evaluation& evaluation) {
  if (!options.predictions.empty()) squad::save_predictions(options.predictions, evaluation);
  if (!options.null_odds.empty()) squad::save_null_odds(options.null_odds, evaluation);
  if (!options.nbest.empty()) squad::save_nbest(options.nbest, evaluation);
}

/// A table with one column for each model: scores have few digits, paths are long.
void print_table(const std::vector<Row>& rows, const std::string& device, const std::string& data) {
  std::vector<std::string> head = {""};
  for (const Row& row : rows) head.push_back('>' + row.path.filename().string());
  Table table(head);
  const auto add = [&](const std::string& name, auto&& cell) {
    std::vector<std::string> cells = {name};
    for (const Row& row : rows) cells.push_back(cell(row));
    table.add(std::move(cells));
  };
  const auto percent = [](double value) { return fmt::format("{:.3f}", value); };
  add("precision", [](const Row& row) { return row.precision; });
  add("model size", [](const Row& row) { return bytes_text(row.bytes); });
  add("EM", [&](const Row& row) { return percent(row.evaluation.scores.exact_match); });
  add("F1", [&](const Row& row) { return percent(row.evaluation.scores.f1); });
  const squad::Scores& scores = rows.front().evaluation.scores;
  if (scores.has_answer && scores.has_answer->total > 0) {
    add("F1, answerable",
        [&](const Row& r) { return percent(r.evaluation.scores.has_answer->f1); });
  }
  if (scores.no_answer && scores.no_answer->total > 0) {
    add("F1, unanswerable",
        [&](const Row& r) { return percent(r.evaluation.scores.no_answer->f1); });
  }
  if (scores.thresholds) {
    add("best F1", [&](const Row& r) { return percent(r.evaluation.scores.thresholds->best_f1); });
    add("  at null threshold",
        [&](const Row& r) { return percent(r.evaluation.scores.thresholds->best_f1_thresh); });
  }
  add("seconds",
      [](const Row& row) { return fmt::format("{:.2f}", row.evaluation.total_seconds); });
  add("tokens/s",
      [](const Row& row) { return grouped(static_cast<std::int64_t>(tokens_per_second(row))); });
  add("tokens",
      [](const Row& row) { return grouped(static_cast<std::int64_t>(row.evaluation.tokens)); });
  fmt::print("{} questions of {} on {}\n\n{}", grouped(static_cast<std::int64_t>(scores.total)),
             data, device, table.str());
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const Row &one = rows[0], &other = rows[i];
    fmt::print(
        "\n{} against {}: EM {:+.3f}, F1 {:+.3f}, {:.2f} times the tokens/s, {:.0f} % of the "
        "size\n",
        one.path.filename().string(), other.path.filename().string(),
        one.evaluation.scores.exact_match - other.evaluation.scores.exact_match,
        one.evaluation.scores.f1 - other.evaluation.scores.f1,
        tokens_per_second(one) / tokens_per_second(other),
        100.0 * static_cast<double>(one.bytes) /
            static_cast<double>(std::max<std::uintmax_t>(1, other.bytes)));
  }
}

nlohmann::ordered_json to_json(const std::vector<Row>& rows, const std::string& device,
                               const EvalOptions& options) {
  nlohmann::ordered_json models = nlohmann::ordered_json::array();
  for (const Row& row : rows) {
    const squad::Evaluation& evaluation = row.evaluation;
    nlohmann::ordered_json model = {{"path", row.path.string()},
                                    {"precision", row.precision},
                                    {"exact_match", evaluation.scores.exact_match},
                                    {"f1", evaluation.scores.f1},
                                    {"total", evaluation.scores.total},
                                    {"seconds", evaluation.total_seconds},
                                    {"features", evaluation.features},
                                    {"tokens", evaluation.tokens},
                                    {"tokens_padded", evaluation.tokens_padded},
                                    {"tokens_per_second", tokens_per_second(row)},
                                    {"model_seconds", evaluation.model_seconds},
                                    {"model_bytes", row.bytes}};
    for (const auto& [name, value] : evaluation.scores.official()) {
      if (!model.contains(name) && name != "exact") model[name] = value;
    }
    models.push_back(std::move(model));
  }
  return {{"device", device},
          {"data", options.data},
          {"task", options.task},
          {"models", std::move(models)}};
}

int run_eval(EvalOptions& options) {
  for (const std::string& file : {options.predictions, options.null_odds, options.nbest})
    if (!file.empty()) check_writable(file);
  options.evaluate.keep_nbest = !options.nbest.empty();
  std::vector<std::filesystem::path> paths(options.models.begin(), options.models.end());
  paths.insert(paths.end(), options.compare.begin(), options.compare.end());
  for (const std::filesystem::path& path : paths) check_readable(path);
  const squad::Dataset dataset = squad::load_dataset(options.data);
  const text::WordPieceTokenizer tokenizer = load_tokenizer(options.vocabulary, paths);

  std::vector<Row> rows;
  std::shared_ptr<opencl::Context> context;  // one device for all models, one model at a time
  for (const std::filesystem::path& path : paths) {
    runtime::Session session = load_model(path, options, context);
    // What MODEL is compared with may be float.
    if (rows.size() < options.models.size() && !meets_requirement(session, options))
      return kCheckFailed;
    context = session.shared_context();
    rows.push_back(evaluate_model(session, options, dataset, tokenizer));
    if (rows.size() == 1) write_files(options, rows.front().evaluation);
    rows.back().evaluation.predictions = {};
  }
  const std::string device = context->info().name;
  if (options.prints_text()) print_table(rows, device, options.data);
  write_json(options.json, to_json(rows, device, options));
  return kOk;
}

void add_squad_options(CLI::App& command, EvalOptions& options) {
  const char* group = "Questions and answers";
  const auto number = [&](const char* name, int& value, const char* text) {
    positive(command, name, value, text)->group(group);
  };
  number("--max-seq-length", options.evaluate.features.max_seq_length,
         "Tokens of a window, question and separators included");
  number("--doc-stride", options.evaluate.features.doc_stride, "Tokens from window to window");
  number("--max-query-length", options.evaluate.features.max_query_length,
         "Tokens of the question that are kept");
  number("--n-best", options.evaluate.predictions.n_best_size,
         "Start and end positions of a window that are considered");
  number("--max-answer-length", options.evaluate.predictions.max_answer_length,
         "Tokens of the longest answer");
  any_number(command, "--null-threshold", options.evaluate.predictions.null_score_diff_threshold,
             "SQuAD v2.0: no answer where the null odds are above this", "X")
      ->group(group);
}

}  // namespace

void add_eval(CLI::App& program, Action& action) {
  const auto options = std::make_shared<EvalOptions>();
  CLI::App* command = add_model_command(
      program, "eval",
      "Measure EM and F1 of models on a SQuAD data set, and their speed\n\n"
      "Each model answers every question of the file (SQuAD v1.1 or v2.0) on the same device; the\n"
      "scores are those of the official scripts. Shown side by side: precision, size, EM, F1, "
      "time\n"
      "and tokens per second (real tokens, without padding).",
      "bertcl eval int8.onnx --compare models/minilm-l6-squad/model.onnx --data "
      "data/sample-v2.0.json",
      *options);
  command->add_option("MODEL", options->models, "ONNX models with a question-answering head")
      ->required()
      ->type_name("");
  command
      ->add_option("--compare", options->compare, "A further model, shown beside MODEL; repeatable")
      ->type_name("MODEL")
      ->allow_extra_args(false);
  command->add_option("--data", options->data, "SQuAD file")->required()->type_name("FILE");
  add_vocabulary_options(*command, options->vocabulary);
  not_negative(*command, "--limit", options->limit, "Only the first N questions; 0 is all");
  positive(*command, "--batch-tokens", options->evaluate.batches.max_tokens,
           "Tokens of a batch at most");
  one_of(command->add_option("--task", options->task, "Task of the data"), {"squad"});
  command
      ->add_option("--predictions", options->predictions,
                   "Write id -> answer of the first model, for the official scripts")
      ->type_name("FILE");
  command
      ->add_option("--null-odds", options->null_odds,
                   "Write id -> null odds of the first model (SQuAD v2.0)")
      ->type_name("FILE");
  command->add_option("--nbest", options->nbest, "Write the n-best lists of the first model")
      ->type_name("FILE");
  add_squad_options(*command, *options);
  command->callback([options, &action] { action = [options] { return run_eval(*options); }; });
}

}  // namespace bertcl::tools
