// SPDX-License-Identifier: Apache-2.0
// Texts are tokenized, run in batches of similar length, and scored.
#include "tasks/evaluate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <span>
#include <utility>

#include "bertcl/error.hpp"

namespace bertcl::tasks {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Values of one row, padding included. Throws Error if the output does not fit the head.
std::size_t row_size(const Head& head, const text::Batch& batch, std::size_t values) {
  const auto rows = static_cast<std::size_t>(batch.batch);
  const std::size_t tokens = head.by_token ? static_cast<std::size_t>(batch.seq) : 1;
  const std::size_t classes = values / (rows * tokens);
  const bool fits = values == rows * tokens * classes &&
                    (head.or_more ? classes >= head.classes : classes == head.classes);
  if (!fits) {
    throw Error(fmt::format(
        "the model returned {} values for a batch of [{}, {}]; the task needs "
        "{} for each {}",
        values, batch.batch, batch.seq, head.meaning, head.by_token ? "token" : "text"));
  }
  return tokens * classes;
}

}  // namespace

Evaluation evaluate(const Task& task, const text::WordPieceTokenizer& tokenizer,
                    const EvaluateOptions& options, const OutputFn& model,
                    const ProgressFn& progress, std::size_t limit) {
  const auto begin = Clock::now();
  Evaluation evaluation;
  evaluation.items = limit == 0 ? task.size() : std::min(limit, task.size());
  evaluation.results = task.results(evaluation.items, tokenizer);

  std::vector<Sequence> sequences;
  std::vector<std::size_t> items, lengths;  // [sequences]
  for (std::size_t item = 0; item < evaluation.items; ++item) {
    bool cut = false;
    for (Sequence& sequence : task.encode(item, tokenizer, options.encode)) {
      cut = cut || sequence.cut > 0;
      items.push_back(item);
      lengths.push_back(sequence.length());
      sequences.push_back(std::move(sequence));
    }
    evaluation.items_cut += cut ? 1 : 0;
  }
  evaluation.sequences = sequences.size();
  evaluation.tokens_padded = sequences.size() * static_cast<std::size_t>(options.encode.max_length);

  std::size_t done = 0;
  for (const std::vector<std::size_t>& group : text::group_by_length(lengths, options.batches)) {
    std::vector<text::Row> rows;
    for (const std::size_t index : group)
      rows.push_back({sequences[index].ids, sequences[index].second});
    const text::Batch batch = text::make_batch(rows);
    const auto before = Clock::now();
    const std::vector<float> output = model(batch);
    evaluation.model_seconds += seconds_since(before);
    const std::size_t row = row_size(task.head(), batch, output.size());
    for (std::size_t i = 0; i < group.size(); ++i) {
      const std::size_t index = group[i];
      const std::size_t used =
          task.head().by_token ? row / static_cast<std::size_t>(batch.seq) * lengths[index] : row;
      const auto own = std::span(output).subspan(i * row, used);
      if (!std::all_of(own.begin(), own.end(), [](float value) { return std::isfinite(value); }))
        throw Error(fmt::format("the model's output for item {} is not finite", items[index]));
      evaluation.results->add(items[index], sequences[index], own);
      evaluation.tokens += lengths[index];
    }
    done += group.size();
    if (progress) progress({done, sequences.size(), evaluation.tokens, evaluation.model_seconds});
  }
  evaluation.metrics = evaluation.results->metrics();
  evaluation.total_seconds = seconds_since(begin);
  return evaluation;
}

}  // namespace bertcl::tasks
