// SPDX-License-Identifier: Apache-2.0
// MSE: the range with the least mean squared quantization error.
#include <algorithm>
#include <cmath>
#include <limits>

#include "quant/calibration/binned_error.hpp"
#include "quant/calibration/histogram_observer.hpp"
#include "support/fail.hpp"
#include "support/option_name.hpp"

namespace bertcl::quant {
namespace {

/// `_compute_amax_mse` of pytorch-quantization: each bin centre from `start` on is tried as the
/// bound of symmetric 8-bit integers; the first of equal minima wins.
class SymmetricMseObserver final : public HistogramObserver {
 public:
  SymmetricMseObserver(opencl::Context& context, const MethodOptions& options,
                       const std::string& tensor)
      : HistogramObserver(context, tensor, options.bins.value_or(2048), Binning::from_zero),
        search_(bound_search_of(options)),
        scheme_(options.scheme) {}

 protected:
  Range choose(const Histogram& h) const override {
    const BinnedError error(h);
    double min_error = std::numeric_limits<double>::infinity();
    float bound = 0.0f;
    for (std::size_t i = search_.start_bin; i < error.centres().size(); i += search_.stride) {
      const float candidate = error.centres()[i];
      const float scale = candidate <= 0x1p-24f ? 0.0f : 127.0f / candidate;
      const double e =
          error.of([&](float x) { return std::min(std::nearbyint(x * scale), 127.0f); },
                   [&](float q) { return scale == 0.0f ? 0.0f : q / scale; });
      if (e < min_error) {
        min_error = e;
        bound = candidate;
      }
    }
    return range_of_bound(bound, h.bounds(), scheme_.symmetric);
  }

 private:
  BoundSearch search_;
  Scheme scheme_;
};

/// Two bounds, each at an edge of a two-sided histogram: from the range that was seen, the best
/// upper bound for the lower one is taken, then the best lower one for that, until none improves.
class AsymmetricMseObserver final : public HistogramObserver {
 public:
  AsymmetricMseObserver(opencl::Context& context, const MethodOptions& options,
                        const std::string& tensor)
      : HistogramObserver(context, tensor, options.bins.value_or(2048), Binning::two_sided),
        scheme_{options.scheme.type, false} {}

 protected:
  Range choose(const Histogram& h) const override {
    const BinnedError error(h);
    const auto [smallest, largest] = integers_of(scheme_.type);
    const auto of = [&](Range range) {
      const Parameters p = parameters_of(range, scheme_);
      const auto zero = static_cast<float>(p.zero_point);
      const auto low = static_cast<float>(smallest) - zero;
      const auto high = static_cast<float>(largest) - zero;
      return error.of([&](float x) { return std::clamp(std::nearbyint(x / p.scale), low, high); },
                      [&](float q) { return q * p.scale; });
    };
    Range best{std::min(h.bounds().low, 0.0f), std::max(h.bounds().high, 0.0f)};
    double min_error = of(best);
    const auto improve = [&](float Range::*end) {
      bool improved = false;
      for (const float bound : bounds(h, best.*end)) {
        Range candidate = best;
        candidate.*end = bound;
        if (const double e = of(candidate); e < min_error) {
          min_error = e;
          best = candidate;
          improved = true;
        }
      }
      return improved;
    };
    bool lower = false;
    for (int without_gain = 0; without_gain < 2; lower = !lower)
      without_gain = improve(lower ? &Range::low : &Range::high) ? 0 : without_gain + 1;
    return best;
  }

 private:
  /// Edges between 0 and what was seen on the side of `end`, outermost first, at most 1024.
  static std::vector<float> bounds(const Histogram& h, float end) {
    std::vector<float> bounds;
    for (const float edge : h.edges())
      if ((end < 0.0f && edge < 0.0f && edge >= h.bounds().low) ||
          (end > 0.0f && edge > 0.0f && edge <= h.bounds().high))
        bounds.push_back(edge);
    if (end > 0.0f) std::ranges::reverse(bounds);
    const std::size_t step = bounds.size() / 1024 + 1;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < bounds.size(); i += step) bounds[kept++] = bounds[i];
    bounds.resize(kept);
    return bounds;
  }

  Scheme scheme_;
};

}  // namespace

extern const Method kMse{
    "mse",
    "range with the least mean squared error",
    [](opencl::Context& context, const MethodOptions& options,
       const std::string& tensor) -> std::unique_ptr<Observer> {
      if (options.symmetric.value_or(options.scheme.symmetric))
        return std::make_unique<SymmetricMseObserver>(context, options, tensor);
      if (options.start_bin || options.stride)
        fail("{} requires {}: a two-sided range searches all bins",
             option_name(options.start_bin ? "start-bin" : "stride"), option_name("absolute"));
      return std::make_unique<AsymmetricMseObserver>(context, options, tensor);
    },
    {.bins = true, .start_bin = true, .stride = true}};

}  // namespace bertcl::quant
