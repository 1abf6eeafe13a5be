// SPDX-License-Identifier: Apache-2.0
// Percentile: a histogram gives the range that holds a share of all values.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "bertcl/error.hpp"
#include "quant/device_histogram.hpp"
#include "quant/observer.hpp"

namespace bertcl::quant {
namespace {

/// numpy.searchsorted over the cumulated shares: the first bin at whose end `share` is reached.
std::size_t bin_reaching(const Histogram& histogram, double share) {
  double total = 0.0, sum = 0.0;
  for (const auto count : histogram.counts()) total += static_cast<double>(count);
  std::size_t bin = 0;
  for (const auto count : histogram.counts()) {
    sum += static_cast<double>(count) / total;
    if (sum >= share) break;
    ++bin;
  }
  return bin;
}

class PercentileObserver final : public Observer {
 public:
  PercentileObserver(opencl::Context& context, const MethodOptions& options,
                     const std::string& tensor)
      : percentile_(options.percentile),
        histogram_(context, tensor, options.bins, options.absolute) {
    if (!(percentile_ > 0.0 && percentile_ <= 100.0))
      throw Error(fmt::format("percentile {} is outside 0 (excluded) to 100", percentile_));
  }
  void observe(const opencl::Buffer& values, std::size_t count) override {
    histogram_.observe(values, count);
  }
  /// The left edge of the bin that reaches the percentile, as `compute_percentile` of onnxruntime.
  Range range() override {
    const Histogram& h = histogram_.read();
    Range range;
    if (h.absolute()) {
      range.high = h.edges()[bin_reaching(h, percentile_ / 100.0)];
      range.low = -range.high;
    } else {
      const double cut = (100.0 - percentile_) / 200.0;
      range = {h.edges()[bin_reaching(h, cut)], h.edges()[bin_reaching(h, 1.0 - cut)]};
    }
    const Extent seen = h.seen();
    range = {std::max(range.low, seen.low), std::min(range.high, seen.high)};
    // A constant tensor may lie above the left edge of its bin.
    return {std::min(range.low, range.high), range.high};
  }

 private:
  double percentile_;
  DeviceHistogram histogram_;
};

}  // namespace

const Method percentile{"percentile", "range that holds a share of all values",
                        [](opencl::Context& context, const MethodOptions& options,
                           const std::string& tensor) -> std::unique_ptr<Observer> {
                          return std::make_unique<PercentileObserver>(context, options, tensor);
                        }};

}  // namespace bertcl::quant
