// SPDX-License-Identifier: Apache-2.0
// The only file of the tests whose options name the folders of this checkout.
#include "tests/support/files.hpp"

namespace bertcl::tests {

namespace fs = std::filesystem;

fs::path source_file(const std::string& relative) { return fs::path(BERTCL_SOURCE_DIR) / relative; }

fs::path built_file(const std::string& relative) { return fs::path(BERTCL_BUILD_DIR) / relative; }

fs::path shared_file(const std::string& relative) {
  return fs::path(BERTCL_SOURCE_DIR) / "../shared" / relative;
}

}  // namespace bertcl::tests
