// SPDX-License-Identifier: Apache-2.0
// Windows in batches, and the calls of the model.
#include "squad/batch.hpp"

#include "support/fail.hpp"
#include "support/stopwatch.hpp"

namespace bertcl::squad {

std::vector<std::vector<std::size_t>> group_by_length(std::span<const Feature> features,
                                                      const BatchOptions& options) {
  std::vector<std::size_t> lengths;
  for (const Feature& feature : features) lengths.push_back(feature.length());
  return text::group_by_length(lengths, options);
}

Batch make_batch(std::span<const Feature> features, std::span<const std::size_t> indexes) {
  std::vector<text::Row> inputs;
  for (const std::size_t index : indexes)
    inputs.push_back({features[index].input_ids, features[index].second});
  return text::make_batch(inputs);
}

std::vector<Logits> run_model(std::span<const Feature> features, const BatchOptions& options,
                              const LogitsFn& model, const AfterBatchFn& after_batch) {
  std::vector<Logits> result(features.size());
  for (const std::vector<std::size_t>& indexes : group_by_length(features, options)) {
    const Batch batch = make_batch(features, indexes);
    const Stopwatch clock;
    const Logits logits = model(batch);
    const double elapsed = clock.seconds();
    const std::size_t expected = batch.input_ids.size();
    if (logits.start.size() != expected || logits.end.size() != expected) {
      fail(
          "the model returned {} start and {} end logits for a batch of "
          "[{}, {}]; a question-answering head gives {} of each",
          logits.start.size(), logits.end.size(), batch.batch, batch.seq, expected);
    }
    for (std::size_t row = 0; row < indexes.size(); ++row) {
      const auto first = static_cast<std::ptrdiff_t>(row * static_cast<std::size_t>(batch.seq));
      const auto length = static_cast<std::ptrdiff_t>(features[indexes[row]].length());
      Logits& own = result[indexes[row]];
      own.start.assign(logits.start.begin() + first, logits.start.begin() + first + length);
      own.end.assign(logits.end.begin() + first, logits.end.begin() + first + length);
    }
    if (after_batch) after_batch(indexes, elapsed);
  }
  return result;
}

}  // namespace bertcl::squad
