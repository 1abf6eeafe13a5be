// SPDX-License-Identifier: Apache-2.0
// Which rows of a padded batch are computed, and where they are stored.
#include "ops/packing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "bertcl/error.hpp"
#include "ir/checked.hpp"

namespace bertcl::ops {
namespace {

void check_count(std::int64_t count, const char* things) {
  if (count > std::numeric_limits<std::int32_t>::max())
    throw Error(fmt::format("a batch of {} {} is too large (at most {})", count, things,
                            std::numeric_limits<std::int32_t>::max()),
                ErrorCode::out_of_memory);
}

/// Number of leading ones if nothing but zeros follows, otherwise -1.
std::int64_t prefix_length(std::span<const std::int64_t> row) {
  const auto end = std::ranges::find(row, 0);
  if (std::any_of(end, row.end(), [](std::int64_t m) { return m != 0; })) return -1;
  return end - row.begin();
}

}  // namespace

std::int32_t nearest_int32(std::int64_t value) {
  using Limits = std::numeric_limits<std::int32_t>;
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(value, Limits::min(), Limits::max()));
}

std::vector<std::int32_t> Packing::gather(std::span<const std::int64_t> padded) const {
  std::vector<std::int32_t> rows;
  rows.reserve(tokens());
  for (std::int64_t b = 0; b < batch; ++b) {
    const std::int64_t length = seq_offsets[b + 1] - seq_offsets[b];
    for (std::int64_t s = 0; s < length; ++s) rows.push_back(nearest_int32(padded[b * seq + s]));
  }
  return rows;
}

void check_tokens(std::int64_t tokens) { check_count(tokens, "tokens"); }

Packing make_packing(std::int64_t batch, std::int64_t seq, std::span<const std::int64_t> mask,
                     bool may_drop, bool mask_is_length) {
  const auto row = [&](std::int64_t b) {
    return mask.subspan(b * seq, static_cast<std::size_t>(seq));
  };
  check_count(batch, "sequences");
  Packing p;
  p.batch = batch;
  p.seq = seq;
  bool drops = may_drop && !mask.empty();
  std::vector<std::int64_t> lengths;  // where padding is dropped
  for (std::int64_t b = 0; b < batch && drops; ++b) {
    lengths.push_back(prefix_length(row(b)));
    drops = lengths.back() >= 0;
  }
  check_tokens(drops ? std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0})
                     : ir::product(batch, seq, "a batch"));

  p.seq_offsets.push_back(0);
  for (std::int64_t b = 0; b < batch; ++b) {
    const std::int64_t length = drops ? lengths[static_cast<std::size_t>(b)] : seq;
    p.longest = std::max(p.longest, length);
    p.seq_offsets.push_back(p.seq_offsets.back() + static_cast<std::int32_t>(length));
    const std::int64_t ones =
        mask_is_length && !mask.empty() ? seq - std::ranges::count(row(b), 0) : seq;
    for (std::int64_t s = 0; s < length; ++s) {
      p.positions.push_back(static_cast<std::int32_t>(s));
      p.key_mask.push_back(mask.empty() || (mask_is_length ? s < ones : row(b)[s] != 0));
    }
  }
  return p;
}

}  // namespace bertcl::ops
