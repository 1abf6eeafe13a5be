// SPDX-License-Identifier: Apache-2.0
// Tasks other than SQuAD of the public interface: a session as the function that tasks/ calls.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/boundary.hpp"
#include "api/evaluation.hpp"
#include "api/session_impl.hpp"
#include "api/tensor_data.hpp"
#include "api/tokenizer_impl.hpp"
#include "bertcl/evaluate.hpp"
#include "onnx/read_model.hpp"
#include "runtime/pooling.hpp"
#include "squad/dataset.hpp"
#include "tasks/embedding_files.hpp"
#include "tasks/evaluate.hpp"
#include "tasks/head_output.hpp"
#include "tasks/model_config.hpp"
#include "tasks/question_paragraphs.hpp"
#include "tasks/readers.hpp"
#include "text/companion_files.hpp"

namespace bertcl {
namespace {

/// What the session's file says where the options do not; nothing of a model in memory.
TaskOptions completed(TaskOptions options, const Session& session) {
  const std::filesystem::path model = SessionAccess::of(session).path();
  if (!std::filesystem::exists(model)) return options;
  const tasks::ModelConfig config =
      tasks::read_model_config(text::companion_file(model, "config.json"));
  if (!options.multi_label) options.multi_label = config.multi_label;
  if (!options.labels.empty()) return options;
  const auto metadata = onnx_io::read_metadata(model);
  const auto classes = metadata.find(tasks::kClassNamesKey);
  options.labels = classes == metadata.end()
                       ? config.labels
                       : tasks::parse_class_names(classes->second,
                                                  model.string() + ": " + tasks::kClassNamesKey);
  return options;
}

/// What is known of a session that gives vectors of texts.
struct Embedding {
  bool pooled = false;
  tasks::EmbeddingFiles files;  ///< beside its file
};

Embedding embedding_of(const Session& session) {
  const std::vector<Port>& outputs = session.info().outputs;
  Embedding embedding;
  embedding.pooled = outputs.size() == 1 && outputs[0].name == runtime::pooled_output;
  const std::filesystem::path model = SessionAccess::of(session).path();
  if (embedding.pooled && std::filesystem::exists(model))
    embedding.files = tasks::read_embedding_files(model);
  return embedding;
}

std::unique_ptr<tasks::Task> load_items(std::string_view task, const std::filesystem::path& data,
                                        const TaskOptions& options, const Tokenizer& tokenizer,
                                        const Embedding& embedding) {
  if (task == "classify")
    return tasks::classify_task(tasks::read_classified(data),
                                tasks::holds_movie_reviews(data) ? "reviews" : "texts",
                                options.labels, options.multi_label);
  if (task == "tag") {
    tasks::check_tags_are_known(options.labels);
    return tasks::tagging_task(tasks::read_tagged(data), options.labels);
  }
  if (task == "fill-mask")
    return tasks::masked_task(data.extension() == ".json"
                                  ? tasks::without_ids(squad::load_dataset(data).contexts)
                                  : tasks::read_named_texts(data),
                              static_cast<std::size_t>(tokenizer.size()));
  if (task == "similarity")
    return tasks::similarity_task(tasks::read_scored_pairs(data), embedding.pooled);
  if (task == "retrieval") {
    if (!embedding.pooled)
      throw Error(
          "retrieval compares vectors of texts: load the session with "
          "SessionOptions::pooling");
    return tasks::retrieval_task(tasks::answered_questions(squad::load_dataset(data)),
                                 embedding.files.retrieval_prompts());
  }
  if (task == "reranking")
    return tasks::reranking_task(tasks::answered_questions(squad::load_dataset(data)));
  throw Error("unknown task '" + std::string(task) +
              "' (choose from classify, tag, fill-mask, similarity, retrieval, reranking; "
              "for questions use evaluate_squad())");
}

std::string output_of(const ModelInfo& info, const tasks::Head& head) {
  std::vector<tasks::ModelOutput> outputs;
  for (const Port& port : info.outputs) {
    tasks::ModelOutput& output = outputs.emplace_back();
    output.name = port.name;
    output.is_float = ir::is_float(to_runtime(port.type));
    std::string extents;
    for (const std::int64_t extent : port.shape) {
      output.shape.push_back(std::max<std::int64_t>(0, extent));
      extents += (extents.empty() ? "" : ", ") + (extent < 0 ? "?" : std::to_string(extent));
    }
    output.description = port.name + " " + std::string(name_of(port.type)) + "[" + extents + "]";
  }
  try {
    return tasks::find_output(outputs, head);
  } catch (const Error& error) {
    throw Error(error.what(), ErrorCode::unsupported);
  }
}

/// [tokens, classes] as [batch, seq, classes]; an output for each text as it is.
std::vector<float> batch_values(const Tensor& tensor, const text::Batch& batch, bool by_token) {
  std::vector<float> values = floats(tensor);
  const auto classes = values.size() / static_cast<std::size_t>(tensor.shape().front());
  if (!by_token) {
    values.resize(static_cast<std::size_t>(batch.batch) * classes);
    return values;
  }
  std::vector<float> rows(batch.input_ids.size() * classes);
  auto from = values.begin();
  for (std::size_t i = 0; i < batch.input_ids.size(); ++i) {
    if (batch.attention_mask[i] == 0) continue;
    std::copy_n(from, classes, rows.begin() + static_cast<std::ptrdiff_t>(i * classes));
    from += static_cast<std::ptrdiff_t>(classes);
  }
  return rows;
}

EvaluationRow row_of(const tasks::Evaluation& evaluation) {
  EvaluationRow row;
  for (const tasks::Metric& metric : evaluation.metrics)
    row.metrics.emplace_back(metric.name, metric.value);
  row.total = evaluation.items;
  row.features = evaluation.sequences;
  row.tokens = evaluation.tokens;
  row.tokens_padded = evaluation.tokens_padded;
  row.truncated = evaluation.items_cut;
  row.seconds = evaluation.total_seconds;
  row.model_seconds = evaluation.model_seconds;
  return row;
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
  for (const auto& [id, value] : predictions.items()) scores.predictions[id] = dump(value);
  return scores;
}

}  // namespace

TaskScores evaluate_task(const Session& session, const Tokenizer& tokenizer, std::string_view task,
                         const std::filesystem::path& data, const TaskOptions& options,
                         const TaskProgress& progress) {
  return at_boundary([&] {
    const ModelInfo& info = session.info();
    const Embedding embedding = embedding_of(session);
    const auto items = load_items(task, data, completed(options, session), tokenizer, embedding);
    const tasks::Head& head = items->head();
    const RunOptions wanted{{output_of(info, head)}};
    tasks::EvaluateOptions all;
    all.encode = {options.max_length > 0
                      ? options.max_length
                      : embedding.files.longest_text(static_cast<int>(info.max_length)),
                  options.windows, embedding.files.lower_case};
    check_sizes(info, tokenizer, all.encode.max_length);
    all.batches = tasks::usual_batches(head);
    if (options.batch_tokens > 0) all.batches.max_tokens = options.batch_tokens;
    bound(all.batches, info);
    all.origin = data.string();
    all.allow_nonfinite = options.allow_nonfinite;
    const auto model = [&](const text::Batch& batch) {
      const Tensors outputs = session.run(unpadded(batch, info), wanted);
      return batch_values(outputs.at(wanted.outputs[0]), batch, head.by_token);
    };
    const auto tell = [&](const tasks::Progress& now) {
      if (progress && !progress(now.sequences, now.sequences_total))
        throw Error("the evaluation was cancelled", ErrorCode::cancelled);
    };
    const tasks::Evaluation evaluation =
        tasks::evaluate(*items, TokenizerAccess::of(tokenizer), all, model, tell, options.limit);
    TaskScores scores = scores_of(evaluation);
    scores.json = dump(to_json(row_of(evaluation), session, task, data));
    return scores;
  });
}

}  // namespace bertcl
