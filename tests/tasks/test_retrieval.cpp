// SPDX-License-Identifier: Apache-2.0
// Search by vectors, by words, and by cross-encoders, with model functions that depend on nothing
// but a row's tokens. Scores of real vectors are compared in tests/python/test_retrieval.py.
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "squad/dataset.hpp"
#include "tasks/evaluate.hpp"
#include "tasks/load.hpp"
#include "tasks/model_files/embedding_files.hpp"
#include "tasks/scores/bm25.hpp"
#include "tasks/scores/metrics.hpp"
#include "tests/support/matchers.hpp"
#include "tests/tasks/support.hpp"

namespace bertcl::tasks {
namespace {

using nlohmann::json;

/// How often each letter stands in the row: a vector of 26.
std::vector<float> letters(const text::Batch& batch) {
  std::vector<float> counts(batch.rows() * 26, 0.0F);
  std::size_t row = 0;
  for (std::size_t i = 0; i < batch.tokens(); ++i) {
    while (std::cmp_greater_equal(i, batch.offsets[row + 1])) ++row;
    const std::int64_t id = batch.ids[i];
    if (id < 5) continue;
    counts[row * 26 + static_cast<std::size_t>(id - 5) / 2] += 1.0F;
  }
  return counts;
}

/// The third question finds another paragraph first, with a cosine of 1; its own has 1 / sqrt(2).
QuestionParagraphs some_questions() {
  return {{"never asked", "a b", "c", "c", "b"},
          {{"p", "b a", 1}, {"q", "c c", 3}, {"r", "b", 1}, {"s", "b", 4}}};
}

TEST(SearchScores, AreThoseOfTheirDefinitions) {
  const std::vector<std::size_t> ranks = {1, 2, 10, 11};
  const SearchScores scores = search_scores(ranks, 10);
  EXPECT_DOUBLE_EQ(scores.recall, 75.0);
  EXPECT_NEAR(scores.mrr, 100.0 * (1 + 0.5 + 0.1) / 4, 1e-12);
  EXPECT_NEAR(scores.ndcg, 100.0 * (1 + 1 / std::log2(3.0) + 1 / std::log2(11.0)) / 4, 1e-12);
  EXPECT_EQ(search_scores({}, 10).mrr, 0.0);
}

TEST(Retrieval, EachQuestionFindsItsParagraph) {
  const auto task = retrieval_task(some_questions());
  EvaluateOptions options;
  for (const int most : {1, 64}) {  // in any order
    options.batches.max_batch = most;
    const Evaluation all = evaluate(*task, letter_tokenizer(), options, letters);
    EXPECT_EQ(all.items, 4u);
    EXPECT_EQ(all.sequences, 4u + 3) << "equal paragraphs are one, others are left out";
    EXPECT_NEAR(metric_of(all, "mrr_at_10"), 100.0 * (1 + 1 + 0.5 + 1) / 4, 1e-9);
    EXPECT_NEAR(metric_of(all, "ndcg_at_10"), 100.0 * (3 + 1 / std::log2(3.0)) / 4, 1e-9);
    EXPECT_DOUBLE_EQ(metric_of(all, "recall_at_10"), 100.0);
    EXPECT_EQ(json(all.results->predictions()), json::parse(R"({"p": 0, "q": 1, "r": 2, "s": 2})"));
    const auto vectors = all.results->vectors();
    ASSERT_EQ(vectors.size(), 7u);
    EXPECT_EQ(vectors[1][2], 2.0F) << "of \"c c\"";
    EXPECT_EQ(vectors[4][1], 1.0F) << "of \"a b\"";
  }
}

TEST(Retrieval, FewerQuestionsSearchTheirOwnParagraphs) {
  const auto task = retrieval_task(some_questions());
  const Evaluation all = evaluate(*task, letter_tokenizer(), {}, letters, {}, 3);
  EXPECT_EQ(all.sequences, 3u + 2);
  EXPECT_DOUBLE_EQ(metric_of(all, "mrr_at_10"), 100.0) << "without the paragraph \"b\"";
}

TEST(Retrieval, OnlyTheFirstTenCount) {
  QuestionParagraphs data;
  for (char c = 'a'; c < 'a' + 12; ++c) data.paragraphs.push_back(std::string(1, c));
  for (std::size_t i = 0; i < 12; ++i) data.questions.push_back({std::to_string(i), "z", i});
  const Evaluation all = evaluate(*retrieval_task(data), letter_tokenizer(), {}, letters);
  // All cosines are 0: in the order of the paragraphs, question i has the rank i + 1.
  EXPECT_NEAR(metric_of(all, "recall_at_10"), 100.0 * 10 / 12, 1e-9);
}

TEST(Retrieval, PromptsStandBeforeTheTexts) {
  const auto task = retrieval_task(some_questions(), {"z ", "y y "});
  const Evaluation all = evaluate(*task, letter_tokenizer(), {}, letters);
  const auto vectors = all.results->vectors();
  EXPECT_EQ(vectors[0][25], 1.0F);
  EXPECT_EQ(vectors[4][24], 2.0F);
  EmbeddingFiles files;
  EXPECT_EQ(files.retrieval_prompts().question, "");
  files.default_prompt = "d: ";
  files.prompts = {{"query", "q: "}, {"passage", "p: "}};
  EXPECT_EQ(files.retrieval_prompts().question, "q: ");
  EXPECT_EQ(files.retrieval_prompts().paragraph, "p: ");
  files.prompts.erase("query");
  EXPECT_EQ(files.retrieval_prompts().question, "d: ");
  files.pools_prompt = false;
  EXPECT_ERROR(HasSubstr("include_prompt"), files.retrieval_prompts());
}

TEST(Retrieval, VectorsThatAreNotFiniteFindNothing) {
  const auto task = retrieval_task(some_questions());
  EvaluateOptions options;
  options.allow_nonfinite = true;
  const auto nan = [](const text::Batch& batch) {
    return std::vector<float>(batch.rows() * 26, NAN);
  };
  EXPECT_NEAR(metric_of(evaluate(*task, letter_tokenizer(), options, nan), "mrr_at_10"), 100.0 / 3,
              1e-9)
      << "the last of three";
}

TEST(Retrieval, QuestionsWithoutAnswersAreLeftOut) {
  const squad::Dataset dataset = squad::parse_dataset(
      {"d.json",
       R"({"version": "v2.0", "data": [{"title": "t", "paragraphs": [{"context": "a b", "qas": [
          {"id": "x", "question": "a", "is_impossible": true, "answers": []},
          {"id": "y", "question": "b", "is_impossible": false,
           "answers": [{"text": "a", "answer_start": 0}]}]}]}]})"});
  const QuestionParagraphs data = answered_questions(dataset);
  ASSERT_EQ(data.questions.size(), 1u);
  EXPECT_EQ(data.questions[0].id, "y");
  for (const auto& make : {+[] {
                             retrieval_task({{"a"}, {}});
                           },
                           +[] {
                             reranking_task({{"a"}, {}});
                           }})
    EXPECT_THAT(error_of(make), HasSubstr("no question has a paragraph"));
}

