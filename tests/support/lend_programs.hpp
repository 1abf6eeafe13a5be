// SPDX-License-Identifier: Apache-2.0
// Caches that begin with the programs of other tests.
#pragma once
#include <cstdlib>
#include <filesystem>

#include "tests/support/scratch_folder.hpp"

namespace bertcl::tests {

/// Puts the programs that other tests have built into the cache that `folder` is going to be: for
/// tests that check neither building nor storing.
inline void lend_programs(const ScratchFolder& folder) {
  const char* cache = std::getenv("BERTCL_CACHE");
  if (!cache || !std::filesystem::is_directory(cache)) return;
  for (const auto& entry : std::filesystem::directory_iterator(cache))
    if (entry.path().extension() == ".clbin")
      std::filesystem::create_symlink(std::filesystem::absolute(entry.path()),
                                      folder / entry.path().filename().string());
}

}  // namespace bertcl::tests
