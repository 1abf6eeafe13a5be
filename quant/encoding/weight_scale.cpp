// SPDX-License-Identifier: Apache-2.0
// Weight scales with the least rounding and clipping error.
#include "quant/encoding/weight_scale.hpp"

#include <algorithm>
#include <limits>
#include <span>
#include <vector>

namespace bertcl::quant {
namespace {

/// Sum of squares of Q/DQ(x) - x, integers saturating at `low` and `high`.
double squared_error(std::span<const float> values, Parameters p, std::int32_t low,
                     std::int32_t high) {
  // Adding and subtracting it rounds a float below 2^22 half to even, without a call.
  constexpr float kRound = 0x1.8p23f;
  const auto min = static_cast<float>(low - p.zero_point);
  const auto max = static_cast<float>(high - p.zero_point);
  double sum = 0.0;
  for (const float x : values) {
    const float q = (std::clamp(x / p.scale, min, max) + kRound) - kRound;
    const double error = static_cast<double>(q * p.scale) - x;
    sum += error * error;
  }
  return sum;
}

Parameters min_error(std::span<const float> values, Range range, Scheme scheme) {
  const auto [low, high] = saturation_of(scheme);
  Parameters best;
  double smallest = std::numeric_limits<double>::infinity();
  for (int percent = 100; percent >= kSmallestPercent; --percent) {
    const float part = static_cast<float>(percent) / 100.0f;
    const Parameters p = parameters_of({range.low * part, range.high * part}, scheme);
    const double error = squared_error(values, p, low, high);
    if (error >= smallest) continue;
    smallest = error;
    best = p;
  }
  return best;
}

}  // namespace

QuantizedConstant quantize_by_min_error(const ir::Tensor& constant, int axis,
                                        const std::string& name, Scheme scheme) {
  if (axis >= 0) scheme.symmetric = true;
  const auto ranges = ranges_along(constant, axis, name);
  const Channels channels = channels_of(constant, axis, name);
  std::vector<std::vector<float>> values(ranges.size());
  const auto all = constant.as<float>();
  channels.for_each(all.size(),
                    [&](std::size_t i, std::size_t channel) { values[channel].push_back(all[i]); });
  std::vector<Parameters> parameters;
  for (std::size_t c = 0; c < ranges.size(); ++c)
    parameters.push_back(min_error(values[c], ranges[c], scheme));
  QuantizedConstant result = quantize_by(constant, parameters, axis, scheme, name);
  result.zero_channels = std::ranges::count(ranges, Range{});
  return result;
}

}  // namespace bertcl::quant
