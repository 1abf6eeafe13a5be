// SPDX-License-Identifier: Apache-2.0
// Entropy: the range whose merged bins preserve most of the histogram (Kullback-Leibler
// divergence).
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "quant/calibration/histogram_observer.hpp"
#include "support/fail.hpp"

namespace bertcl::quant {
namespace {

constexpr double kEpsilon = 1e-4;  // what smoothing gives to an empty bin

/// Sums over the bins in front of an index, so that those over any stretch take one subtraction.
struct Sums {
  double count = 0.0;                 // h
  double filled = 0.0;                // bins with h > 0; the sums below go over those
  double h_log_h = 0.0, log_h = 0.0;  // h log h, log h
  std::array<double, 4> inverse{};    // 1/h, 1/h^2, 1/h^3, 1/h^4

  void add(double h) {
    if (h == 0.0) return;
    count += h;
    filled += 1.0;
    h_log_h += h * std::log(h);
    log_h += std::log(h);
    double power = 1.0;
    for (double& sum : inverse) sum += power /= h;
  }
  friend Sums operator-(Sums a, const Sums& b) {
    a.count -= b.count;
    a.filled -= b.filled;
    a.h_log_h -= b.h_log_h;
    a.log_h -= b.log_h;
    for (std::size_t k = 0; k < a.inverse.size(); ++k) a.inverse[k] -= b.inverse[k];
    return a;
  }
};

/// The divergences of `get_entropy_threshold` of onnxruntime (quantization/calibrate.py), each in
/// as many steps as there are merged bins, not bins. There a candidate is the stretch [start, end)
/// of bins, P its counts with all that lies outside added to its first and last bin, and Q the
/// merged counts without what lies outside, spread evenly over the filled bins of P and cut to
/// integers; both are smoothed (empty bins get 1e-4, the others lose as much together) and made
/// shares.
class Divergence {
 public:
  Divergence(const std::vector<std::uint64_t>& counts, std::size_t merged)
      : counts_(counts), merged_(merged), before_(counts.size() + 1) {
    for (std::size_t i = 0; i < counts.size(); ++i) {
      before_[i + 1] = before_[i];
      before_[i + 1].add(static_cast<double>(counts[i]));
      if (counts[i] > 0) filled_bins_.push_back(i);
    }
  }

  double of(std::size_t start, std::size_t end) {
    start_ = start;
    end_ = end;
    const double bins = static_cast<double>(end - start);
    first_ = static_cast<double>(counts_[start]) + before_[start].count;
    last_ = static_cast<double>(counts_[end - 1]) + before_.back().count - before_[end].count;
    const double filled = filled_in(start, end);
    if (filled == 0.0) return std::numeric_limits<double>::infinity();
    const double lost = kEpsilon * (bins - filled) / filled;  // of each filled bin of P
    if (lost >= 1.0)
      return std::numeric_limits<double>::infinity();  // nothing would be left of a count of 1

    const std::size_t size = (end - start) / merged_;  // of a group
    std::vector<double> spread(merged_, 0.0);          // Q in each bin of a group
    double q_filled = 0.0, q_total = 0.0;
    for (std::size_t g = 0; g < merged_; ++g) {
      const std::size_t from = start + g * size, to = from + size;
      const std::size_t until = g + 1 == merged_ ? end : to;  // the last takes the rest
      const double bins_of_p = filled_in(from, to);
      if (bins_of_p == 0.0) continue;
      spread[g] = std::trunc((before_[until].count - before_[from].count) / bins_of_p);
      if (spread[g] == 0.0) continue;
      q_filled += static_cast<double>(size);
      q_total += spread[g] * static_cast<double>(size);
    }
    if (q_filled == 0.0) return std::numeric_limits<double>::infinity();
    const double q_lost = kEpsilon * (bins - q_filled) / q_filled;
    if (q_lost >= 1.0) return std::numeric_limits<double>::infinity();

    // KL = sum p log p - sum p log q - log(total) + log(total of Q), p and q not yet shares.
    double cross = 0.0;
    for (std::size_t g = 0; g < merged_; ++g) {
      const std::size_t from = start + g * size;
      const double q = spread[g] == 0.0 ? kEpsilon : spread[g] - q_lost;
      cross += mass(from, from + size, lost) * std::log(q);
    }
    cross += mass(start + merged_ * size, end, lost) * std::log(kEpsilon);
    const double total = before_.back().count;
    const double self = self_information(lost) + (bins - filled) * kEpsilon * std::log(kEpsilon);
    return (self - cross) / total - std::log(total) + std::log(q_total);
  }

