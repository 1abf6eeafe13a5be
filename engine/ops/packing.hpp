// SPDX-License-Identifier: Apache-2.0
// Which rows of a padded batch are computed, and where they lie.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace bertcl::ops {

/// Rows of a batch [batch, seq] in packed order.
struct Packing {
  std::int64_t batch = 0, seq = 0;
  std::int64_t longest = 0;               // rows of the longest sequence
  bool dropped_padding = false;           // false: every row stays and key_mask does the masking
  std::vector<std::int32_t> seq_offsets;  // batch + 1
  std::vector<std::int32_t> positions;    // [tokens] place within the sequence
  std::vector<std::uint8_t> key_mask;     // [tokens]

  std::int64_t tokens() const { return seq_offsets.empty() ? 0 : seq_offsets.back(); }
  /// The packed rows of a padded [batch, seq] matrix of ids. One beyond 32 bits becomes the nearest
  /// that they hold, which is outside of every table as well.
  std::vector<std::int32_t> gather(std::span<const std::int64_t> padded) const;
};

/// Decides from the mask ([batch, seq], non-zero = attend; empty: all ones). Padding is dropped if
/// that is allowed and every row of the mask is a prefix of ones. `mask_is_length`: as many first
/// keys count as a row has ones.
Packing make_packing(std::int64_t batch, std::int64_t seq, std::span<const std::int64_t> mask,
                     bool may_drop, bool mask_is_length = false);

}  // namespace bertcl::ops
