// SPDX-License-Identifier: Apache-2.0
// Tasks other than SQuAD of the public interface.
#include <nlohmann/json.hpp>

#include "api/boundary.hpp"
#include "api/check_not_negative.hpp"
#include "api/evaluation.hpp"
#include "api/session_impl.hpp"
#include "api/tokenizer_impl.hpp"
#include "bertcl/evaluate.hpp"
#include "runtime/pooling.hpp"
#include "support/json_text.hpp"
#include "tasks/head_output.hpp"
#include "tasks/load.hpp"
#include "tasks/model_files/embedding_files.hpp"
#include "tasks/model_files/model_config.hpp"
#include "text/base/companion_files.hpp"

namespace bertcl {
namespace {

/// The options, with what the session's model and the files beside it say where they do not.
tasks::TaskData data_of(std::string_view task, const std::filesystem::path& data,
                        const TaskOptions& options, const Session& session) {
  tasks::TaskData all{std::string(task), data, options.labels, options.multi_label};
  const std::filesystem::path model = SessionAccess::file(session);
  if (all.labels.empty())
    all.labels = tasks::find_class_names(session.info().metadata, model).names;
  if (!all.multi_label && !model.empty())
    all.multi_label =
        tasks::read_model_config(text::companion_file(model, "config.json")).multi_label;
  return all;
}

/// What is known of a session that gives vectors of texts.
struct Embedding {
  bool pooled = false;
  tasks::EmbeddingFiles files;  ///< beside its file
};

Embedding embedding_of(const Session& session) {
  const std::vector<Port>& outputs = session.info().outputs;
  Embedding embedding;
  embedding.pooled = outputs.size() == 1 && outputs[0].name == runtime::kPooledOutput;
  const std::filesystem::path model = SessionAccess::file(session);
  if (!std::filesystem::exists(model)) return embedding;
  embedding.files.max_length = tasks::declared_length(model);
  if (embedding.pooled) embedding.files = tasks::read_embedding_files(model);
  return embedding;
}

std::unique_ptr<tasks::Task> load_items(tasks::TaskData data, const Tokenizer& tokenizer,
                                        const Embedding& embedding) {
  if (data.name == tasks::kQuestionAnswering)
    throw Error("evaluate_task() does not score questions; use evaluate_squad()");
  if (data.name == tasks::kTag) tasks::check_tags_are_known(data.labels);
  if (data.name == tasks::kRetrieval && !embedding.pooled)
    throw Error(
        "retrieval compares vectors of texts: load the session with SessionOptions::pooling");
  data.embeds = embedding.pooled;
  if (data.name == tasks::kRetrieval) data.prompts = embedding.files.retrieval_prompts();
  return tasks::load_task(data, static_cast<std::size_t>(tokenizer.size()));
}

TaskScores scores_of(const tasks::Evaluation& evaluation) {
  TaskScores scores;
  for (const tasks::Metric& metric : evaluation.metrics)
    scores.metrics.emplace_back(metric.name, metric.value);
  scores.items = evaluation.items;
  scores.sequences = evaluation.sequences;
  scores.tokens = evaluation.tokens;
  scores.truncated = evaluation.items_cut;
  scores.model_seconds = evaluation.model_seconds;
  scores.seconds = evaluation.total_seconds;
  const nlohmann::ordered_json predictions = evaluation.results->predictions();
  for (const auto& [id, value] : predictions.items()) scores.predictions[id] = json_text(value);
  return scores;
}

}  // namespace

TaskScores evaluate_task(const Session& session, const Tokenizer& tokenizer, std::string_view task,
                         const std::filesystem::path& data, const TaskOptions& options,
                         const TaskProgress& progress) {
  return translate_exceptions([&] {
    check_not_negative("max-length", options.max_length, "what the model takes");
    check_not_negative("batch-tokens", options.batch_tokens, "as many as suit the task");
    const Embedding embedding = embedding_of(session);
    const auto items = load_items(data_of(task, data, options, session), tokenizer, embedding);
    tasks::EvaluateOptions all;
    all.encode = {options.max_length > 0
                      ? options.max_length
                      : tasks::longest_text(embedding.files.max_length, session.info().max_length),
                  options.windows, embedding.files.lower_case};
    all.batches = tasks::usual_batches(items->head());
    if (options.batch_tokens > 0) all.batches.max_tokens = options.batch_tokens;
    all.origin = data.string();
    all.allow_nonfinite = options.allow_nonfinite;
    const tasks::Evaluation evaluation =
        run_task(session, TokenizerAccess::of(tokenizer), *items, all, progress, options.limit);
    TaskScores scores = scores_of(evaluation);
    scores.json = report_of(evaluation, session, task, data);
    return scores;
  });
}

}  // namespace bertcl
