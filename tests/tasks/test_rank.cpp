// SPDX-License-Identifier: Apache-2.0
// Passages in the order of scores that depend on nothing but a row's tokens.
#include "tasks/rank.hpp"

#include <cmath>
#include <limits>
#include <utility>

#include "tasks/scores/class_scores.hpp"
#include "tests/support/matchers.hpp"
#include "tests/tasks/support.hpp"

namespace bertcl::tasks {
namespace {

/// The logit of a pair: how many letters its passage has, or NaN for one of "z" alone.
std::vector<float> count_letters(const text::Batch& batch) {
  constexpr std::int64_t letter_z = 5 + 2 * 25;
  std::vector<float> logits(batch.rows(), 0.0F);
  std::size_t row = 0;
  for (std::size_t i = 0; i < batch.tokens(); ++i) {
    while (std::cmp_greater_equal(i, batch.offsets[row + 1])) ++row;
    float& logit = logits[row];
    if (batch.token_type_ids[i] == 1 && batch.ids[i] > 4) logit += 1.0F;
    if (batch.token_type_ids[i] == 1 && batch.ids[i] == letter_z)
      logit = std::numeric_limits<float>::quiet_NaN();
  }
  return logits;
}

std::vector<std::size_t> order_of(const Ranking& ranking) {
  std::vector<std::size_t> indices;
  for (const RankedPassage& passage : ranking.passages) indices.push_back(passage.index);
  return indices;
}

Rankings ranked(const std::vector<Passage>& passages, const RankOptions& options = {}) {
  return rank(passages, letter_tokenizer(), options, count_letters);
}

TEST(Rank, BestFirstAndEqualOnesInTheirOrder) {
  const std::vector<Passage> passages = {
      {"q", "a", ""}, {"q", "a b c", ""}, {"q", "b", ""}, {"q", "", ""}, {"q", "c d e", ""}};
  const Rankings all = ranked(passages);
  ASSERT_EQ(all.queries.size(), 1u);
  EXPECT_THAT(order_of(all.queries[0]), ElementsAre(1, 4, 0, 2, 3));
  EXPECT_EQ(all.tokens, 5u * 4 + 1 + 3 + 1 + 0 + 3);
  EXPECT_EQ(all.truncated, 0u);
  RankOptions options;
  options.top_k = 3;
  EXPECT_THAT(order_of(ranked(passages, options).queries[0]), ElementsAre(1, 4, 0));
  options.top_k = 9;
  EXPECT_EQ(ranked(passages, options).queries[0].passages.size(), 5u);
}

TEST(Rank, ScoresAreLogitsOrTheirSigmoids) {
  const std::vector<Passage> passages = {{"q", "a b", ""}, {"q", "", ""}};
  RankOptions options;
  const Ranking sigmoids = ranked(passages, options).queries[0];
  EXPECT_NEAR(sigmoids.passages[0].score, 0.8807970779778823, 1e-15);
  EXPECT_EQ(sigmoids.passages[1].score, 0.5);
  options.sigmoid = false;
  const Ranking logits = ranked(passages, options).queries[0];
  EXPECT_EQ(logits.passages[0].score, 2.0);
  EXPECT_EQ(logits.passages[1].score, 0.0);
  EXPECT_EQ(sigmoid(-1000.0), 0.0) << "no overflow";
  EXPECT_EQ(sigmoid(1000.0), 1.0);
}

TEST(Rank, EachQueryByItself) {
  const Rankings all = ranked({{"b", "a", ""}, {"a", "a", ""}, {"b", "a c", ""}, {"a", "", ""}});
  ASSERT_EQ(all.queries.size(), 2u);
  EXPECT_EQ(all.queries[0].query, "b");
  EXPECT_THAT(order_of(all.queries[0]), ElementsAre(2, 0));
  EXPECT_EQ(all.queries[1].query, "a");
  EXPECT_THAT(order_of(all.queries[1]), ElementsAre(1, 3));
}

TEST(Rank, BatchesChangeNothing) {
  std::vector<Passage> passages;
  Numbers numbers(7);
  for (int i = 0; i < 53; ++i) {
    std::string text;
    for (std::uint64_t letters = numbers.next() % 17; letters > 0; --letters) text += " a";
    passages.push_back({i % 3 == 0 ? "x y" : "x", text, ""});
  }
  const Rankings expected = ranked(passages);
  for (const int most : {1, 2, 7, 64}) {
    RankOptions options;
    options.batches.max_batch = most;
    options.batches.max_tokens = 11 * most;
    const Rankings found = ranked(passages, options);
    ASSERT_EQ(found.queries.size(), expected.queries.size());
    for (std::size_t i = 0; i < found.queries.size(); ++i)
      EXPECT_EQ(order_of(found.queries[i]), order_of(expected.queries[i])) << most;
  }
}

TEST(Rank, LongPassagesAreCutAndCounted) {
  RankOptions options;
  options.max_length = 7;  // four letters of both
  options.sigmoid = false;
  const Rankings all = ranked({{"q", "a b c d e", ""}, {"q", "a b c", ""}}, options);
  EXPECT_EQ(all.truncated, 1u);
  EXPECT_EQ(all.queries[0].passages[0].score, 3.0);
  EXPECT_THAT(order_of(all.queries[0]), ElementsAre(0, 1));
  options.max_length = 3;
  EXPECT_ERROR(HasSubstr("'max_seq_length'"), ranked({{"q", "a", ""}}, options));
}

TEST(Rank, WhatIsNoNumberIsRefusedOrLast) {
  const std::vector<Passage> passages = {
      {"q", "z", ""}, {"q", "", ""}, {"q", "z", ""}, {"q", "a", ""}};
  EXPECT_ERROR(AllOf(HasSubstr("NaN"), HasSubstr("passage "), HasSubstr("'allow_nonfinite'")),
               ranked(passages));
  RankOptions options;
  options.allow_nonfinite = true;
  EXPECT_THAT(order_of(ranked(passages, options).queries[0]), ElementsAre(3, 1, 0, 2));
}

TEST(Rank, AnotherHeadIsRefused) {
  EXPECT_ERROR(HasSubstr("returned 2 values"),
               rank({{"q", "a", ""}}, letter_tokenizer(), {},
                    [](const text::Batch&) { return std::vector<float>(2); }));
}

TEST(ReadPassages, LinesAndJsonLines) {
  const ScratchFile lines("first \n\n second one\r\n");
  const auto plain = read_passages(lines.path(), "q");
  ASSERT_EQ(plain.size(), 3u) << "an index is that of a line";
  EXPECT_EQ(plain[1].text, "");
  EXPECT_EQ(plain[0].text, "first ") << "a text is handed on as it is";
  EXPECT_EQ(plain[2].text, " second one");
  EXPECT_EQ(plain[2].query, "q");
  EXPECT_EQ(plain[2].id, "");
  const ScratchFile objects(R"({"text": "a", "id": 7})"
                            "\n"
                            R"({"query": "own", "passage": "b", "id": "x"})"
                            "\n");
  const auto found = read_passages(objects.path(), "q");
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].query + found[0].text + found[0].id, "qa7");
  EXPECT_EQ(found[1].query + found[1].text + found[1].id, "ownbx");
}

TEST(ReadPassages, WhatIsMissingIsNamedByItsLine) {
  const auto error = [](const std::string& content, const std::string& query) {
    const ScratchFile file(content);
    return error_of([&] { read_passages(file.path(), query); });
  };
  EXPECT_THAT(error("one\n", ""), AllOf(HasSubstr(":1: "), HasSubstr("no query"), HasSubstr("-q")));
  EXPECT_THAT(error("{\"query\": \"q\", \"text\": \"a\"}\n{\"text\": \"b\"}\n", ""),
              AllOf(HasSubstr(":2: "), HasSubstr("no query")));
  EXPECT_THAT(error("{\"query\": \"q\"}\n", "q"), HasSubstr(":1: text is missing"));
  EXPECT_THAT(error("", "q"), HasSubstr("contains no passage"));
}

}  // namespace
}  // namespace bertcl::tasks
