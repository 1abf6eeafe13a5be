// SPDX-License-Identifier: Apache-2.0
// Entropy as pytorch-quantization defines it: one bound, on absolute values.
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <vector>

#include "quant/calibration/histogram_observer.hpp"

namespace bertcl::quant {
namespace {

constexpr std::size_t kLevels = 128;  // of 8 bits with a sign

/// `_compute_amax_entropy`: bins 0 .. i - 1, the tail added to the last, against the same bins
/// averaged over the filled ones of each of 128 cells. The last of equal minima wins. Each
/// divergence takes as many steps as there are cells, by sums over the bins in front of an index.
std::size_t best_end(std::vector<double> counts, std::size_t start, std::size_t stride) {
  counts[0] = counts[1];  // its correction of the peak at zero
  const std::size_t bins = counts.size();
  std::vector<double> count(bins + 1, 0.0), filled(bins + 1, 0.0), information(bins + 1, 0.0);
  const auto log_share = [](double h) { return h > 0.0 ? h * std::log(h) : 0.0; };
  for (std::size_t i = 0; i < bins; ++i) {
    count[i + 1] = count[i] + counts[i];
    filled[i + 1] = filled[i] + (counts[i] > 0.0 ? 1.0 : 0.0);
    information[i + 1] = information[i] + log_share(counts[i]);
  }
  const double total = count[bins];
  double min_divergence = std::numeric_limits<double>::infinity();
  std::size_t best = start;
  for (std::size_t end = start; end <= bins; end += stride) {
    const double tail = total - count[end], last = counts[end - 1];
    double divergence = std::numeric_limits<double>::infinity();
    if (count[end] > 0.0 && (tail == 0.0 || last > 0.0)) {
      double cross = 0.0;
      for (std::size_t level = 0, from = 0; level < kLevels; ++level) {
        const std::size_t to = ((level + 1) * end + kLevels - 1) / kLevels;
        const double mass = count[to] - count[from] + (level + 1 == kLevels ? tail : 0.0);
        if (mass > 0.0)
          cross += mass * std::log((count[to] - count[from]) / (filled[to] - filled[from]));
        from = to;
      }
      const double self = information[end - 1] + log_share(last + tail);
      divergence = (self - cross) / total - std::log(total) + std::log(count[end]);
    }
    if (divergence <= min_divergence) {
      min_divergence = divergence;
      best = end;
    }
  }
  return best;
}

class TorchEntropyObserver final : public HistogramObserver {
 public:
  TorchEntropyObserver(opencl::Context& context, const MethodOptions& options,
                       const std::string& tensor)
      : HistogramObserver(context, tensor, options.bins.value_or(2048), Binning::from_zero),
        search_(bound_search_of(options)),
        symmetric_(options.symmetric.value_or(options.scheme.symmetric)) {}

 protected:
  Range choose(const Histogram& h) const override {
    const std::vector<double> counts(h.counts().begin(), h.counts().end());
    const std::size_t end = best_end(counts, search_.start_bin, search_.stride);
    return range_of_bound(h.edges()[end], h.bounds(), symmetric_);
  }

 private:
  BoundSearch search_;
  bool symmetric_;
};

}  // namespace

extern const Method kTorchEntropy{"torch-entropy",
                                  "entropy as in pytorch-quantization",
                                  make_observer<TorchEntropyObserver>,
                                  {.bins = true, .start_bin = true, .stride = true}};

}  // namespace bertcl::quant
