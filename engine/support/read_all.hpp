// SPDX-License-Identifier: Apache-2.0
// The content of a stream.
#pragma once
#include <array>
#include <cstddef>
#include <istream>
#include <string>

namespace bertcl {

/// All that is left of it; bad() afterwards where reading fails. An iterator over its buffer would
/// throw what names neither the file nor the reason.
inline std::string read_all(std::istream& stream) {
  std::string content;
  std::array<char, std::size_t{1} << 16> part;
  while (stream.read(part.data(), part.size()) || stream.gcount() > 0)
    content.append(part.data(), static_cast<std::size_t>(stream.gcount()));
  return content;
}

}  // namespace bertcl
