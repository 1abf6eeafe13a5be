// SPDX-License-Identifier: Apache-2.0
// Placement in the arena, without any device.
#include "plan/memory.hpp"

#include <gtest/gtest.h>

#include <random>

namespace bertcl::plan {
namespace {

bool live_together(const Lifetime& a, const Lifetime& b) {
  return a.first <= b.last && b.first <= a.last;
}

std::vector<Lifetime> random_lifetimes(std::mt19937& random) {
  std::vector<Lifetime> values(1 + random() % 60);
  for (Lifetime& v : values) {
    v.first = static_cast<int>(random() % 40) - 1;
    v.last = v.first + static_cast<int>(random() % 8);
    v.bytes = static_cast<std::int64_t>(random() % 5000);
  }
  return values;
}

TEST(ArenaLayout, ValuesThatFollowEachOtherShareMemory) {
  const ArenaLayout p = plan_arena({{100, 0, 1}, {100, 2, 3}, {100, 4, 5}}, 64);
  EXPECT_EQ(p.arena_bytes, 128);
  EXPECT_EQ(p.offsets, (std::vector<std::int64_t>{0, 0, 0}));
}

TEST(ArenaLayout, AGapBetweenTwoIsUsed) {
  // 0 and 2 live throughout around a gap that 1 leaves free for 3.
  const ArenaLayout p = plan_arena({{256, 0, 9}, {192, 0, 3}, {128, 0, 9}, {64, 4, 9}}, 64);
  EXPECT_EQ(p.arena_bytes, 256 + 192 + 128);
}

TEST(ArenaLayout, RandomLifetimesNeverOverlapAndStayNearTheBound) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    const std::vector<Lifetime> values = random_lifetimes(random);
    const ArenaLayout p = plan_arena(values, 64);
    std::int64_t bound = 0;  // most bytes that live at one step
    for (int step = -1; step < 60; ++step) {
      std::int64_t live = 0;
      for (const Lifetime& v : values)
        if (v.first <= step && step <= v.last) live += (v.bytes + 63) / 64 * 64;
      bound = std::max(bound, live);
    }
    EXPECT_GE(p.arena_bytes, bound);
    EXPECT_LE(p.arena_bytes, 2 * bound + 64);
    for (std::size_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(p.offsets[i] % 64, 0);
      EXPECT_LE(p.offsets[i] + values[i].bytes, p.arena_bytes);
      for (std::size_t j = 0; j < i; ++j) {
        if (!live_together(values[i], values[j])) continue;
        const bool apart = p.offsets[i] + values[i].bytes <= p.offsets[j] ||
                           p.offsets[j] + values[j].bytes <= p.offsets[i];
        EXPECT_TRUE(apart || values[i].bytes == 0 || values[j].bytes == 0)
            << round << " " << i << " " << j;
      }
    }
  }
}

TEST(SharedBuffers, AreSharedByValuesThatFollowEachOther) {
  const SharedBuffers b = share_buffers({{100, 0, 1}, {300, 2, 3}, {200, 3, 5}});
  EXPECT_EQ(b.of, (std::vector<std::size_t>{0, 0, 1}));
  EXPECT_EQ(b.bytes, (std::vector<std::int64_t>{300, 200}));
}

TEST(SharedBuffers, AreNeverSharedByValuesThatLiveTogether) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    const std::vector<Lifetime> values = random_lifetimes(random);
    const SharedBuffers b = share_buffers(values);
    ASSERT_EQ(b.of.size(), values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      ASSERT_LT(b.of[i], b.bytes.size());
      EXPECT_GE(b.bytes[b.of[i]], values[i].bytes);
      for (std::size_t j = 0; j < i; ++j)
        EXPECT_FALSE(b.of[i] == b.of[j] && live_together(values[i], values[j]))
            << round << " " << i << " " << j;
    }
  }
}

}  // namespace
}  // namespace bertcl::plan
