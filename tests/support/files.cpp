// SPDX-License-Identifier: Apache-2.0
#include "tests/support/files.hpp"

namespace bertcl::tests {

namespace fs = std::filesystem;

fs::path source_file(const std::string& relative) { return fs::path(BERTCL_SOURCE_DIR) / relative; }

fs::path built_file(const std::string& relative) { return fs::path(BERTCL_BUILD_DIR) / relative; }

fs::path shared_file(const std::string& relative) {
  return fs::path(BERTCL_SOURCE_DIR).parent_path() / "shared" / relative;
}

}  // namespace bertcl::tests
