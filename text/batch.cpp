// SPDX-License-Identifier: Apache-2.0
// Grouping of sequences by length.
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
  Batch batch;
  for (const auto& [ids, second] : rows) {
    batch.ids.insert(batch.ids.end(), ids.begin(), ids.end());
    batch.token_type_ids.resize(batch.ids.size() - ids.size() + std::min(second, ids.size()), 0);
    batch.token_type_ids.resize(batch.ids.size(), 1);
    batch.offsets.push_back(std::ssize(batch.ids));
  }
  return batch;
}

}  // namespace bertcl::text
