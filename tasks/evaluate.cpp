// SPDX-License-Identifier: Apache-2.0
// Texts are tokenized, run in batches of similar length, and scored.
#include "tasks/evaluate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "support/fail.hpp"
#include "support/option_name.hpp"
#include "support/stopwatch.hpp"

namespace bertcl::tasks {
namespace {

/// The sequences of the items, one after another.
struct Encoded {
  std::vector<Sequence> sequences;
  std::vector<std::size_t> items;  // [sequences]
  std::size_t items_cut = 0;
};

Encoded encode_items(const Task& task, const text::Tokenizer& tokenizer,
                     const EvaluateOptions& options, std::size_t count) {
  Encoded encoded;
  for (std::size_t item = 0; item < count; ++item) {
    bool cut = false;
    for (Sequence& sequence : task.encode(item, tokenizer, options.encode)) {
      cut = cut || sequence.cut > 0;
      encoded.items.push_back(item);
      encoded.sequences.push_back(std::move(sequence));
    }
    encoded.items_cut += cut ? 1 : 0;
  }
  if (encoded.sequences.empty())
    fail("{}: nothing to score: no word pieces in the {} {} read", options.origin, count,
         task.unit());
  return encoded;
}

}  // namespace

Evaluation evaluate(const Task& task, const text::Tokenizer& tokenizer,
                    const EvaluateOptions& options, const text::RunBatchFn& model,
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

  const auto take = [&](std::size_t index, std::span<const float> output) {
    if (!options.allow_nonfinite && !text::all_finite(output))
      throw text::NonfiniteOutput(
          fmt::format("the model returned NaN or infinite values for item {} of the data, "
                      "counted from 0; {} continues",
                      encoded.items[index], option_name("allow-nonfinite")),
          encoded.items[index]);
    evaluation.results->add(encoded.items[index], sequences[index], output);
  };
  const auto tell = [&](const text::Done& done) {
    if (progress) progress({done.rows, sequences.size(), done.tokens, done.seconds});
  };
  const text::Done done =
      text::run_rows(rows_of(sequences), task.head(), options.batches, model, take, tell);
  evaluation.tokens = done.tokens;
  evaluation.model_seconds = done.seconds;
  evaluation.metrics = evaluation.results->metrics();
  evaluation.total_seconds = clock.seconds();
  return evaluation;
}

}  // namespace bertcl::tasks
