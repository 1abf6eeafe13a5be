// SPDX-License-Identifier: Apache-2.0
// bertcl eval: scores and times of models on a data set, side by side.
#include "tools/commands/eval.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>

#include "bertcl/error.hpp"
#include "support/fail.hpp"
#include "support/option_checks.hpp"
#include "support/pending_file.hpp"
#include "tasks/model_files/model_config.hpp"
#include "text/base/data_file.hpp"
#include "tools/measure/kernel_profile.hpp"
#include "tools/options/file_options.hpp"
#include "tools/options/json_report.hpp"
#include "tools/options/pooling_options.hpp"
#include "tools/terminal/output.hpp"

namespace bertcl::tools {
namespace {

/// Throws Error if an option was given that the task has no use for.
void check_task(const EvalOptions& options) {
  const std::string& task = options.task.name;
  const auto refuse = [&](bool given, const char* option,
                          std::initializer_list<const char*> tasks) {
    if (given && std::ranges::find(tasks, task) == tasks.end())
      fail("{} is for --task {}, not {}", option, fmt::join(tasks, " or "), task);
  };
  refuse(!options.null_odds.empty(), "--null-odds", {kQuestionAnswering});
  refuse(!options.nbest.empty(), "--nbest", {kQuestionAnswering});
  for (const std::string& name : options.squad_only)
    refuse(true, name.c_str(), {kQuestionAnswering});
  refuse(options.windows, "--windows", {kClassify});
  check_labels(options.task);
}

/// "2,000 reviews of movie_reviews.zip on ..", and what was cut; for each model, where they differ
/// in that.
std::string head_of(const std::vector<EvaluatedModel>& models, const std::string& unit,
                    const EvalOptions& options, const std::string& device) {
  const EvaluatedModel& first = models.front();
  std::string text =
      fmt::format("{} of {} on {}", counted(static_cast<std::int64_t>(first.total), unit),
                  text::data_name(options.task.data), device);
  std::vector<std::filesystem::path> paths;
  std::set<std::pair<std::size_t, std::size_t>> cuts;
  for (const EvaluatedModel& model : models) {
    paths.push_back(model.path);
    cuts.emplace(model.truncated.value_or(0), model.max_length);
  }
  for (std::size_t i = 0; i < (cuts.size() == 1 ? 1 : models.size()); ++i) {
    const std::size_t cut = models[i].truncated.value_or(0);
    if (cut == 0) continue;
    text += fmt::format("\n{}{} of them {} longer than {} tokens and truncated",
                        cuts.size() == 1 ? "" : short_names(paths)[i] + ": ",
                        grouped(static_cast<std::int64_t>(cut)), cut == 1 ? "is" : "are",
                        models[i].max_length);
    if (options.task.name == kClassify) text += "; use --windows to read them in full";
  }
  return text;
}

constexpr std::int64_t kProfiledTokens = 2048;
constexpr int kProfiledRuns = 3;

/// Times the kernels for a batch of sequences of the mean length; of the file's own size where it
/// fixes one.
void profile(runtime::Session& session, std::int64_t vocabulary, EvaluatedModel& row) {
  const std::size_t sequences = std::max<std::size_t>(1, row.features);
  const auto seq = static_cast<int>(std::max<std::size_t>(1, row.tokens / sequences));
  const auto batch = static_cast<int>(
      std::clamp<std::int64_t>(kProfiledTokens / seq, 1, static_cast<std::int64_t>(sequences)));
  BatchSize size;
  try {
    size = batch_size(session, batch, seq);
  } catch (const Error&) {
    size = batch_size(session, std::nullopt, std::nullopt);
  }
  // Added tokens may lie beyond the table.
  const std::int64_t rows = session.plan().word_rows;
  const runtime::Tensors inputs =
      random_inputs(session, size, rows > 0 ? std::min(rows, vocabulary) : vocabulary);
  row.kernels = profile_kernels(session, inputs, size.batch, size.seq, kProfiledRuns);
  row.profiled_batch = size.batch;
  row.profiled_seq = size.seq;
}

/// Retrieval compares vectors, similarity where the files of sentence-transformers pool.
bool embeds(const EvalOptions& options, const tasks::EmbeddingFiles& files) {
  return options.task.name == kRetrieval ||
         (options.task.name == kSimilarity && !files.pooling.empty());
}

/// How a model reads texts: by the files beside it, where the options do not say.
struct TextFiles {
  std::shared_ptr<const text::Tokenizer> tokenizer;
  tasks::EmbeddingFiles embedding;
};

/// A model without a tokenizer takes that of the first that has one.
std::vector<TextFiles> read_text_files(const EvalOptions& options,
                                       const std::vector<std::filesystem::path>& models) {
  const auto load = [&](const std::vector<std::filesystem::path>& owners) {
    return std::make_shared<const text::Tokenizer>(
        options.task.is_squad() ? load_squad_tokenizer(options.vocabulary, owners)
                                : load_tokenizer(options.vocabulary, owners));
  };
  std::shared_ptr<const text::Tokenizer> of_all;
  if (!options.vocabulary.vocabulary.empty()) of_all = load(models);
  std::map<std::filesystem::path, TextFiles> folders;
  std::vector<TextFiles> all;
  for (const std::filesystem::path& model : models) {
    TextFiles& files = folders[model.parent_path()];
    if (!files.tokenizer) {
      std::vector<std::filesystem::path> owners = {model};
      std::ranges::remove_copy(models, std::back_inserter(owners), model);
      files.tokenizer = of_all ? of_all : load(owners);
      if (options.task.name == kRetrieval || options.task.name == kSimilarity)
        files.embedding = tasks::read_embedding_files(model);
      if (!embeds(options, files.embedding)) {
        files.embedding = {};
        files.embedding.max_length = tasks::declared_length(model);
      }
    }
    all.push_back(files);
  }
  return all;
}

/// The model whose prompts all take: the first with such files, else the first.
std::size_t owner_of_prompts(const std::vector<TextFiles>& files) {
  const auto found = std::ranges::find_if(
      files, [](const TextFiles& own) { return !own.embedding.folder.empty(); });
  return found == files.end() ? 0 : static_cast<std::size_t>(found - files.begin());
}

/// Throws Error where models would have to share what the files beside them give differently.
void check_shared(const EvalOptions& options, const std::vector<std::filesystem::path>& models,
                  const std::vector<TextFiles>& files) {
  const auto refuse = [&](std::size_t first, std::size_t model, std::string_view what) {
    fail("{} and {} have different {}; evaluate them separately", models[first].string(),
         models[model].string(), what);
  };
  const std::size_t owner = owner_of_prompts(files);
  for (std::size_t i = 1; i < models.size(); ++i) {
    if (options.task.name == kFillMask &&
        files[i].tokenizer->tokens_from(0) != files[0].tokenizer->tokens_from(0))
      refuse(0, i, "vocabularies, but the same tokens are hidden for all models");
    if (options.task.name == kRetrieval && !files[i].embedding.folder.empty() &&
        files[i].embedding.retrieval_prompts() != files[owner].embedding.retrieval_prompts())
      refuse(owner, i, "prompts in config_sentence_transformers.json");
  }
}

int run_eval(EvalOptions& options) {
  check_task(options);
  std::vector<std::filesystem::path> paths(options.models.begin(), options.models.end());
  paths.insert(paths.end(), options.compare.begin(), options.compare.end());
  for (const std::filesystem::path& path : paths) check_readable(path);
  const std::vector<TextFiles> files = read_text_files(options, paths);
  check_shared(options, paths, files);
  options.task.embeds = embeds(options, files[0].embedding);
  if (options.task.name == kRetrieval)
    options.task.prompts = files[owner_of_prompts(files)].embedding.retrieval_prompts();
  const EvalData data =
      options.task.is_squad()
          ? load_questions(options)
          : EvalData{load_task(options.task, paths, *files[0].tokenizer), nullptr};

  std::vector<EvaluatedModel> rows;
  std::shared_ptr<opencl::Context> context;  // one device for all models, one model at a time
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const std::filesystem::path& path = paths[i];
    const text::Tokenizer& tokenizer = *files[i].tokenizer;
    options.embedding = files[i].embedding;
    if (options.task.embeds) options.pooling = pooling_of({}, tasks::read_embedding_files(path));
    runtime::Session session = load_model(path, options, context);
    // What MODEL is compared with may be float.
    if (rows.size() < options.models.size() && !meets_requirement(session, options))
      return kCheckFailed;
    context = session.shared_context();
    rows.push_back(evaluate_model(session, options, data, tokenizer, rows.empty()));
    if (!options.html.empty())
      profile(session, static_cast<std::int64_t>(tokenizer.vocabulary_size()), rows.back());
  }
  compare_with_first(rows);
  const std::string device = context->info().name;
  const std::string head = head_of(rows, data.task->unit(), options, device);
  if (options.prints_text()) print_evaluation(rows, head);
  nlohmann::ordered_json report = {
      {"data", options.task.data}, {"task", options.task.name}, {"models", to_json(rows)}};
  if (!options.html.empty()) {
    const EvalDetails details =
        eval_details(rows, data.dataset ? texts_of(data.dataset) : ItemTexts());
    report.update(to_json(details, rows));
    write_file(options.html, eval_page(rows, details, head));
  }
  write_report(options, context->info(), report);
  return kOk;
}

constexpr const char* kSquadGroup = "Questions and answers";

/// Names of the options of that group that were given.
std::vector<std::string> given_of_squad(CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options())
    if (option->get_group() == kSquadGroup && option->count() > 0)
      names.push_back(option->get_name());
  return names;
}

