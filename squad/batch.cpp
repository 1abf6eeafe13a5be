// SPDX-License-Identifier: Apache-2.0
// Windows as rows of batches, and their logits.
#include "squad/batch.hpp"

namespace bertcl::squad {

const text::Head& logits_head() {
  static const text::Head head{true, 2, false, "a start and an end logit", true};
  return head;
}

std::vector<text::Row> rows_of(std::span<const Feature> features) {
  std::vector<text::Row> rows;
  for (const Feature& feature : features) rows.push_back({feature.input_ids, feature.second});
  return rows;
}

Logits split_logits(std::span<const float> values) {
  Logits logits;
  for (std::size_t i = 0; i + 1 < values.size(); i += 2) {
    logits.start.push_back(values[i]);
    logits.end.push_back(values[i + 1]);
  }
  return logits;
}

std::vector<Logits> run_model(std::span<const Feature> features, const BatchOptions& options,
                              const LogitsFn& model) {
  std::vector<Logits> result(features.size());
  text::run_rows(rows_of(features), logits_head(), options, model,
                 [&](std::size_t index, std::span<const float> values) {
                   result[index] = split_logits(values);
                 });
  return result;
}

}  // namespace bertcl::squad
