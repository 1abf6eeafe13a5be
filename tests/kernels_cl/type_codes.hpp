// SPDX-License-Identifier: Apache-2.0
// Type codes of the kernels (kernels_cl/lib/types.clh).
#pragma once
#include <cstdint>

namespace bertcl::tests {

constexpr int32_t kF32 = 0, kU8 = 1, kS8 = 2, kF16 = 3, kS32 = 4, kS64 = 5, kBool = 6, kBf16 = 7;

}  // namespace bertcl::tests
