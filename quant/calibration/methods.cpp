// SPDX-License-Identifier: Apache-2.0
// The list of calibration methods.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "quant/calibration/histogram_observer.hpp"
#include "quant/calibration/observer.hpp"
#include "support/did_you_mean.hpp"
#include "support/fail.hpp"
#include "support/option_name.hpp"

namespace bertcl::quant {

extern const Method kMinmax, kPercentile, kEntropy, kMse, kTorchPercentile, kTorchEntropy;

std::span<const Method> methods() {
  static const Method all[] = {kMinmax, kPercentile,      kEntropy,
                               kMse,    kTorchPercentile, kTorchEntropy};
  return all;
}

const Method& method(std::string_view name) { return named(methods(), "calibration method", name); }

void check_settings(const Method& method, const MethodOptions& options) {
  const struct {
    bool is_given;
    std::string_view option;
    bool SettingsRead::*reads;
    bool needs_moving_average = false;
  } settings[] = {
      {options.percentile.has_value(), "percentile", &SettingsRead::percentile},
      {options.bins.has_value(), "bins", &SettingsRead::bins},
      {options.quantized_bins.has_value(), "quantized-bins", &SettingsRead::quantized_bins},
      {options.start_bin.has_value(), "start-bin", &SettingsRead::start_bin},
      {options.stride.has_value(), "stride", &SettingsRead::stride},
      {options.moving_average, "moving-average", &SettingsRead::moving_average},
      {options.averaging_constant.has_value(), "averaging-constant", &SettingsRead::moving_average,
       true},
      {options.averaged_samples.has_value(), "averaged-samples", &SettingsRead::moving_average,
       true}};
  for (const auto& setting : settings) {
    if (!setting.is_given) continue;
    if (method.reads.*setting.reads) {
      if (setting.needs_moving_average && !options.moving_average)
        fail("{} has no effect without {}", option_name(setting.option),
             option_name("moving-average"));
      continue;
    }
    std::vector<std::string_view> readers;
    for (const Method& m : methods())
      if (m.reads.*setting.reads) readers.push_back(m.name);
    fail("{} has no effect with {}; use {}", option_name(setting.option),
         option_name("method", method.name),
         option_name("method", fmt::format("{}", fmt::join(readers, " or "))));
  }
}

BoundSearch bound_search_of(const MethodOptions& options) {
  const int bins = options.bins.value_or(2048);
  const int start = options.start_bin.value_or(128), stride = options.stride.value_or(1);
  if (start < 1 || start >= bins || stride < 1)
    fail("no bin to search: {} is {} and must be 1 to {}, {} is {} and must be 1 or more",
         option_name("start-bin"), start, bins - 1, option_name("stride"), stride);
  return {static_cast<std::size_t>(start), static_cast<std::size_t>(stride)};
}

}  // namespace bertcl::quant
