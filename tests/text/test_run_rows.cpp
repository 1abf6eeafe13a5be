// SPDX-License-Identifier: Apache-2.0
// Rows in batches of similar length, and the rows of their outputs.
#include "text/run_rows.hpp"

#include "tests/support/matchers.hpp"

namespace bertcl::text {
namespace {

TEST(RunRows, RowsWithoutTokensAreNotRun) {
  const std::vector<std::int32_t> two{4, 5}, one{6};
  const std::vector<Row> rows{{two, 2}, {}, {one, 1}};
  for (const bool by_token : {false, true}) {
    std::vector<std::vector<float>> outputs(rows.size(), {-1.0F});
    const auto model = [&](const Batch& batch) {
      EXPECT_THAT(batch.ids, ElementsAre(4, 5, 6));
      EXPECT_THAT(batch.offsets, ElementsAre(0, 2, 3));
      return by_token ? std::vector<float>{1, 2, 3} : std::vector<float>{3, 4};
    };
    const Done done = run_rows(rows, {by_token, 1, false, "a number"}, {}, model,
                               [&](std::size_t i, std::span<const float> x) {
                                 outputs[i] = {x.begin(), x.end()};
                               });
    EXPECT_EQ(done.rows, 3u);
    EXPECT_EQ(done.tokens, 3u);
    using Rows = std::vector<std::vector<float>>;
    EXPECT_EQ(outputs, by_token ? (Rows{{1, 2}, {}, {3}}) : (Rows{{3}, {0}, {4}}));
  }
}

TEST(RunRows, NothingButRowsWithoutTokensNeedsNoModel) {
  const std::vector<Row> rows(2);
  std::size_t visits = 0;
  const auto model = [](const Batch&) -> std::vector<float> {
    ADD_FAILURE() << "there is nothing to run";
    return {};
  };
  run_rows(rows, {false, 3, false, "a vector"}, {}, model,
           [&](std::size_t, std::span<const float> x) {
             EXPECT_THAT(x, ElementsAre(0, 0, 0));
             ++visits;
           });
  EXPECT_EQ(visits, 2u);
}

// Outputs of two rows, of two tokens and one.
TEST(RunRows, OutputsHaveTheSizeOfTheHead) {
  const std::vector<std::int32_t> two{4, 5}, one{6};
  const std::vector<Row> rows{{two, 2}, {one, 1}};
  const auto classes_of = [&](const Head& head, std::size_t values) {
    std::vector<std::size_t> sizes(rows.size());
    run_rows(
        rows, head, {}, [&](const Batch&) { return std::vector<float>(values); },
        [&](std::size_t i, std::span<const float> x) { sizes[i] = x.size(); });
    return sizes;
  };
  EXPECT_THAT(classes_of({false, 3, false, "3"}, 6), ElementsAre(3, 3));
  EXPECT_THAT(classes_of({false, 3, true, "3"}, 8), ElementsAre(4, 4));
  EXPECT_THAT(classes_of({true, 2, false, "2"}, 6), ElementsAre(4, 2));
  EXPECT_THAT(classes_of({true, 2, true, "2"}, 9), ElementsAre(6, 3));
  const auto refused = [&](bool by_token, bool or_more, std::size_t values) {
    return error_of([&] { classes_of({by_token, 3, or_more, "3 tags"}, values); });
  };
  for (const bool or_more : {false, true}) {
    EXPECT_THAT(refused(false, or_more, 7),
                HasSubstr("7 values for a batch of 2 texts with 3 tokens; the task needs 3 tags "
                          "for each text"));
    EXPECT_THAT(refused(false, or_more, 4), HasSubstr("4 values"));
    EXPECT_THAT(refused(true, or_more, 10), HasSubstr("needs 3 tags for each token"));
    EXPECT_THAT(refused(true, or_more, 6), HasSubstr("6 values"));
    EXPECT_THAT(refused(true, or_more, 0), HasSubstr("0 values"));
  }
  EXPECT_THAT(refused(false, false, 8), HasSubstr("8 values"));
  EXPECT_THAT(refused(true, false, 12), HasSubstr("12 values"));
}

}  // namespace
}  // namespace bertcl::text
