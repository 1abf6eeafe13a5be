// SPDX-License-Identifier: Apache-2.0
// Bytes as text.
#pragma once
#include <cstddef>
#include <span>
#include <string>

namespace bertcl::text {

/// RFC 4648, with padding.
std::string base64(std::span<const std::byte> bytes);

}  // namespace bertcl::text
