// SPDX-License-Identifier: Apache-2.0
// The class that a model predicts.
#pragma once
#include <algorithm>
#include <cstddef>
#include <span>

namespace bertcl::tasks {

/// Index of the largest value, the first of equals. Requires a value.
template <typename T>
std::size_t argmax(std::span<const T> values) {
  return static_cast<std::size_t>(std::ranges::max_element(values) - values.begin());
}

}  // namespace bertcl::tasks
