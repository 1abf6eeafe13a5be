// SPDX-License-Identifier: Apache-2.0
// Rules that change ranges between calibration and encoding.
#include "quant/encoding/range_rules.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "bertcl/error.hpp"
#include "support/fail.hpp"

namespace bertcl::quant {
namespace {

Range united(Range a, Range b) { return {std::min(a.low, b.low), std::max(a.high, b.high)}; }

void unite(const std::vector<std::string>& tensors, Ranges& ranges) {
  std::optional<Range> all;
  for (const auto& tensor : tensors)
    if (const auto it = ranges.find(tensor); it != ranges.end())
      all = all ? united(*all, it->second) : it->second;
  for (const auto& tensor : tensors)
    if (const auto it = ranges.find(tensor); it != ranges.end()) it->second = *all;
}

void fuse_qkv(const GraphIndex& index, Constants& constants, const Structure& structure,
              bool weights, Ranges& ranges) {
  if (structure.attentions.empty())
    throw Error("cannot fuse the ranges of Q, K and V: the model has no attention");
  for (const auto& parts : structure.attentions) {
    unite({parts.q, parts.k, parts.v}, ranges);
    std::vector<std::string> matrices;
    for (const int linear : {parts.q_linear, parts.k_linear, parts.v_linear})
      if (weights && linear >= 0) {
        const std::string& matrix = index.node(linear).input(1);
        try {
          if (!ranges.contains(matrix)) ranges[matrix] = range_of(constants.value(matrix), matrix);
          matrices.push_back(matrix);
        } catch (const Error&) {
          // A weight without values to be read is left in float, and reported, by encode().
        }
      }
    unite(matrices, ranges);
  }
}

void clip_gelu(const Structure& structure, float limit, Ranges& ranges) {
  if (!(limit > 0.0f)) fail("cannot clip GELU at {}; give a number above 0", limit);
  bool found = false;
  for (auto& [tensor, range] : ranges)
    if (structure.gelus.contains(tensor)) {
      found = true;
      range.high = std::min(range.high, limit);
      range.low = std::min(range.low, range.high);
    }
  if (!found) throw Error("cannot clip GELU: no quantized tensor is the result of one");
}

}  // namespace

void apply(const RangeOptions& options, const WeightOptions& weights, const GraphIndex& index,
           Constants& constants, const Structure& structure, Ranges& ranges,
           ChannelRanges& channels) {
  if (options.recalibrate_weights)
    std::erase_if(ranges, [&](const auto& entry) { return constants.contains(entry.first); });
  if (options.fuse_qkv) fuse_qkv(index, constants, structure, !weights.per_channel, ranges);
  if (options.clip_gelu) clip_gelu(structure, *options.clip_gelu, ranges);
  if (!options.symmetric) return;
  for (auto& [tensor, range] : ranges) range = symmetric(range);
  for (auto& [tensor, statistics] : channels)
    for (std::size_t c = 0; c < statistics.channels(); ++c) {
      const Range range = symmetric({statistics.low[c], statistics.high[c]});
      statistics.low[c] = range.low;
      statistics.high[c] = range.high;
    }
}

}  // namespace bertcl::quant
