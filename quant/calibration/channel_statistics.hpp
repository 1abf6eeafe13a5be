// SPDX-License-Identifier: Apache-2.0
// Statistics of each channel (index of the last axis) of a tensor, collected on the device.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "opencl/context.hpp"

namespace bertcl::quant {

/// Figures of a tensor, by channel.
struct ChannelStatistics {
  std::vector<float> low, high;    ///< smallest and largest value
  std::vector<float> mean_square;  ///< mean of the squares
  std::int64_t rows = 0;

  std::size_t channels() const { return low.size(); }
};

/// Statistics by tensor.
using ChannelRanges = std::map<std::string, ChannelStatistics>;

/// Throws the Error of an observer that has seen nothing.
[[noreturn]] void throw_unseen(const std::string& tensor);

/// Collects ChannelStatistics of one tensor: three floats per channel, for any number of rows.
class ChannelObserver {
 public:
  /// `tensor` is named in messages.
  ChannelObserver(opencl::Context& context, std::string tensor)
      : context_(&context), tensor_(std::move(tensor)) {}

  /// Queues taking in `values` [rows][channels]. Throws Error if `channels` differs from the last
  /// call's.
  void observe(const opencl::Buffer& values, std::int64_t rows, std::int64_t channels);
  /// Waits. Throws Error naming the tensor if nothing was observed, or if a value was NaN or
  /// infinite.
  ChannelStatistics statistics() const;

 private:
  opencl::Context* context_;
  std::string tensor_;
  opencl::Buffer state_;
  std::int64_t channels_ = 0, rows_ = 0;
};

/// What a work-item of observe_gram makes; of observe_gram_portable GROUP and COLUMNS.
struct GramTile {
  std::int64_t columns, rows;
};
inline constexpr GramTile kGramTile{16, 8}, kPortableGramTile{192, 12};

/// The Gram matrix x^T x of one tensor, [channels][channels] floats on the device.
class GramObserver {
 public:
  GramObserver(opencl::Context& context, std::string tensor)
      : context_(&context), tensor_(std::move(tensor)) {}

  void observe(const opencl::Buffer& values, std::int64_t rows, std::int64_t channels);
  /// Waits. Row by row, both triangles. Throws Error as ChannelObserver.
  std::vector<float> gram() const;

 private:
  opencl::Context* context_;
  std::string tensor_;
  opencl::Buffer gram_;
  std::int64_t channels_ = 0;
};

}  // namespace bertcl::quant