void add_squad_options(CLI::App& command, EvalOptions& options) {
  const OptionGroup group(command, kSquadGroup);
  const auto number = [&](const char* name, int& value, const char* text) {
    positive(command, name, value, text);
  };
  number("--doc-stride", options.questions.features.doc_stride, "Step between windows, in tokens");
  number("--max-query-length", options.questions.features.max_query_length,
         "Longest question, in tokens; the rest is truncated");
  number("--n-best", options.questions.predictions.n_best_size,
         "Start and end positions considered per window");
  number("--max-answer-length", options.questions.predictions.max_answer_length,
         "Longest answer, in tokens");
  any_number(command, "--null-threshold", options.questions.predictions.null_score_diff_threshold,
             "SQuAD v2.0: no answer if the null odds (null score - the best answer's) exceed X",
             "X");
}

}  // namespace

void add_eval(CLI::App& program, Action& action) {
  const auto options = std::make_shared<EvalOptions>();
  CLI::App* command = add_model_command(
      program, "eval",
      "Measure EM and F1 of models on SQuAD, or the scores of other tasks, and their speed\n\n"
      "Each model answers every question of the file on the same device; the scores are those of "
      "the official scripts. Shown side by side: precision, size, scores, time and tokens per "
      "second (real tokens, without padding). Tasks, by --task, and their data, recognized by "
      "their content; each may also be JSON lines, and - is standard input:\n"
      "  question-answering  SQuAD v1.1 or v2.0: EM and F1\n"
      "  classify            text, tab, class; a .csv; or movie reviews (a .zip or folder with\n"
      "                      neg/*.txt and pos/*.txt): accuracy and macro F1\n"
      "  tag                 CoNLL, a word and its tag a line: F1, precision, recall of entities\n"
      "  fill-mask           lines of any text, 15 % of whose tokens are hidden: accuracy\n"
      "  similarity          two texts and a score, .csv or .tsv: Pearson's and Spearman's\n"
      "                      correlation\n"
      "  retrieval           SQuAD: a question finds its paragraph by vectors: NDCG, MRR, recall\n"
      "  reranking           SQuAD: a cross-encoder orders what BM25 finds: MRR",
      "bertcl eval int8.onnx --compare models/minilm-l6-squad/model.onnx --data "
      "data/sample-v2.0.json",
      *options);
  model_file(command->add_option("MODEL", options->models, "ONNX models with a head for the task"))
      ->required();
  model_file(command->add_option("--compare", options->compare,
                                 "Another model to compare with MODEL; repeatable"))
      ->type_name("MODEL")
      ->allow_extra_args(false);
  add_task_options(*command, options->task, tasks::kEvaluatedTasks,
                   "Evaluation data: a SQuAD file, or a file of the task given by --task")
      ->required();
  add_vocabulary_options(*command, options->vocabulary);
  not_negative(*command, "--limit", options->limit,
               "Only the first N questions or texts; 0 is all");
  positive(*command, "--batch-tokens", options->batch_tokens,
           "Maximum tokens per batch; by default 4096, for fill-mask 1024");
  positive(*command, "--max-seq-length", options->max_length,
           "Maximum tokens of a sequence, special tokens included; by default 384 for questions, "
           "else as many as the model and its files allow, or 512");
  const auto file = [&](const char* name, std::string& value, const char* text) {
    output_file(command->add_option(name, value, text));
  };
  file("--predictions", options->predictions,
       "Write id -> answer of the first model (id -> label, score or labels)");
  file("--null-odds", options->null_odds, "Write id -> null odds of the first model (SQuAD v2.0)");
  file("--nbest", options->nbest, "Write the n-best lists of the first model");
  output_file(command->add_option("--html", options->html,
                                  "Write one HTML page: scores, answers that differ, F1 by length, "
                                  "kernels, calibrated ranges; --json holds its figures then"),
              OutputFileKind::report);
  add_force_flag(*command, options->force);
  add_squad_options(*command, *options);
  const OptionGroup group(*command, "Other tasks");
  add_labels_option(*command, options->task);
  command->add_flag(
      "--windows", options->windows,
      "Read long texts in full, in windows of equal length, and average their logits");
  command->callback([options, command, &action] {
    options->squad_only = given_of_squad(*command);
    action = [options] { return run_eval(*options); };
  });
}

}  // namespace bertcl::tools
