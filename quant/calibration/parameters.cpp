// SPDX-License-Identifier: Apache-2.0
// Turns ranges into scales and zero points, and floats into 8-bit integers.
#include "quant/calibration/parameters.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "support/fail.hpp"

namespace bertcl::quant {
namespace {

/// Symmetric i8 leaves out -128; symmetric u8 uses all of its range.
std::pair<std::int32_t, std::int32_t> limits_of(Scheme scheme) {
  auto [low, high] = integers_of(scheme.type);
  const bool is_signed = scheme.type == ir::DType::i8;
  if (scheme.bits < 2 || scheme.bits > 8)
    fail("{} bits are not supported (supported: 2 to 8)", scheme.bits);
  if (scheme.steps == Steps::reduced && scheme.bits != 8)
    fail("a reduced range has 7 bits and cannot be combined with {} bits", scheme.bits);
  if (scheme.steps == Steps::reduced) return is_signed ? std::pair{-64, 64} : std::pair{0, 127};
  if (scheme.bits < 8) {
    const std::int32_t half = 1 << (scheme.bits - 1), zero = is_signed ? 0 : 128;
    low = zero - half + (scheme.symmetric ? 1 : 0);
    high = zero + half - 1;
  } else if (scheme.symmetric && is_signed && scheme.steps != Steps::full) {
    low = -127;
  }
  return {low, high};
}

std::span<const float> floats(const ir::Tensor& constant, const std::string& name) {
  if (constant.dtype() != ir::DType::f32)
    fail("constant '{}' is {}; only f32 can be quantized", name, ir::name_of(constant.dtype()));
  const auto values = constant.as<float>();
  const auto bad = std::ranges::find_if(values, [](float x) { return !std::isfinite(x); });
  if (bad != values.end())
    fail("constant '{}' holds {} at index {} and cannot be quantized", name, *bad,
         bad - values.begin());
  return values;
}

}  // namespace

std::pair<std::int32_t, std::int32_t> integers_of(ir::DType type) {
  if (type == ir::DType::u8) return {0, 255};
  if (type == ir::DType::i8) return {-128, 127};
  fail("quantization to {} is not supported; use u8 or i8", ir::name_of(type));
}

std::pair<std::int32_t, std::int32_t> saturation_of(Scheme scheme) {
  const bool whole = scheme.bits == 8 && scheme.steps != Steps::reduced;
  return whole ? integers_of(scheme.type) : limits_of(scheme);
}

Parameters parameters_of(Range range, Scheme scheme) {
  if (!std::isfinite(range.low) || !std::isfinite(range.high) || range.low > range.high)
    fail("[{}, {}] is not a range that can be quantized", range.low, range.high);
  const auto [qmin, qmax] = limits_of(scheme);
  const float lower = std::min(range.low, 0.0f);
  double low = lower;
  double high = std::max({range.high, 0.0f, lower + scheme.min_range});
  if (scheme.symmetric) {
    high = std::max(-low, high);
    low = -high;
  }
  const double scale = (high - low) / (qmax - qmin);
  if (scale < std::numeric_limits<float>::min()) return {};
  const double zero_point = scheme.symmetric ? (qmin + qmax) / 2.0 : qmin - low / scale;
  return {static_cast<float>(scale), static_cast<std::int32_t>(std::nearbyint(zero_point))};
}

std::int32_t quantize_value(float x, Parameters parameters, ir::DType type) {
  const auto [low, high] = integers_of(type);
  const float q = std::nearbyint(x / parameters.scale) + static_cast<float>(parameters.zero_point);
  return static_cast<std::int32_t>(
      std::clamp(q, static_cast<float>(low), static_cast<float>(high)));
}

Channels channels_of(const ir::Tensor& constant, int axis, const std::string& name) {
  if (axis == -1) return {};
  const ir::Sizes& shape = constant.shape();
  if (axis < 0 || axis >= static_cast<int>(shape.size()))
    fail("constant '{}' has {} dimensions and no axis {}", name, shape.size(), axis);
  return {shape[axis], ir::element_count(ir::Sizes(shape.begin() + axis + 1, shape.end()))};
}

std::vector<Range> ranges_along(const ir::Tensor& constant, int axis, const std::string& name) {
  const auto values = floats(constant, name);
  const Channels channels = channels_of(constant, axis, name);
  std::vector<Range> ranges(channels.count);
  channels.for_each(values.size(), [&](std::size_t i, std::size_t channel) {
    Range& r = ranges[channel];
    r = {std::min(r.low, values[i]), std::max(r.high, values[i])};
  });
  return ranges;
}

QuantizedConstant quantize_by(const ir::Tensor& constant, std::span<const Parameters> parameters,
                              int axis, Scheme scheme, const std::string& name) {
  const auto values = floats(constant, name);
  const ir::DType type = scheme.type;
  const auto ends = saturation_of(scheme);
  const Channels channels = channels_of(constant, axis, name);
  QuantizedConstant result{ir::Tensor::zeros(type, constant.shape()), {}, {}, axis, 0};
  for (const Parameters& p : parameters) {
    result.scales.push_back(p.scale);
    result.zero_points.push_back(p.zero_point);
  }
  const auto fill = [&](auto to) {
    channels.for_each(values.size(), [&](std::size_t i, std::size_t channel) {
      to[i] = static_cast<typename decltype(to)::value_type>(std::clamp(
          quantize_value(values[i], parameters[channel], type), ends.first, ends.second));
    });
  };
  if (type == ir::DType::u8)
    fill(result.values.mutable_as<std::uint8_t>());
  else
    fill(result.values.mutable_as<std::int8_t>());
  return result;
}

QuantizedConstant quantize_per_channel(const ir::Tensor& constant, int axis,
                                       const std::string& name, Scheme scheme) {
  scheme.symmetric = true;
  const auto ranges = ranges_along(constant, axis, name);
  std::vector<Parameters> parameters;
  for (const Range& range : ranges) parameters.push_back(parameters_of(range, scheme));
  QuantizedConstant result = quantize_by(constant, parameters, axis, scheme, name);
  result.zero_channels = std::ranges::count(ranges, Range{});
  return result;
}

QuantizedConstant quantize_per_tensor(const ir::Tensor& constant, Scheme scheme,
                                      const std::string& name, std::optional<Range> given) {
  const Range own = range_of(constant, name);
  const Parameters p = parameters_of(given.value_or(own), scheme);
  QuantizedConstant result = quantize_by(constant, {&p, 1}, -1, scheme, name);
  result.zero_channels = own == Range{} ? 1 : 0;
  return result;
}

Range range_of(const ir::Tensor& constant, const std::string& name) {
  const auto values = floats(constant, name);
  if (values.empty()) return {};
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return {*low, *high};
}

}  // namespace bertcl::quant
