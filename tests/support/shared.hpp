// SPDX-License-Identifier: Apache-2.0
// Third-party test data stand beside the project and are read in place; tests skip where they are
// absent.
#pragma once
#include <filesystem>
#include <string>

namespace bertcl::tests {

/// Path of a file below the folder of third-party data (../shared beside the checkout).
inline std::filesystem::path shared_file(const std::string& relative) {
  return std::filesystem::path(BERTCL_SHARED_DIR) / relative;
}

}  // namespace bertcl::tests

/// Skips the running test, saying which third-party file is missing.
#define BERTCL_NEEDS(relative)                                                             \
  do {                                                                                     \
    if (!std::filesystem::exists(::bertcl::tests::shared_file(relative)))                  \
      GTEST_SKIP() << "third-party file ../shared/" << (relative)                          \
                   << " is absent: it belongs into the folder shared beside the checkout"; \
  } while (false)
