// SPDX-License-Identifier: Apache-2.0
// Where K is divided among work-groups.
#include "plan/split_k.hpp"

#include <gtest/gtest.h>

namespace bertcl::plan {
namespace {

TEST(SplitK, OnlyWhereTilesAreFewerThanUnits) {
  const SplitK split_k = split_k_of(768, 3072, 132);  // an H100
  EXPECT_EQ(split_k.up_to_rows, 320);                 // 10 x 12 tiles
  EXPECT_EQ(split_k.splits, 5);
  EXPECT_LT(split_k.up_to_rows / kernels::split_k_variants().tile[0] * 12, 132);
}

TEST(SplitK, AShortDepthStaysWhole) {
  EXPECT_EQ(split_k_of(768, 768, 132).splits, 1);
  EXPECT_EQ(split_k_of(768, 1024, 132).splits, 2);
}

TEST(SplitK, AsManyColumnsAsUnitsStayWhole) {
  EXPECT_EQ(split_k_of(64 * 132, 4096, 132).splits, 1);
  EXPECT_EQ(split_k_of(64 * 132, 4096, 2).splits, 1);
  EXPECT_EQ(split_k_of(1, 4096, 1).splits, 1);
}

TEST(SplitK, TheSumsFitInTheirMemory) {
  opencl::DeviceInfo info;
  for (const std::uint32_t units : {1, 2, 8, 33, 132, 500})
    for (const std::int64_t n : {1, 63, 64, 65, 768, 3072, 30000})
      for (const std::int64_t k : {1, 1023, 1024, 4096, 100000}) {
        const SplitK split_k = split_k_of(n, k, units);
        info.compute_units = units;
        EXPECT_LE(static_cast<std::size_t>(split_k.splits * split_k.up_to_rows * n) * 4,
                  bytes_of_partial_sums(info))
            << units << " units, n " << n << ", k " << k;
        EXPECT_LE(split_k.splits, kMaxSplits);
        if (split_k.splits > 1) {
          EXPECT_GE(k / split_k.splits, kMinSplitDepth);
        }
      }
}

TEST(SplitK, NoMoreRowsThanThoseWhoseSumsFit) {
  opencl::DeviceInfo info;
  info.compute_units = 132;
  for (const std::int64_t n : {1, 63, 768, 3072, 30000})
    for (const std::int32_t splits : {2, 4, kMaxSplits}) {
      const std::int64_t rows = rows_of_partial_sums(info, n, splits);
      EXPECT_LE(static_cast<std::size_t>(rows * n * splits) * 4, bytes_of_partial_sums(info));
      EXPECT_GT(static_cast<std::size_t>((rows + 1) * n * splits) * 4, bytes_of_partial_sums(info));
    }
  EXPECT_EQ(rows_of_partial_sums(info, 0, 2), 0);
}

}  // namespace
}  // namespace bertcl::plan
