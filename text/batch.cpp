// SPDX-License-Identifier: Apache-2.0
// Grouping of sequences by length, and padding.
#include "text/batch.hpp"

#include <algorithm>
#include <numeric>

#include "support/fail.hpp"

namespace bertcl::text {

std::vector<std::vector<std::size_t>> group_by_length(std::span<const std::size_t> lengths,
                                                      const BatchOptions& options) {
  if (options.max_tokens < 1 || options.max_batch < 1) {
    fail("the bounds of a batch must be at least 1: max_tokens {}, max_batch {}",
         options.max_tokens, options.max_batch);
  }
  std::vector<std::size_t> order(lengths.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order,
                           [&](std::size_t a, std::size_t b) { return lengths[a] > lengths[b]; });
  std::vector<std::vector<std::size_t>> groups;
  for (const std::size_t index : order) {
    const bool fits = [&] {
      if (groups.empty()) return false;
      const std::size_t rows = groups.back().size() + 1;
      const std::size_t seq = lengths[groups.back().front()];
      if (options.one_length && lengths[index] != seq) return false;
      return rows <= static_cast<std::size_t>(options.max_batch) &&
             rows * seq <= static_cast<std::size_t>(options.max_tokens);
    }();
    if (!fits) groups.emplace_back();
    groups.back().push_back(index);
  }
  return groups;
}

Batch make_batch(std::span<const Row> rows) {
  std::size_t seq = 0;
  for (const Row& row : rows) seq = std::max(seq, row.ids.size());
  Batch batch;
  batch.batch = static_cast<int>(rows.size());
  batch.seq = static_cast<int>(seq);
  batch.input_ids.assign(rows.size() * seq, 0);
  batch.attention_mask.assign(rows.size() * seq, 0);
  batch.token_type_ids.assign(rows.size() * seq, 0);
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const auto [ids, second] = rows[row];
    for (std::size_t i = 0; i < ids.size(); ++i) {
      batch.input_ids[row * seq + i] = ids[i];
      batch.attention_mask[row * seq + i] = 1;
      batch.token_type_ids[row * seq + i] = i >= second ? 1 : 0;
    }
  }
  return batch;
}

}  // namespace bertcl::text
