// SPDX-License-Identifier: Apache-2.0
// Work-groups of independent work-items.
#include "opencl/grid.hpp"

#include <gtest/gtest.h>

namespace bertcl::opencl {
namespace {

using Sizes = std::array<std::size_t, 3>;

std::size_t product(const Sizes& sizes) { return sizes[0] * sizes[1] * sizes[2]; }

TEST(InGroups, OneItemIsAlone) {
  const Grid grid = in_groups({1, 1, 1}, 32, 1024, 10);
  EXPECT_EQ(grid.global, (Sizes{1, 1, 1}));
  EXPECT_EQ(grid.local, (Sizes{1, 1, 1}));
}

TEST(InGroups, PrimesArePaddedToWholeGroups) {
  const Grid grid = in_groups({10007, 1, 1}, 32, 1024, 10);
  EXPECT_EQ(grid.local, (Sizes{64, 1, 1}));
  EXPECT_EQ(grid.global, (Sizes{10048, 1, 1}));
}

TEST(InGroups, AShortFirstAxisLeavesRoomForTheSecond) {
  const Grid grid = in_groups({3, 500, 2}, 64, 1024, 10);
  EXPECT_EQ(grid.local, (Sizes{4, 16, 1}));
  EXPECT_EQ(grid.global, (Sizes{4, 512, 2}));
}

TEST(InGroups, FewItemsAreSpreadOverTheUnits) {
  EXPECT_EQ(in_groups({1000, 1, 1}, 1, 1024, 100).local, (Sizes{16, 1, 1}));
  EXPECT_EQ(in_groups({1000, 1, 1}, 32, 1024, 100).local, (Sizes{32, 1, 1}));
}

TEST(InGroups, EveryGroupIsAllowedAndCoversTheItems) {
  for (const std::size_t most : {1, 2, 48, 64, 256})
    for (const std::size_t multiple : {1, 8, 24, 32, 64, 128})
      for (const Sizes& items : {Sizes{1, 1, 9}, {1, 7, 1}, {2, 1, 1}, {65, 1, 1}, {129, 129, 3}}) {
        const Grid grid = in_groups(items, multiple, most, 4);
        EXPECT_LE(product(grid.local), most);
        EXPECT_EQ(grid.global[2], items[2]);
        if (most > 1 && items[0] * items[1] > 1) {
          EXPECT_GT(product(grid.local), 1u);
        }
        for (std::size_t d = 0; d < 3; ++d) {
          EXPECT_GE(grid.global[d], items[d]);
          EXPECT_EQ(grid.global[d] % grid.local[d], 0u);
          EXPECT_LT(grid.global[d], items[d] + grid.local[d]);
        }
      }
}

TEST(HintOfGroups, WhereAnotherAxisThanTheFirstHasTooMany) {
  EXPECT_EQ(hint_of_groups({{256 * 70'000, 65'535, 65'535}, {256, 1, 1}}), "");
  EXPECT_EQ(hint_of_groups({{1, 4 * 65'535, 1}, {1, 4, 1}}), "");
  EXPECT_NE(hint_of_groups({{256, 65'536, 1}, {256, 1, 1}}).find("at most 65535"),
            std::string::npos);
  EXPECT_NE(hint_of_groups({{256, 1, 65'536}, {256, 1, 1}}), "");
}

}  // namespace
}  // namespace bertcl::opencl
