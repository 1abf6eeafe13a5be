// SPDX-License-Identifier: Apache-2.0
// Batches of similar length, and the rows of their outputs.
#include "tasks/run_sequences.hpp"

#include <algorithm>
#include <cmath>

#include "support/fail.hpp"
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
    fail(
        "the model returned {} values for a batch of [{}, {}]; the task needs "
        "{} for each {}",
        values, batch.batch, batch.seq, head.meaning, head.by_token ? "token" : "text");
  }
  return tokens * classes;
}

}  // namespace

bool all_finite(std::span<const float> values) {
  return std::ranges::all_of(values, [](float value) { return std::isfinite(value); });
}

double run_sequences(std::span<const Sequence> sequences, const Head& head,
                     const text::BatchOptions& batches, const RunBatchFn& model,
                     const OutputVisitor& visit, const BatchDoneFn& batch_done) {
  std::vector<std::size_t> lengths;
  for (const Sequence& sequence : sequences) lengths.push_back(sequence.length());
  std::size_t done = 0;
  double model_seconds = 0.0;
  for (const std::vector<std::size_t>& group : text::group_by_length(lengths, batches)) {
    std::vector<text::Row> inputs;
    for (const std::size_t index : group)
      inputs.push_back({sequences[index].ids, sequences[index].second});
    const text::Batch batch = text::make_batch(inputs);
    const Stopwatch clock;
    const std::vector<float> output = model(batch);
    model_seconds += clock.seconds();
    const std::size_t row = row_size(head, batch, output.size());
    for (std::size_t i = 0; i < group.size(); ++i) {
      const std::size_t used =
          head.by_token ? row / static_cast<std::size_t>(batch.seq) * lengths[group[i]] : row;
      visit(group[i], std::span(output).subspan(i * row, used));
    }
    done += group.size();
    if (batch_done) batch_done(done, model_seconds);
  }
  return model_seconds;
}

}  // namespace bertcl::tasks
