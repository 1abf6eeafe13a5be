// SPDX-License-Identifier: Apache-2.0
// Percentile: the range that contains a given share of all values, from a histogram.
#include <algorithm>

#include "quant/calibration/histogram_observer.hpp"
#include "support/fail.hpp"
#include "support/option_name.hpp"

namespace bertcl::quant {
namespace {

/// numpy.searchsorted over the cumulative shares: the first bin at whose end `share` is reached.
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

double checked_percentile(double percentile) {
  if (!(percentile > 0.0 && percentile <= 100.0))
    fail("{} is {}, expected more than 0 and at most 100", option_name("percentile"), percentile);
  return percentile;
}

/// The left edge of a bin as the upper end of a range, or the right one where so few bins hold
/// nearly all values that the left one would clip many.
float upper_edge(const Histogram& histogram, std::size_t bin, bool take_right) {
  const auto& edges = histogram.edges();
  return edges[take_right ? std::min(bin + 1, edges.size() - 1) : bin];
}

/// The left edge of the bin that reaches the percentile, as `compute_percentile` of onnxruntime,
/// except where few bins hold nearly all values.
class PercentileObserver final : public HistogramObserver {
 public:
  PercentileObserver(opencl::Context& context, const MethodOptions& options,
                     const std::string& tensor)
      : HistogramObserver(
            context, tensor, options.bins.value_or(2048),
            options.symmetric.value_or(true) ? Binning::absolute : Binning::two_sided),
        percentile_(checked_percentile(options.percentile.value_or(99.999))) {}

 protected:
  Range choose(const Histogram& h) const override {
    Range range;
    if (h.absolute()) {
      const std::size_t bin = bin_reaching(h, percentile_ / 100.0);
      range.high = upper_edge(h, bin, bin == 0);
      range.low = -range.high;
    } else {
      const double cut = (100.0 - percentile_) / 200.0;
      const std::size_t low = bin_reaching(h, cut), high = bin_reaching(h, 1.0 - cut);
      range = {h.edges()[low],
               upper_edge(h, high, high - low < static_cast<std::size_t>(few_bins_))};
    }
    return clipped(range, h.bounds());
  }

 private:
  double percentile_;
};

/// `_compute_amax_percentile` of pytorch-quantization, except where the first bin holds nearly all
/// values.
class TorchPercentileObserver final : public HistogramObserver {
 public:
  TorchPercentileObserver(opencl::Context& context, const MethodOptions& options,
                          const std::string& tensor)
      : HistogramObserver(context, tensor, options.bins.value_or(2048), Binning::from_zero),
        percentile_(checked_percentile(options.percentile.value_or(99.99))),
        symmetric_(options.symmetric.value_or(options.scheme.symmetric)) {}

 protected:
  Range choose(const Histogram& h) const override {
    const std::size_t bin = bin_reaching(h, percentile_ / 100.0);
    return range_of_bound(upper_edge(h, bin, bin == 0), h.bounds(), symmetric_);
  }

 private:
  double percentile_;
  bool symmetric_;
};

}  // namespace

extern const Method kPercentile{"percentile",
                                "range that contains a given share of all values",
                                make_observer<PercentileObserver>,
                                {.bins = true, .percentile = true}};

extern const Method kTorchPercentile{"torch-percentile",
                                     "percentile as in pytorch-quantization",
                                     make_observer<TorchPercentileObserver>,
                                     {.bins = true, .percentile = true}};

}  // namespace bertcl::quant
