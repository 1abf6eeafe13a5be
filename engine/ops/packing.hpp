// SPDX-License-Identifier: Apache-2.0
// Which rows of a padded batch are computed, and where they are stored.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace bertcl::ops {

/// Rows of a batch [batch, seq] in packed order.
struct Packing {
  std::int64_t batch = 0, seq = 0;
  std::int64_t longest = 0;               // rows of the longest sequence
  std::vector<std::int32_t> seq_offsets;  // batch + 1
  std::vector<std::int32_t> positions;    // [tokens] place within the sequence
  std::vector<std::uint8_t> key_mask;     // [tokens]

  std::int64_t tokens() const { return seq_offsets.empty() ? 0 : seq_offsets.back(); }
  /// The packed rows of a padded [batch, seq] matrix of ids. Ids beyond 32 bits are clamped, which
  /// keeps them outside every table.
  std::vector<std::int32_t> gather(std::span<const std::int64_t> padded) const;
};

/// What 32 bits do not hold becomes the nearest that they do.
std::int32_t nearest_int32(std::int64_t value);

/// Throws Error (ErrorCode::out_of_memory) where offsets of 32 bits do not hold them.
void check_tokens(std::int64_t tokens);

/// Decides from the mask ([batch, seq], non-zero = attend; empty: all ones). Padding is dropped if
/// allowed and if each row of the mask is ones followed by zeros. `mask_is_length`: the first keys
/// count, as many as a row has ones. Throws Error as check_tokens(), also of too many sequences.
Packing make_packing(std::int64_t batch, std::int64_t seq, std::span<const std::int64_t> mask,
                     bool may_drop, bool mask_is_length = false);

}  // namespace bertcl::ops
