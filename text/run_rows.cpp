// SPDX-License-Identifier: Apache-2.0
// Batches of similar length, and the rows of their outputs.
#include "text/run_rows.hpp"

#include <algorithm>
#include <cmath>

#include "support/fail.hpp"
#include "support/stopwatch.hpp"

namespace bertcl::text {
namespace {

/// Values of each row or token. Throws Error if the output does not fit the head.
std::size_t classes_of(const Head& head, const Batch& batch, std::size_t values) {
  const std::size_t count = head.by_token ? batch.tokens() : batch.rows();
  const std::size_t classes = values / count;
  const bool fits = values == count * classes &&
                    (head.or_more ? classes >= head.classes : classes == head.classes);
  if (!fits)
    fail(
        "the model returned {} values for a batch of {} texts with {} tokens; the task needs {} "
        "for each {}",
        values, batch.rows(), batch.tokens(), head.meaning, head.by_token ? "token" : "text");
  return classes;
}

}  // namespace

bool all_finite(std::span<const float> values) {
  return std::ranges::all_of(values, [](float value) { return std::isfinite(value); });
}

Done run_rows(std::span<const Row> rows, const Head& head, const BatchOptions& options,
              const RunBatchFn& model, const OutputVisitor& visit, const BatchDoneFn& batch_done) {
  std::vector<std::size_t> lengths;
  for (const Row& row : rows) lengths.push_back(row.ids.size());
  std::size_t classes = head.classes;
  Done done;
  for (const std::vector<std::size_t>& group : group_by_length(lengths, options)) {
    std::vector<Row> chosen;
    for (const std::size_t index : group)
      if (lengths[index] > 0) chosen.push_back(rows[index]);
    const Batch batch = make_batch(chosen);
    std::vector<float> output;
    if (!chosen.empty()) {
      const Stopwatch clock;
      output = model(batch);
      done.seconds += clock.seconds();
      classes = classes_of(head, batch, output.size());
    }
    // Rows without tokens are the last of a group.
    if (!head.by_token) output.resize(group.size() * classes, 0.0F);
    std::span<const float> left = output;
    for (const std::size_t index : group) {
      const std::size_t own = classes * (head.by_token ? lengths[index] : 1);
      visit(index, left.first(own));
      left = left.subspan(own);
    }
    done.rows += group.size();
    done.tokens += batch.tokens();
    if (batch_done) batch_done(done);
  }
  return done;
}

}  // namespace bertcl::text
