// SPDX-License-Identifier: Apache-2.0
// What options of the public interface may be.
#pragma once
#include <cstdint>
#include <string_view>

#include "support/fail.hpp"
#include "support/option_name.hpp"

namespace bertcl {

/// Throws Error if it is negative; `zero` is what 0 stands for.
inline void check_not_negative(std::string_view name, std::int64_t value, std::string_view zero) {
  if (value < 0) fail("{} is {}, must not be negative (0: {})", option_name(name), value, zero);
}

}  // namespace bertcl
