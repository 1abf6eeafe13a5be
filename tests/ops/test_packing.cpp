// SPDX-License-Identifier: Apache-2.0
// Rows of a padded batch, and batches of more tokens than 32 bits count.
#include "ops/packing.hpp"

#include "tests/support/matchers.hpp"

namespace bertcl::ops {
namespace {

TEST(Packing, DropsPaddingAtTheEndsOfRows) {
  const std::vector<std::int64_t> mask{1, 1, 0, 0, 0, 0, 1, 1, 1};
  const Packing dropped = make_packing(3, 3, mask, true);
  EXPECT_EQ(dropped.seq_offsets, (std::vector<std::int32_t>{0, 2, 2, 5}));
  EXPECT_EQ(dropped.positions, (std::vector<std::int32_t>{0, 1, 0, 1, 2}));
  EXPECT_EQ(dropped.longest, 3);
  const Packing kept = make_packing(3, 3, mask, false);
  EXPECT_EQ(kept.seq_offsets, (std::vector<std::int32_t>{0, 3, 6, 9}));
  EXPECT_EQ(kept.key_mask, (std::vector<std::uint8_t>{1, 1, 0, 0, 0, 0, 1, 1, 1}));
  const std::vector<std::int64_t> hole{1, 1, 1, 1, 0, 1};
  EXPECT_EQ(make_packing(2, 3, hole, true).tokens(), 6);
}

TEST(Packing, RefusesMoreTokensThan32BitsCount) {
  EXPECT_NO_THROW(check_tokens(INT32_MAX));
  for (const std::int64_t batch : {1 << 16, 3 << 15})
    EXPECT_ERROR(HasSubstr(std::to_string(batch << 16) + " tokens is too large"),
                 make_packing(batch, 1 << 16, {}, true));
  EXPECT_ERROR(HasSubstr("overflows 64 bits"), make_packing(INT32_MAX, INT64_MAX, {}, true));
}

TEST(Packing, RefusesMoreSequencesThan32BitsCount) {
  EXPECT_EQ(make_packing(3, 0, {}, true).seq_offsets, (std::vector<std::int32_t>{0, 0, 0, 0}));
  EXPECT_ERROR(HasSubstr("1099511627776 sequences is too large"),
               make_packing(std::int64_t{1} << 40, 0, {}, true));
}

}  // namespace
}  // namespace bertcl::ops
