// SPDX-License-Identifier: Apache-2.0
// Whole files as text.
#pragma once
#include <filesystem>
#include <string>
#include <string_view>

#include "support/read_bytes.hpp"

namespace bertcl::text {

/// That of UTF-8, which a text may begin with.
inline constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
inline std::string_view without_byte_order_mark(std::string_view text) {
  return text.substr(text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0);
}

using bertcl::read_bytes;
/// The same without a byte order mark.
std::string read_file(const std::filesystem::path& path);

/// Throws Error that names the file if it is a pipe, a device or the like: the files of a model are
/// looked for, so they must not make anyone wait, nor have no end.
void check_regular_file(const std::filesystem::path& path);

/// True for a file that is there, also where it cannot be looked at (a link to itself, a folder
/// without permission): whoever reads it says why.
bool is_present(const std::filesystem::path& path);

}  // namespace bertcl::text
