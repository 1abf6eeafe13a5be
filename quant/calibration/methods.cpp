// SPDX-License-Identifier: Apache-2.0
// The list of calibration methods.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>
#include <vector>

#include "bertcl/error.hpp"
#include "quant/calibration/histogram_observer.hpp"
#include "quant/calibration/observer.hpp"
#include "support/did_you_mean.hpp"
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
  throw Error(fmt::format("unknown calibration method '{}'{}", name, suggestion(name, names)));
}

void check_settings(const Method& method, const MethodOptions& options) {
  const std::pair<bool, std::string_view> made[] = {{options.percentile.has_value(), "percentile"},
                                                    {options.bins.has_value(), "bins"},
                                                    {options.moving_average, "moving-average"}};
  for (const auto& [is_made, option] : made) {
    if (!is_made || method.settings.find(option) != std::string_view::npos) continue;
    std::vector<std::string_view> readers;
    for (const Method& m : methods())
      if (m.settings.find(option) != std::string_view::npos) readers.push_back(m.name);
    throw Error(fmt::format("method {} does not use {}; {} {}", method.name, option_name(option),
                            fmt::join(readers, ", "), readers.size() == 1 ? "does" : "do"));
  }
}

void check_search(const MethodOptions& options) {
  const int bins = options.bins.value_or(2048);
  if (options.start_bin < 1 || options.start_bin >= bins || options.stride < 1)
    throw Error(
        fmt::format("a search from bin {} in steps of {} over {} bins tries no range; start at bin "
                    "1 to {}, with steps of 1 or more",
                    options.start_bin, options.stride, bins, bins - 1));
}

}  // namespace bertcl::quant
