// SPDX-License-Identifier: Apache-2.0
// Arithmetic on sizes read from files: overflow of 64 bits is an error, not a wrong size.
#pragma once
#include <cstdint>
#include <string_view>

#include "bertcl/error.hpp"

namespace bertcl::ir {

/// a * b. Throws Error that names `what` if it overflows.
inline std::int64_t product(std::int64_t a, std::int64_t b, std::string_view what) {
  std::int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result))
    throw Error(std::string(what) + " is too large: " + std::to_string(a) + " * " +
                    std::to_string(b) + " overflows 64 bits",
                ErrorCode::out_of_memory);
  return result;
}

/// a + b, likewise.
inline std::int64_t sum(std::int64_t a, std::int64_t b, std::string_view what) {
  std::int64_t result = 0;
  if (__builtin_add_overflow(a, b, &result))
    throw Error(std::string(what) + " is too large: " + std::to_string(a) + " + " +
                    std::to_string(b) + " overflows 64 bits",
                ErrorCode::out_of_memory);
  return result;
}

}  // namespace bertcl::ir
