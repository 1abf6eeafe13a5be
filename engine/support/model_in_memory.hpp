// SPDX-License-Identifier: Apache-2.0
// What messages call a model that has no file.
#pragma once

namespace bertcl {

inline constexpr const char* kModelInMemory = "model in memory";

}  // namespace bertcl
