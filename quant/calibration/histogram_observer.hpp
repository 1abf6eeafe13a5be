// SPDX-License-Identifier: Apache-2.0
// Shared by the methods that work on a histogram.
#pragma once
#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "quant/calibration/device_histogram.hpp"
#include "quant/calibration/observer.hpp"

namespace bertcl::quant {

/// Observers that choose the range from a histogram after all samples.
class HistogramObserver : public Observer {
 public:
  HistogramObserver(opencl::Context& context, const std::string& tensor, int bins, Binning binning)
      : few_bins_(std::max(3, bins / 64)), histogram_(context, tensor, bins, binning) {}
  void observe(const opencl::Buffer& values, std::span<const ElementRange> samples) final {
    histogram_.observe(values, samples);
  }
  Range range() final {
    const Histogram& h = histogram_.read();
    const Range range = choose(h);
    const float bin = h.edges()[1] - h.edges()[0];
    const bool cuts = range.low > h.bounds().low || range.high < h.bounds().high;
    is_coarse_ = cuts && range.high - range.low < static_cast<float>(few_bins_) * bin;
    return range;
  }
  bool is_coarse() const final { return is_coarse_; }

 protected:
  virtual Range choose(const Histogram& histogram) const = 0;

  const int few_bins_;  ///< a range of fewer is coarse; a bin and its mirror image always are

 private:
  DeviceHistogram histogram_;
  bool is_coarse_ = false;
};

/// A Method::observer that makes a `Made`.
template <class Made>
std::unique_ptr<Observer> make_observer(opencl::Context& context, const MethodOptions& options,
                                        const std::string& tensor) {
  return std::make_unique<Made>(context, options, tensor);
}

/// The part of a range in which values were seen. A constant tensor may lie outside of it, above
/// the left edge of its bin: then its upper end.
inline Range clipped(Range range, const ValueBounds& seen) {
  range = {std::max(range.low, seen.low), std::min(range.high, seen.high)};
  return {std::min(range.low, range.high), range.high};
}

/// The range of methods of pytorch-quantization, which give one bound: -bound .. bound, and for
/// asymmetric integers only the part of it in which values were seen.
inline Range range_of_bound(float bound, const ValueBounds& seen, bool symmetric) {
  return symmetric ? Range{-bound, bound} : clipped({-bound, bound}, seen);
}

/// The bounds that pytorch-quantization tries: the first one, and the step to the next, in bins.
struct BoundSearch {
  std::size_t start_bin, stride;
};
/// Throws Error if it would try no bound.
BoundSearch bound_search_of(const MethodOptions& options);

}  // namespace bertcl::quant