TEST(Bm25, WordsAreThoseOfPythonsRe) {
  EXPECT_THAT(words_of("The U.S.-led naïve_2 plan, 東京!"),
              ElementsAre("the", "u", "s", "led", "naïve_2", "plan", "東京"));
  EXPECT_THAT(words_of(" .,"), IsEmpty());
}

TEST(Bm25, RareWordsAndShortTextsComeFirst) {
  const std::vector<std::string> texts = {"cat", "dog dog dog", "cat and a dog", "bird", "cat cat"};
  const Bm25 search(texts);
  EXPECT_THAT(search.best("Bird?", 2), ElementsAre(3, 0)) << "others in their order";
  EXPECT_THAT(search.best("cat", 3), ElementsAre(4, 0, 2));
  EXPECT_THAT(search.best("cat dog", 2), ElementsAre(1, 2));
  EXPECT_THAT(search.best("unknown", 9), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(Bm25({}).best("cat", 3), IsEmpty());
}

/// The score of a pair: how many letters are "a".
std::vector<float> score_of_a(const text::Batch& batch) {
  const std::vector<float> counts = letters(batch);
  std::vector<float> scores;
  for (std::size_t row = 0; row < batch.rows(); ++row) scores.push_back(counts[row * 26]);
  return scores;
}

TEST(Reranking, ACrossEncoderOrdersWhatBm25Finds) {
  // BM25 finds "q" first for the question "q a", the model "a a a".
  const QuestionParagraphs data = {
      {"q q", "a a a", "a b b", "c"},
      {{"0", "q a", 1}, {"1", "q a", 0}, {"2", "b", 2}, {"3", "c", 3}}};
  const auto task = reranking_task(data);
  const Evaluation all = evaluate(*task, letter_tokenizer(), {}, score_of_a);
  EXPECT_EQ(all.sequences, 4u * 4) << "all of a few paragraphs are candidates";
  EXPECT_DOUBLE_EQ(metric_of(all, "bm25_recall_at_20"), 100.0);
  const json first(all.results->predictions());
  EXPECT_EQ(first.at("0"), 0) << "numbered by the first questions";
  // Ranks by the letters a of a paragraph, 0 to 3 of "q q", "a a a", "a b b", "c": those of equal
  // number as BM25 has them, which finds "q q" before "c" for "q a", and "c" first for "c".
  EXPECT_NEAR(metric_of(all, "mrr_at_10"), 100.0 * (1 + 1.0 / 3 + 0.5 + 1.0 / 3) / 4, 1e-9);
  EXPECT_GT(metric_of(all, "bm25_mrr_at_10"), metric_of(all, "mrr_at_10"));
}

TEST(Reranking, AParagraphThatIsNoCandidateCountsAsNotFound) {
  QuestionParagraphs data;
  for (std::size_t i = 0; i < 30; ++i) {
    data.paragraphs.push_back("w " + std::string(1 + i, 'b'));
    data.questions.push_back({std::to_string(i), "w", i});
  }
  data.paragraphs.back() = "a a";  // has no word of its question, and the best score
  const Evaluation all = evaluate(*reranking_task(data), letter_tokenizer(), {}, score_of_a);
  EXPECT_EQ(all.sequences, 30u * kCandidates);
  EXPECT_NEAR(metric_of(all, "bm25_recall_at_20"), 100.0 * 20 / 30, 1e-9);
  EXPECT_NEAR(metric_of(all, "mrr_at_10"), metric_of(all, "bm25_mrr_at_10"), 1e-9) << "all equal";
}

}  // namespace
}  // namespace bertcl::tasks
