// SPDX-License-Identifier: Apache-2.0
// Where K is divided among work-groups.
#include "plan/gemm_parts.hpp"

#include <gtest/gtest.h>

namespace bertcl::plan {
namespace {

TEST(GemmParts, OnlyWhereTilesAreFewerThanUnits) {
  const GemmParts parts = parts_of(768, 3072, 132);  // an H100
  EXPECT_EQ(parts.up_to_rows, 320);                  // 10 x 12 tiles
  EXPECT_EQ(parts.parts, 5);
  EXPECT_LT(parts.up_to_rows / kPartRows * 12, 132);
}

TEST(GemmParts, AShortDepthStaysWhole) {
  EXPECT_EQ(parts_of(768, 768, 132).parts, 1);
  EXPECT_EQ(parts_of(768, 1024, 132).parts, 2);
}

TEST(GemmParts, AsManyColumnsAsUnitsStayWhole) {
  EXPECT_EQ(parts_of(64 * 132, 4096, 132).parts, 1);
  EXPECT_EQ(parts_of(64 * 132, 4096, 2).parts, 1);
  EXPECT_EQ(parts_of(1, 4096, 1).parts, 1);
}

TEST(GemmParts, TheSumsFitInTheirMemory) {
  opencl::DeviceInfo info;
  for (const std::uint32_t units : {1, 2, 8, 33, 132, 500})
    for (const std::int64_t n : {1, 63, 64, 65, 768, 3072, 30000})
      for (const std::int64_t k : {1, 1023, 1024, 4096, 100000}) {
        const GemmParts parts = parts_of(n, k, units);
        info.compute_units = units;
        EXPECT_LE(static_cast<std::size_t>(parts.parts * parts.up_to_rows * n) * 4,
                  bytes_of_partial_sums(info))
            << units << " units, n " << n << ", k " << k;
        EXPECT_LE(parts.parts, kMostParts);
        if (parts.parts > 1) {
          EXPECT_GE(k / parts.parts, kLeastPart);
        }
      }
}

TEST(GemmParts, NoMoreRowsThanThoseWhoseSumsFit) {
  opencl::DeviceInfo info;
  info.compute_units = 132;
  for (const std::int64_t n : {1, 63, 768, 3072, 30000})
    for (const std::int32_t parts : {2, 4, kMostParts}) {
      const std::int64_t rows = rows_of_partial_sums(info, n, parts);
      EXPECT_LE(static_cast<std::size_t>(rows * n * parts) * 4, bytes_of_partial_sums(info));
      EXPECT_GT(static_cast<std::size_t>((rows + 1) * n * parts) * 4, bytes_of_partial_sums(info));
    }
  EXPECT_EQ(rows_of_partial_sums(info, 0, 2), 0);
}

}  // namespace
}  // namespace bertcl::plan
