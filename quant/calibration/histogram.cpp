// SPDX-License-Identifier: Apache-2.0
// A histogram whose range grows with the data, with the same bins as onnxruntime's calibrators.
#include "quant/calibration/histogram.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "support/fail.hpp"
#include "support/option_name.hpp"

namespace bertcl::quant {
namespace {

constexpr float kLargest = std::numeric_limits<float>::max();

float largest_of(const ValueBounds& batch) { return std::max(-batch.low, batch.high); }

/// (high - low) / parts, where the difference may be no float.
float part_of(float low, float high, int parts) {
  const float span = high - low, count = static_cast<float>(parts);
  return std::isfinite(span) ? span / count : high / count - low / count;
}

}  // namespace

std::vector<float> even_edges(float low, float high, int bins) {
  if (low == high) {
    low -= 0.5f;
    high += 0.5f;
  }
  const float step = part_of(low, high, bins);
  std::vector<float> edges(static_cast<std::size_t>(bins) + 1);
  for (std::size_t i = 0; i < edges.size(); ++i) {
    const float offset = static_cast<float>(i) * step;
    edges[i] = std::isfinite(offset)
                   ? offset + low
                   : static_cast<float>(static_cast<double>(i) * static_cast<double>(step) +
                                        static_cast<double>(low));
  }
  edges.back() = high;
  return edges;
}

Histogram::Histogram(int bins, Binning binning, int max_bins)
    : bins_(bins), max_bins_(max_bins), binning_(binning) {
  if (bins < 2 || bins > max_bins)
    fail("{} is {}, expected 2 to {}", option_name("bins"), bins, max_bins);
}

bool Histogram::must_extend(const ValueBounds& batch) const {
  if (edges_.empty()) return true;
  // The last edge may be a rounding away from the largest value; two-sided bins go by that value.
  if (threshold_ == 0.0f && binning_ != Binning::absolute) return largest_of(batch) > 0.0f;
  return largest_of(batch) > (binning_ == Binning::two_sided ? threshold_ : edges_.back());
}

void Histogram::extend(const ValueBounds& batch) {
  if (!must_extend(batch)) return;
  const float largest = largest_of(batch);
  if (edges_.empty()) {
    threshold_ = largest;
    if (binning_ == Binning::absolute)
      edges_ = even_edges(batch.nearest, largest, bins_);
    else if (binning_ == Binning::from_zero)
      edges_ = even_edges(0.0f, largest > 0.0f ? largest : 1.0f, bins_);
    else
      edges_ = even_edges(-largest, largest, bins_);
    counts_.assign(static_cast<std::size_t>(bins_), 0);
  } else if (binning_ == Binning::absolute) {
    extend_absolute(largest);
  } else if (binning_ == Binning::from_zero) {
    extend_from_zero(largest);
  } else {
    extend_two_sided(largest);
  }
}

void Histogram::extend_absolute(float largest) {
  const float width = edges_[1] - edges_[0], last = edges_.back();
  // numpy.arange(last + width, largest + width, width)
  const float start = last + width, stop = largest + width;
  const double added = std::ceil(static_cast<double>((stop - start) / width));
  if (!(added <= static_cast<double>(max_bins_) - static_cast<double>(counts_.size())))
    return coarsen(edges_.front(), largest);
  const float delta = (start + width) - start;
  for (int i = 0; i < static_cast<int>(added); ++i) {
    const float offset = static_cast<float>(i) * delta;
    edges_.push_back(std::min(i == 1 ? start + width : start + offset, kLargest));
  }
  counts_.resize(edges_.size() - 1, 0);
}

void Histogram::extend_from_zero(float largest) {
  const auto bins = static_cast<int>(counts_.size());
  if (threshold_ == 0.0f) {  // so far only zeros, in the first bin
    threshold_ = largest;
    edges_ = even_edges(0.0f, largest, bins);
    return;
  }
  threshold_ = largest;
  const float width = edges_[1] - edges_[0];
  const double wanted = std::ceil(static_cast<double>(largest / width));
  if (!(wanted <= max_bins_)) return coarsen(0.0f, largest);
  const auto size = std::max(static_cast<std::size_t>(wanted), counts_.size()) + 1;
  while (edges_.size() < size) edges_.push_back(static_cast<float>(edges_.size()) * width);
  edges_.back() = std::clamp(edges_.back(), largest, kLargest);
  counts_.resize(edges_.size() - 1, 0);
}

void Histogram::extend_two_sided(float largest) {
  const auto old_bins = static_cast<int>(counts_.size());
  if (threshold_ == 0.0f) {  // so far only zeros, in the middle
    threshold_ = largest;
    edges_ = even_edges(-largest, largest, old_bins);
    return;
  }
  const float stride = part_of(-threshold_, threshold_, old_bins);
  // numpy's floor division of floats
  const float gap = largest - threshold_;
  const float quotient = (gap - std::fmod(gap, stride)) / stride;
  const double half = std::nearbyint(static_cast<double>(quotient)) + 1.0;
  if (!(old_bins + 2.0 * half <= max_bins_)) {
    coarsen(-largest, largest);
    threshold_ = largest;
    return;
  }
  const int side = static_cast<int>(half);
  const float added = static_cast<float>(side) * stride;
  threshold_ = std::min(added + threshold_, kLargest);
  edges_ = even_edges(-threshold_, threshold_, old_bins + 2 * side);
  std::vector<std::uint64_t> counts(old_bins + 2 * side, 0);
  std::ranges::copy(counts_, counts.begin() + side);
  counts_ = std::move(counts);
}

void Histogram::coarsen(float low, float high) {
  const int bins = max_bins_ / 2;
  const auto edges = even_edges(low, high, bins);
  std::vector<std::uint64_t> counts(bins, 0);
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    const auto after = std::ranges::upper_bound(edges, centre(i)) - edges.begin();
    counts[std::clamp<std::ptrdiff_t>(after - 1, 0, bins - 1)] += counts_[i];
  }
  edges_ = edges;
  counts_ = std::move(counts);
}

float Histogram::centre(std::size_t bin) const {
  const float left = edges_[bin], right = edges_[bin + 1], sum = left + right;
  return std::isfinite(sum) ? 0.5f * sum : 0.5f * left + 0.5f * right;
}

std::vector<float> Histogram::centres() const {
  std::vector<float> centres(counts_.size());
  for (std::size_t i = 0; i < centres.size(); ++i) centres[i] = centre(i);
  return centres;
}

void Histogram::note(const ValueBounds& batch) {
  bounds_ = any_ ? ValueBounds{std::min(bounds_.low, batch.low), std::max(bounds_.high, batch.high),
                               std::min(bounds_.nearest, batch.nearest)}
                 : batch;
  any_ = true;
}

void Histogram::add(std::span<const std::uint32_t> counts) {
  if (counts.size() != counts_.size())
    fail("{} counts for a histogram of {} bins", counts.size(), counts_.size());
  for (std::size_t i = 0; i < counts.size(); ++i) counts_[i] += counts[i];
}

}  // namespace bertcl::quant
