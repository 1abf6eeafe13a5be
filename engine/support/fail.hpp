// SPDX-License-Identifier: Apache-2.0
// Errors whose message is formatted.
#pragma once
#include <fmt/format.h>

#include <utility>

#include "bertcl/error.hpp"

namespace bertcl {

/// Throws Error with that message.
template <class... T>
[[noreturn]] void fail(fmt::format_string<T...> message, T&&... values) {
  throw Error(fmt::format(message, std::forward<T>(values)...));
}

}  // namespace bertcl
