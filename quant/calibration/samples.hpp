// SPDX-License-Identifier: Apache-2.0
// What calibration reads: token sequences, one after the other.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace bertcl::quant {

/// One sequence without padding.
struct Sample {
  std::vector<std::int64_t> ids;             ///< [tokens]
  std::vector<std::int64_t> token_type_ids;  ///< [tokens], or empty for zeros
};

/// The next sample; empty at the end.
using SampleSource = std::function<std::optional<Sample>()>;

/// Called with the number of samples that are done, 0 while kernels are built.
using PassProgress = std::function<void(std::int64_t samples)>;

/// Samples where the user names no number.
inline constexpr std::size_t kDefaultSamples = 128;

/// Which of `total` samples to calibrate with: `wanted` indices in equal steps from 0, the same at
/// each call, so that all articles of a file have their share; or the `first` ones. All of them if
/// `wanted` is 0 or more than there are.
std::vector<std::size_t> spread(std::size_t total, std::size_t wanted, bool first = false);

}  // namespace bertcl::quant
