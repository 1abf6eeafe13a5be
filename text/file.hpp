// SPDX-License-Identifier: Apache-2.0
// Whole files as text.
#pragma once
#include <filesystem>
#include <string>

namespace bertcl::text {

/// Content of a file, without a byte order mark. Throws Error that names it.
std::string read_file(const std::filesystem::path& path);

}  // namespace bertcl::text