 private:
  /// Filled bins of P.
  double filled_in(std::size_t from, std::size_t to) const {
    double n = before_[to].filled - before_[from].filled;
    if (from == to) return 0.0;
    if (from == start_ && counts_[start_] == 0 && first_ > 0.0) n += 1.0;
    if (to == end_ && counts_[end_ - 1] == 0 && last_ > 0.0) n += 1.0;
    return n;
  }
  /// Sum of the smoothed P.
  double mass(std::size_t from, std::size_t to, double lost) const {
    if (from == to) return 0.0;
    double p = before_[to].count - before_[from].count;
    if (from == start_) p += first_ - static_cast<double>(counts_[start_]);
    if (to == end_) p += last_ - static_cast<double>(counts_[end_ - 1]);
    const double filled = filled_in(from, to);
    return p - lost * filled + kEpsilon * (static_cast<double>(to - from) - filled);
  }
  /// Sum of p log p over the filled bins, p = h - lost.
  double self_information(double lost) const {
    const auto term = [&](double h) { return h > 0.0 ? (h - lost) * std::log(h - lost) : 0.0; };
    double sum = term(first_) + term(last_);
    const std::size_t from = start_ + 1, to = end_ - 1;
    if (lost > 0.02) {  // few bins are filled
      auto bin = std::ranges::lower_bound(filled_bins_, from);
      for (; bin != filled_bins_.end() && *bin < to; ++bin)
        sum += term(static_cast<double>(counts_[*bin]));
      return sum;
    }
    // Taylor at lost = 0: h log h - lost (1 + log h) + sum over k >= 2 of lost^k / (k (k - 1)
    // h^(k-1)); what is left out is less than lost^6 / 30 < 3e-12 a bin.
    const Sums s = before_[to] - before_[from];
    sum += s.h_log_h - lost * (s.filled + s.log_h);
    double power = lost;
    for (std::size_t k = 2; k < 2 + s.inverse.size(); ++k) {
      power *= lost;
      sum += power / static_cast<double>(k * (k - 1)) * s.inverse[k - 2];
    }
    return sum;
  }

  const std::vector<std::uint64_t>& counts_;
  std::size_t merged_;
  std::vector<Sums> before_;
  std::vector<std::size_t> filled_bins_;
  std::size_t start_ = 0, end_ = 0;  // of the candidate
  double first_ = 0.0, last_ = 0.0;  // its outer bins with all that lies outside
};

class EntropyObserver final : public HistogramObserver {
 public:
  EntropyObserver(opencl::Context& context, const MethodOptions& options, const std::string& tensor)
      : HistogramObserver(context, tensor, options.bins.value_or(128), Binning::two_sided),
        merged_(options.quantized_bins.value_or(128)),
        symmetric_(options.symmetric.value_or(false)) {
    const int bins = options.bins.value_or(128);
    if (merged_ < 2 || merged_ > bins)
      fail("cannot merge {} bins into {} (supported: 2 to {})", bins, merged_, bins);
  }

 protected:
  Range choose(const Histogram& h) const override {
    const auto merged = static_cast<std::size_t>(merged_);
    const std::size_t bins = h.counts().size(), zero = bins / 2;
    Divergence divergence(h.counts(), merged);
    double min_divergence = std::numeric_limits<double>::infinity();
    Range best;
    for (std::size_t i = merged / 2; i <= zero; ++i) {
      const std::size_t start = zero - i, end = std::min(zero + i + 1, bins);
      const double d = divergence.of(start, end);
      if (d < min_divergence || i == merged / 2) {
        min_divergence = d;
        best = {h.edges()[start], h.edges()[end]};
      }
    }
    best = clipped(best, h.bounds());
    return symmetric_ ? symmetric(best) : best;
  }

 private:
  int merged_;
  bool symmetric_;
};

}  // namespace

extern const Method kEntropy{"entropy",
                             "range that loses the least information (KL divergence)",
                             make_observer<EntropyObserver>,
                             {.bins = true, .quantized_bins = true}};

}  // namespace bertcl::quant
