// SPDX-License-Identifier: Apache-2.0
// Independent work of the host on all cores.
#include "quant/calibration/parallel.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

namespace bertcl::quant::tests {
namespace {

TEST(Parallel, DoesEachPieceOnce) {
  for (const std::size_t count : {0, 1, 2, 1000}) {
    std::vector<int> done(count, 0);
    in_parallel(count, [&](std::size_t i) { ++done[i]; });
    EXPECT_EQ(done, std::vector<int>(count, 1));
  }
}

TEST(Parallel, ThrowsWhatAPieceThrew) {
  const auto fail_at = [](std::size_t piece) {
    in_parallel(100, [&](std::size_t i) {
      if (i == piece) throw std::runtime_error("no");
    });
  };
  for (const std::size_t piece : {0, 1, 99}) EXPECT_THROW(fail_at(piece), std::runtime_error);
}

}  // namespace
}  // namespace bertcl::quant::tests
