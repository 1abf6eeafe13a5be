// SPDX-License-Identifier: Apache-2.0
// Division that rounds up. Operands are not negative, and a + b does not overflow.
#pragma once
#include <concepts>
#include <type_traits>

namespace bertcl {

template <std::integral T>
constexpr T ceil_div(T a, std::type_identity_t<T> b) {
  return (a + b - 1) / b;
}

/// The smallest multiple of `step` that is not less than `a`.
template <std::integral T>
constexpr T round_up(T a, std::type_identity_t<T> step) {
  return ceil_div(a, step) * step;
}

}  // namespace bertcl
