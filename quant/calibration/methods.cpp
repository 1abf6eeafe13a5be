// SPDX-License-Identifier: Apache-2.0
// The list of calibration methods.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>
#include <vector>

#include "quant/calibration/histogram_observer.hpp"
#include "quant/calibration/observer.hpp"
#include "support/did_you_mean.hpp"
#include "support/fail.hpp"
#include "support/option_name.hpp"

namespace bertcl::quant {

extern const Method minmax, percentile, entropy, mse, torch_percentile, torch_entropy;

std::span<const Method> methods() {
  static const Method all[] = {minmax, percentile, entropy, mse, torch_percentile, torch_entropy};
  return all;
}

const Method& method(std::string_view name) {
  std::vector<std::string> names;
  for (const Method& m : methods()) {
    if (m.name == name) return m;
    names.emplace_back(m.name);
  }
  fail("unknown calibration method '{}'{}", name, suggestion(name, names));
}

void check_settings(const Method& method, const MethodOptions& options) {
  const std::pair<bool, std::string_view> made[] = {
      {options.percentile.has_value(), "percentile"},
      {options.bins.has_value(), "bins"},
      {options.quantized_bins.has_value(), "quantized-bins"},
      {options.start_bin.has_value(), "start-bin"},
      {options.stride.has_value(), "stride"},
      {options.moving_average, "moving-average"},
      {options.averaging_constant.has_value(), "averaging-constant"},
      {options.averaged_samples.has_value(), "averaged-samples"}};
  for (const auto& [is_made, option] : made) {
    const auto is_read_by = [&](const Method& m) {
      return m.settings.find(fmt::format(" {} ", option)) != std::string_view::npos;
    };
    if (!is_made) continue;
    if (is_read_by(method)) {
      if (option.starts_with("averag") && !options.moving_average)
        fail("{} has no effect without {}", option_name(option), option_name("moving-average"));
      continue;
    }
    std::vector<std::string_view> readers;
    for (const Method& m : methods())
      if (is_read_by(m)) readers.push_back(m.name);
    fail("{} has no effect with {}; use {}", option_name(option),
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
