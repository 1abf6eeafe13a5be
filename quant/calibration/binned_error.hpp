// SPDX-License-Identifier: Apache-2.0
// The quantization error of a histogram's values, in as many steps as there are levels.
#pragma once
#include <algorithm>
#include <cstddef>
#include <vector>

#include "quant/calibration/histogram.hpp"

namespace bertcl::quant {

/// Sum of count * (centre - quantized centre)^2 over the bins of a histogram.
class BinnedError {
 public:
  explicit BinnedError(const Histogram& histogram)
      : centres_(histogram.centres()), sums_(centres_.size() + 1) {
    for (std::size_t i = 0; i < centres_.size(); ++i) {
      const auto n = static_cast<double>(histogram.counts()[i]);
      const double c = centres_[i];
      sums_[i + 1] = {sums_[i].n + n, sums_[i].nc + n * c, sums_[i].ncc + n * c * c};
    }
  }

  const std::vector<float>& centres() const { return centres_; }

  /// `level(x)` is the integer of a value, which must not fall where x rises; `value(q)` is what
  /// the integer stands for. Bins of one level lie side by side and are summed at once.
  template <class Level, class Value>
  double of(const Level& level, const Value& value) const {
    double error = 0.0;
    std::size_t length = 1;
    for (std::size_t from = 0; from < centres_.size();) {
      const auto q = level(centres_[from]);
      const std::size_t to = end_of(q, from, length, level);
      const double v = value(q);
      const double n = sums_[to].n - sums_[from].n;
      if (n > 0.0)
        error +=
            sums_[to].ncc - sums_[from].ncc - 2.0 * v * (sums_[to].nc - sums_[from].nc) + v * v * n;
      length = to - from;
      from = to;
    }
    return error;
  }

 private:
  /// The first bin after `from` with another level: about `length` on, as at the level before.
  template <class Level, class Integer>
  std::size_t end_of(Integer q, std::size_t from, std::size_t length, const Level& level) const {
    const std::size_t bins = centres_.size();
    for (std::size_t to = std::max(from + length, from + 2) - 1; to <= from + length + 1; ++to) {
      if (to >= bins) break;
      if (level(centres_[to - 1]) == q && level(centres_[to]) != q) return to;
    }
    const auto end = std::partition_point(centres_.begin() + static_cast<std::ptrdiff_t>(from),
                                          centres_.end(), [&](float x) { return level(x) == q; });
    return static_cast<std::size_t>(end - centres_.begin());
  }

  struct Sums {
    double n = 0.0, nc = 0.0, ncc = 0.0;
  };
  std::vector<float> centres_;
  std::vector<Sums> sums_;  // over the bins in front
};

}  // namespace bertcl::quant
