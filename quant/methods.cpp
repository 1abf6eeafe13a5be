// SPDX-License-Identifier: Apache-2.0
// The list of calibration methods.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "bertcl/error.hpp"
#include "quant/histogram_observer.hpp"
#include "quant/observer.hpp"

namespace bertcl::quant {

std::span<const Method> methods() {
  static const Method all[] = {minmax, percentile, entropy, mse, torch_percentile, torch_entropy};
  return all;
}

const Method& method(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Method& m : methods()) {
    if (m.name == name) return m;
    names.push_back(m.name);
  }
  throw Error(
      fmt::format("'{}' is no calibration method; there are {}", name, fmt::join(names, ", ")));
}

void check_search(const MethodOptions& options) {
  const int bins = options.bins.value_or(2048);
  if (options.start_bin < 1 || options.start_bin >= bins || options.stride < 1)
    throw Error(
        fmt::format("a search from bin {} in steps of {} over {} bins tries nothing; the first is "
                    "1 to {}, a step 1 or more",
                    options.start_bin, options.stride, bins, bins - 1));
}

}  // namespace bertcl::quant
