// SPDX-License-Identifier: Apache-2.0
// Texts that the tests keep, whose diff in review shows what a change does.
#pragma once
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/support/files.hpp"

namespace bertcl::tests {

/// Fails where the file of the project, "tests/plan/golden_plans.txt", has another text, and says
/// how to replace it.
inline void expect_golden_text(const std::string& found, const std::string& relative) {
  const std::filesystem::path kept = source_file(relative);
  std::ifstream file(kept);
  const std::string expected(std::istreambuf_iterator<char>(file), {});
  const std::filesystem::path made = built_file(kept.filename().string());
  if (found != expected) std::ofstream(made) << found;
  EXPECT_EQ(found, expected) << "if this is intended: cp " << made.string() << ' ' << kept.string();
}

}  // namespace bertcl::tests
