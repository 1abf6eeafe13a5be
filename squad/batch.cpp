// SPDX-License-Identifier: Apache-2.0
// Grouping of windows by length, padding, and the calls of the model.
#include "squad/batch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>

#include "bertcl/error.hpp"

namespace bertcl::squad {

std::vector<std::vector<std::size_t>> group_by_length(std::span<const Feature> features,
                                                      const BatchOptions& options) {
  if (options.max_tokens < 1 || options.max_batch < 1) {
    throw Error(fmt::format("the bounds of a batch must be at least 1: max_tokens {}, max_batch {}",
                            options.max_tokens, options.max_batch));
  }
  std::vector<std::size_t> order(features.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return features[a].length() > features[b].length();
  });
  std::vector<std::vector<std::size_t>> groups;
  for (const std::size_t index : order) {
    const bool fits = [&] {
      if (groups.empty()) return false;
      const std::size_t rows = groups.back().size() + 1;
      const std::size_t seq = features[groups.back().front()].length();
      return rows <= static_cast<std::size_t>(options.max_batch) &&
             rows * seq <= static_cast<std::size_t>(options.max_tokens);
    }();
    if (!fits) groups.emplace_back();
    groups.back().push_back(index);
  }
  return groups;
}

Batch make_batch(std::span<const Feature> features, std::span<const std::size_t> indexes) {
  std::size_t seq = 0;
  for (const std::size_t index : indexes) seq = std::max(seq, features[index].length());
  Batch batch;
  batch.batch = static_cast<int>(indexes.size());
  batch.seq = static_cast<int>(seq);
  batch.input_ids.assign(indexes.size() * seq, 0);
  batch.attention_mask.assign(indexes.size() * seq, 0);
  batch.token_type_ids.assign(indexes.size() * seq, 0);
  for (std::size_t row = 0; row < indexes.size(); ++row) {
    const Feature& feature = features[indexes[row]];
    for (std::size_t i = 0; i < feature.length(); ++i) {
      batch.input_ids[row * seq + i] = feature.input_ids[i];
      batch.attention_mask[row * seq + i] = 1;
      batch.token_type_ids[row * seq + i] = i >= feature.doc_begin ? 1 : 0;
    }
  }
  return batch;
}

std::vector<Logits> run_model(std::span<const Feature> features, const BatchOptions& options,
                              const LogitsFn& model, const AfterBatchFn& after_batch) {
  using Clock = std::chrono::steady_clock;
  std::vector<Logits> result(features.size());
  for (const std::vector<std::size_t>& indexes : group_by_length(features, options)) {
    const Batch batch = make_batch(features, indexes);
    const auto before = Clock::now();
    const Logits logits = model(batch);
    const std::chrono::duration<double> elapsed = Clock::now() - before;
    const std::size_t expected = batch.input_ids.size();
    if (logits.start.size() != expected || logits.end.size() != expected) {
      throw Error(
          fmt::format("the model returned {} start and {} end logits for a batch of "
                      "[{}, {}]; a question-answering head gives {} of each",
                      logits.start.size(), logits.end.size(), batch.batch, batch.seq, expected));
    }
    for (std::size_t row = 0; row < indexes.size(); ++row) {
      const auto first = static_cast<std::ptrdiff_t>(row * static_cast<std::size_t>(batch.seq));
      const auto length = static_cast<std::ptrdiff_t>(features[indexes[row]].length());
      Logits& own = result[indexes[row]];
      own.start.assign(logits.start.begin() + first, logits.start.begin() + first + length);
      own.end.assign(logits.end.begin() + first, logits.end.begin() + first + length);
    }
    if (after_batch) after_batch(indexes, batch, elapsed.count());
  }
  return result;
}

}  // namespace bertcl::squad
