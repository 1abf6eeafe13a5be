// SPDX-License-Identifier: Apache-2.0
// Data for the observers that is the same in C++ and numpy, and a plain histogram.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <vector>

#include "quant/calibration/histogram.hpp"
#include "quant/calibration/observer.hpp"
#include "tests/kernels_cl/device_test.hpp"

namespace bertcl::quant::tests {

using bertcl::tests::device, bertcl::tests::expect_equal, bertcl::tests::upload;

/// Integers spread over 0 .. 1008, shifted and scaled.
inline std::vector<float> batch(std::int64_t seed, std::int64_t count, float scale, float offset) {
  std::vector<float> x;
  for (std::int64_t i = 0; i < count; ++i)
    x.push_back((static_cast<float>((i * i * 31 + i * 17 + seed * 101) % 1009) - offset) * scale);
  return x;
}

/// Five batches: growth, a ragged one, growth again, none, much growth.
inline std::vector<std::vector<float>> batches() {
  return {batch(0, 1000, 1.0f / 256, 300), batch(1, 7, 1.0f / 64, 300),
          batch(2, 5000, 1.0f / 128, 300), batch(3, 333, 1.0f / 512, 700),
          batch(4, 4097, 1.0f / 32, 20)};
}

/// Fifth powers: many small values, few large ones, as activations have them.
inline std::vector<std::vector<float>> peaked_batches() {
  std::vector<std::vector<float>> all{batch(0, 3000, 1, 504), batch(1, 500, 1, 504),
                                      batch(2, 4000, 1, 504)};
  for (std::size_t b = 0; b < all.size(); ++b)
    for (float& x : all[b]) {
      const float t = x / 504.0f;
      x = t * t * t * t * t * (b == 2 ? 1.25f : 1.0f);
    }
  return all;
}

inline void observe(Observer& observer, const std::vector<float>& x) {
  const ElementRange all{0, x.size()};
  observer.observe(upload(x), {&all, 1});
}

inline Range range_by(std::string_view name, const MethodOptions& options,
                      const std::vector<std::vector<float>>& data = batches()) {
  const auto observer = method(name).observer(device(), options, "t");
  for (const auto& x : data) observe(*observer, x);
  return observer->range();
}

inline ValueBounds bounds_of(const std::vector<float>& x) {
  ValueBounds e{x[0], x[0], std::abs(x[0])};
  for (const float v : x)
    e = {std::min(e.low, v), std::max(e.high, v), std::min(e.nearest, std::abs(v))};
  return e;
}

/// numpy.histogram with given edges.
inline std::vector<std::uint64_t> count_plainly(const std::vector<std::vector<float>>& data,
                                                const std::vector<float>& edges, bool absolute) {
  std::vector<std::uint64_t> counts(edges.size() - 1, 0);
  for (const auto& x : data)
    for (float v : x) {
      if (absolute) v = std::abs(v);
      if (v < edges.front() || v > edges.back()) continue;
      const auto after = std::upper_bound(edges.begin(), edges.end(), v) - edges.begin();
      ++counts[std::min(static_cast<std::size_t>(after), counts.size()) - 1];
    }
  return counts;
}

/// A histogram of data, counted without a device.
inline Histogram histogram_of(const std::vector<std::vector<float>>& data, int bins,
                              Binning binning) {
  Histogram h(bins, binning);
  for (const auto& x : data) {
    h.extend(bounds_of(x));
    h.note(bounds_of(x));
    std::vector<std::uint32_t> counts;
    for (const auto c : count_plainly({x}, h.edges(), h.absolute()))
      counts.push_back(static_cast<std::uint32_t>(c));
    h.add(counts);
  }
  return h;
}

}  // namespace bertcl::quant::tests
