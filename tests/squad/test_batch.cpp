// SPDX-License-Identifier: Apache-2.0
// Forming of batches.
#include "squad/batch.hpp"

#include <algorithm>
#include <random>

#include "tests/squad/support.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::squad {
namespace {

TEST(Batches, GroupsHoldEachRowOnceWithinTheBounds) {
  std::mt19937 random(8);
  std::vector<std::size_t> lengths(100);
  for (std::size_t& length : lengths) length = 3 + random() % 45;
  for (const BatchOptions options : {BatchOptions{500, 6}, BatchOptions{20, 6}, BatchOptions{}}) {
    std::vector<int> seen(lengths.size(), 0);
    for (const auto& group : text::group_by_length(lengths, options)) {
      ASSERT_FALSE(group.empty());
      const auto rows = static_cast<int>(group.size());
      const auto longest = static_cast<int>(lengths[group.front()]);
      EXPECT_LE(rows, options.max_batch);
      EXPECT_TRUE(rows == 1 || rows * longest <= options.max_tokens);
      for (const std::size_t index : group) ++seen[index];
    }
    EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), static_cast<int>(lengths.size()));
  }
}

TEST(Batches, HoldWindowsOneAfterTheOther) {
  const Document document = make_document("a b c", letter_tokenizer());
  const Document shorter = make_document("a", letter_tokenizer());
  std::vector<Feature> features = make_features(shorter, "who", letter_tokenizer(), {});
  features.push_back(make_features(document, "who", letter_tokenizer(), {})[0]);
  const Batch batch = text::make_batch(rows_of(features));
  EXPECT_EQ(batch.rows(), 2u);
  EXPECT_THAT(batch.offsets, ElementsAre(0, 5, 12));
  const auto id = [](const char* token) {
    return static_cast<std::int64_t>(letter_tokenizer().token_id(token));
  };
  EXPECT_THAT(batch.ids, ElementsAre(2, id("who"), 3, id("a"), 3,  //
                                     2, id("who"), 3, id("a"), id("b"), id("c"), 3));
  EXPECT_THAT(batch.token_type_ids, ElementsAre(0, 0, 0, 1, 1, 0, 0, 0, 1, 1, 1, 1));
}

}  // namespace
}  // namespace bertcl::squad
