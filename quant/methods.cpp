// SPDX-License-Identifier: Apache-2.0
// The list of calibration methods.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "bertcl/error.hpp"
#include "quant/observer.hpp"

namespace bertcl::quant {

std::span<const Method> methods() {
  static const Method all[] = {minmax, percentile};
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

}  // namespace bertcl::quant
