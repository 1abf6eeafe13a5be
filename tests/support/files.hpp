// SPDX-License-Identifier: Apache-2.0
// Files that tests read: those of the project, what was built, and third-party data. Their folders
// are compiled into files.cpp alone, so that checkouts at different places share what ccache holds.
#pragma once
#include <filesystem>
#include <string>

namespace bertcl::tests {

/// Path of a file of the project.
std::filesystem::path source_file(const std::string& relative);

/// Path of a file below the build folder.
std::filesystem::path built_file(const std::string& relative);

/// Path of a file below the folder of third-party data (../shared beside the checkout). They are
/// read in place; tests skip where they are absent.
std::filesystem::path shared_file(const std::string& relative);

}  // namespace bertcl::tests

/// Skips the running test, saying which third-party file is missing.
#define BERTCL_NEEDS(relative)                                                             \
  do {                                                                                     \
    if (!std::filesystem::exists(::bertcl::tests::shared_file(relative)))                  \
      GTEST_SKIP() << "third-party file ../shared/" << (relative)                          \
                   << " is absent: it belongs into the folder shared beside the checkout"; \
  } while (false)
