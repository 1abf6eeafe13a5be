// SPDX-License-Identifier: Apache-2.0
// Texts are tokenized, run in batches of similar length, and scored.
#include "tasks/evaluate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "bertcl/error.hpp"
#include "support/stopwatch.hpp"

namespace bertcl::tasks {
namespace {

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

/// The sequences of the items, one after another.
struct Encoded {
  std::vector<Sequence> sequences;
  std::vector<std::size_t> items, lengths;  // [sequences]
  std::size_t items_cut = 0;
};

Encoded encode_items(const Task& task, const text::WordPieceTokenizer& tokenizer,
                     const EvaluateOptions& options, std::size_t count) {
  Encoded encoded;
  for (std::size_t item = 0; item < count; ++item) {
    bool cut = false;
    for (Sequence& sequence : task.encode(item, tokenizer, options.encode)) {
      cut = cut || sequence.cut > 0;
      encoded.items.push_back(item);
      encoded.lengths.push_back(sequence.length());
      encoded.sequences.push_back(std::move(sequence));
    }
    encoded.items_cut += cut ? 1 : 0;
  }
  if (encoded.sequences.empty())
    throw Error(fmt::format("{}: nothing to score: no word pieces in the {} {} read",
                            options.origin, count, task.unit()));
  return encoded;
}

}  // namespace

Evaluation evaluate(const Task& task, const text::WordPieceTokenizer& tokenizer,
                    const EvaluateOptions& options, const OutputFn& model,
                    const ProgressFn& progress, std::size_t limit) {
  const Stopwatch clock;
  Evaluation evaluation;
  evaluation.items = limit == 0 ? task.size() : std::min(limit, task.size());
  evaluation.results = task.results(evaluation.items, tokenizer);

  const Encoded encoded = encode_items(task, tokenizer, options, evaluation.items);
  const std::vector<Sequence>& sequences = encoded.sequences;
  evaluation.items_cut = encoded.items_cut;
  evaluation.sequences = sequences.size();
  evaluation.tokens_padded = sequences.size() * static_cast<std::size_t>(options.encode.max_length);

  std::size_t done = 0;
  for (const std::vector<std::size_t>& group :
       text::group_by_length(encoded.lengths, options.batches)) {
    std::vector<text::Row> rows;
    for (const std::size_t index : group)
      rows.push_back({sequences[index].ids, sequences[index].second});
    const text::Batch batch = text::make_batch(rows);
    const Stopwatch model_clock;
    const std::vector<float> output = model(batch);
    evaluation.model_seconds += model_clock.seconds();
    const std::size_t row = row_size(task.head(), batch, output.size());
    for (std::size_t i = 0; i < group.size(); ++i) {
      const std::size_t index = group[i];
      const std::size_t used = task.head().by_token ? row / static_cast<std::size_t>(batch.seq) *
                                                          sequences[index].length()
                                                    : row;
      const auto own = std::span(output).subspan(i * row, used);
      if (!options.allow_nonfinite &&
          !std::all_of(own.begin(), own.end(), [](float value) { return std::isfinite(value); }))
        throw Error(
            fmt::format("the model returned NaN or infinite values for item {} of the data, "
                        "counted from 0; --allow-nonfinite continues",
                        encoded.items[index]));
      evaluation.results->add(encoded.items[index], sequences[index], own);
      evaluation.tokens += sequences[index].length();
    }
    done += group.size();
    if (progress) progress({done, sequences.size(), evaluation.tokens, evaluation.model_seconds});
  }
  evaluation.metrics = evaluation.results->metrics();
  evaluation.total_seconds = clock.seconds();
  return evaluation;
}

}  // namespace bertcl::tasks
