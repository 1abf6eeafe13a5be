// SPDX-License-Identifier: Apache-2.0
// From a range of values to scale and zero point, and from floats to 8-bit integers.
#include "quant/parameters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "bertcl/error.hpp"

namespace bertcl::quant {
namespace {

struct Limits {
  std::int32_t low, high;
};

Limits type_limits(ir::DType type) {
  if (type == ir::DType::u8) return {0, 255};
  if (type == ir::DType::i8) return {-128, 127};
  throw Error(fmt::format("quantization to {} is not supported; use u8 or i8", ir::name_of(type)));
}

/// Symmetric i8 leaves out -128; symmetric u8 uses all of its range.
Limits limits_of(Scheme scheme) {
  const Limits limits = type_limits(scheme.type);
  return scheme.symmetric && scheme.type == ir::DType::i8 ? Limits{-127, 127} : limits;
}

std::span<const float> floats(const ir::Tensor& constant, const std::string& name) {
  if (constant.dtype() != ir::DType::f32)
    throw Error(fmt::format("constant '{}' is {}; only f32 is quantized", name,
                            ir::name_of(constant.dtype())));
  const auto values = constant.as<float>();
  const auto bad =
      std::find_if(values.begin(), values.end(), [](float x) { return !std::isfinite(x); });
  if (bad != values.end())
    throw Error(fmt::format("constant '{}' holds {} at index {} and cannot be quantized", name,
                            *bad, bad - values.begin()));
  return values;
}

template <class T>
void quantize_into(std::span<const float> from, std::span<T> to, const QuantizedConstant& result,
                   std::int64_t channels, std::int64_t inner, ir::DType type) {
  for (std::size_t i = 0; i < from.size(); ++i) {
    const auto channel = static_cast<std::size_t>(static_cast<std::int64_t>(i) / inner % channels);
    to[i] = static_cast<T>(
        quantize_value(from[i], {result.scales[channel], result.zero_points[channel]}, type));
  }
}

}  // namespace

Parameters parameters_of(Range range, Scheme scheme) {
  if (!std::isfinite(range.low) || !std::isfinite(range.high) || range.low > range.high)
    throw Error(fmt::format("[{}, {}] is no range to quantize", range.low, range.high));
  const auto [qmin, qmax] = limits_of(scheme);
  double low = std::min(range.low, 0.0f);
  double high = std::max(range.high, 0.0f);
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
  const auto [low, high] = type_limits(type);
  const float q = std::nearbyint(x / parameters.scale) + static_cast<float>(parameters.zero_point);
  return static_cast<std::int32_t>(
      std::clamp(q, static_cast<float>(low), static_cast<float>(high)));
}

QuantizedConstant quantize_per_channel(const ir::Tensor& constant, int axis,
                                       const std::string& name) {
  const auto values = floats(constant, name);
  const ir::Sizes& shape = constant.shape();
  if (axis < 0 || axis >= static_cast<int>(shape.size()))
    throw Error(
        fmt::format("constant '{}' has {} dimensions and no axis {}", name, shape.size(), axis));
  const std::int64_t channels = shape[static_cast<std::size_t>(axis)];
  const std::int64_t inner = ir::element_count({shape.begin() + axis + 1, shape.end()});

  std::vector<float> largest(static_cast<std::size_t>(channels), 0.0f);
  for (std::size_t i = 0; i < values.size(); ++i) {
    float& a = largest[static_cast<std::size_t>(static_cast<std::int64_t>(i) / inner % channels)];
    a = std::max(a, std::abs(values[i]));
  }
  QuantizedConstant result{ir::Tensor::zeros(ir::DType::i8, shape), {}, {}, axis, 0};
  for (const float a : largest) {
    const Parameters p = parameters_of({-a, a}, {ir::DType::i8, true});
    result.scales.push_back(p.scale);
    result.zero_points.push_back(p.zero_point);
    result.zero_channels += a == 0.0f;
  }
  quantize_into(values, result.values.mutable_as<std::int8_t>(), result, channels, inner,
                ir::DType::i8);
  return result;
}

QuantizedConstant quantize_per_tensor(const ir::Tensor& constant, Scheme scheme,
                                      const std::string& name) {
  const Range range = range_of(constant, name);
  const Parameters p = parameters_of(range, scheme);
  QuantizedConstant result{ir::Tensor::zeros(scheme.type, constant.shape()),
                           {p.scale},
                           {p.zero_point},
                           -1,
                           range == Range{} ? 1 : 0};
  const auto values = constant.as<float>();
  const std::int64_t inner = std::max<std::int64_t>(constant.size(), 1);
  if (scheme.type == ir::DType::u8)
    quantize_into(values, result.values.mutable_as<std::uint8_t>(), result, 1, inner, scheme.type);
  else
    quantize_into(values, result.values.mutable_as<std::int8_t>(), result, 1, inner, scheme.type);
  return result;
}

Range range_of(const ir::Tensor& constant, const std::string& name) {
  const auto values = floats(constant, name);
  if (values.empty()) return {};
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return {*low, *high};
}

}  // namespace bertcl::quant
