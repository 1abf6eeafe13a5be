// SPDX-License-Identifier: Apache-2.0
// Tasks from texts to scores, with model functions that depend on nothing but a row's tokens.
#include "tasks/evaluate.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include "tests/support/matchers.hpp"
#include "tests/tasks/support.hpp"

namespace bertcl::tasks {
namespace {

using nlohmann::json;

constexpr std::int64_t kLetterA = 5;  // id of "a" in letter_tokenizer()

/// Calls visit(row, place in the batch, id) for each token.
template <typename Visit>
void each_token(const text::Batch& batch, const Visit& visit) {
  for (std::size_t row = 0; row < batch.rows(); ++row)
    for (auto i = batch.offsets[row]; i < batch.offsets[row + 1]; ++i)
      visit(row, static_cast<std::size_t>(i), batch.ids[static_cast<std::size_t>(i)]);
}

/// Classes: how many letters are no "a", how many are. Positive where "a" is more than half.
std::vector<float> count_a(const text::Batch& batch) {
  std::vector<float> logits(batch.rows() * 2, 0.0F);
  each_token(batch, [&](std::size_t row, std::size_t, std::int64_t id) {
    if (id > 4) logits[row * 2 + (id == kLetterA ? 1 : 0)] += 1.0F;
  });
  return logits;
}

/// [tokens, classes]: class of a token is `of(id)`.
template <typename Of>
text::RunBatchFn by_token(std::size_t classes, const Of& of) {
  return [=](const text::Batch& batch) {
    std::vector<float> logits;
    for (const std::int64_t id : batch.ids)
      for (std::size_t c = 0; c < classes; ++c) logits.push_back(c == of(id) ? 1.0F : 0.0F);
    return logits;
  };
}

std::vector<ClassifiedText> texts() {
  return {{"x", "a a b", {}, "pos"},
          {"y", "b b a", {}, "neg"},
          {"z", "a a a a b b b b b b", {}, "pos"},
          {"w", "c", {}, "pos"}};
}

TEST(Classify, AccuracyAndPredictions) {
  const auto task = classify_task(texts(), "texts", {});
  const Evaluation all = evaluate(*task, letter_tokenizer(), {}, count_a);
  EXPECT_DOUBLE_EQ(metric_of(all, "accuracy"), 50.0);
  EXPECT_EQ(json(all.results->predictions()),
            json::parse(R"({"x": "pos", "y": "neg", "z": "neg", "w": "neg"})"));
  EXPECT_EQ(all.items, 4u);
  EXPECT_EQ(all.sequences, 4u);
  EXPECT_EQ(all.tokens, 3u + 3 + 10 + 1 + 2 * 4);
  EXPECT_EQ(all.tokens_padded, 4u * 512);
  EXPECT_EQ(all.items_cut, 0u);
  EXPECT_DOUBLE_EQ(metric_of(evaluate(*task, letter_tokenizer(), {}, count_a, {}, 2), "accuracy"),
                   100.0);
}

TEST(Classify, LongTextsAreCutOrReadInWindows) {
  const auto task = classify_task(texts(), "texts", {});
  EvaluateOptions options;
  options.encode.max_length = 7;
  const Evaluation cut = evaluate(*task, letter_tokenizer(), options, count_a);
  EXPECT_EQ(cut.items_cut, 1u);
  EXPECT_DOUBLE_EQ(metric_of(cut, "accuracy"), 75.0) << "the third text begins with a";
  options.encode.windows = true;
  const Evaluation windows = evaluate(*task, letter_tokenizer(), options, count_a);
  EXPECT_EQ(windows.items_cut, 0u);
  EXPECT_EQ(windows.sequences, 5u);
  EXPECT_DOUBLE_EQ(metric_of(windows, "accuracy"), 50.0);
}

TEST(Classify, TheModelMayHavePositiveFirst) {
  for (const std::vector<std::string>& labels :
       {std::vector<std::string>{"POSITIVE", "negative"}, {"1", "0"}, {"LABEL_1", "LABEL_0"}}) {
    const auto task = classify_task(texts(), "texts", labels);
    EXPECT_DOUBLE_EQ(metric_of(evaluate(*task, letter_tokenizer(), {}, count_a, {}, 2), "accuracy"),
                     0.0);
  }
  for (const std::vector<std::string>& labels : {std::vector<std::string>{"happy", "sad"},
                                                 {"bad", "neutral", "good"},
                                                 {"negated", "negative"}}) {
    EXPECT_ERROR(AllOf(HasSubstr("neg, pos, not among the model's classes"),
                       HasSubstr(labels[0] + ", " + labels[1]), HasSubstr("'labels'")),
                 classify_task(texts(), "texts", labels));
  }
}

/// Which of the letters a, b and c is the most frequent: class 0, 1 or 2.
std::vector<float> count_abc(const text::Batch& batch) {
  std::vector<float> logits(batch.rows() * 3, 0.0F);
  each_token(batch, [&](std::size_t row, std::size_t, std::int64_t id) {
    if (id >= kLetterA && id < kLetterA + 6)
      logits[row * 3 + static_cast<std::size_t>(id - kLetterA) / 2] += 1.0F;
  });
  return logits;
}

std::vector<ClassifiedText> texts_of_three(const std::vector<std::string>& labels) {
  return {{"0", "a", {}, labels[0]},
          {"1", "b", {}, labels[1]},
          {"2", "b", std::string("c c"), labels[2]},
          {"3", "a b b", {}, labels[0]}};
}

TEST(Classify, AnyNumberOfClassesByNameOrNumber) {
  const std::vector<std::string> names = {"World", "Sports", "Business"};
  for (const std::vector<std::string>& data :
       {names, {"world", "SPORTS", "business"}, {"0", "1", "2"}})
    for (const bool named : {true, false}) {
      if (!named && data[0] != "0") continue;
      const auto task =
          classify_task(texts_of_three(data), "texts", named ? names : std::vector<std::string>());
      const Evaluation all = evaluate(*task, letter_tokenizer(), {}, count_abc);
      EXPECT_DOUBLE_EQ(metric_of(all, "accuracy"), 75.0);
      // F1 is 2/3 of the first two, 1 of the third.
      EXPECT_NEAR(metric_of(all, "macro_f1"), 100.0 * (2.0 / 3 + 2.0 / 3 + 1) / 3, 1e-12);
      EXPECT_EQ(json(all.results->predictions()),
                json({{"0", data[0]}, {"1", data[1]}, {"2", data[2]}, {"3", data[1]}}));
      EXPECT_EQ(task->head().classes, 3u);
      EXPECT_EQ(task->head().or_more, !named);
    }
}

TEST(Classify, AClassThatNoTextHasIsNamedByTheModel) {
  const auto task = classify_task({{"0", "c", {}, "B"}}, "texts", {"A", "B", "C"});
  EXPECT_EQ(json(evaluate(*task, letter_tokenizer(), {}, count_abc).results->predictions()),
            json({{"0", "C"}}));
}

TEST(Classify, LabelsWithoutAClassAreRefused) {
  EXPECT_ERROR(AllOf(HasSubstr("cannot map x, y, z to the model's classes"), HasSubstr("'labels'"),
                     HasSubstr("id2label")),
               classify_task(texts_of_three({"x", "y", "z"}), "texts", {}));
  EXPECT_ERROR(AllOf(HasSubstr("the data contain"), HasSubstr("the model's classes: A, B; ")),
               classify_task(texts_of_three({"a", "b", "q"}), "texts", {"A", "B"}));
  EXPECT_ERROR(HasSubstr("not among the model's classes"),
               classify_task(texts_of_three({"0", "1", "2"}), "texts", {"A", "B"}));
}

TEST(Classify, NumbersThatCountTooManyClassesAreRefused) {
  for (const std::string label : {"1000000", "99999999999", "18446744073709551615"}) {
    const std::vector<ClassifiedText> items = {{"0", "a", {}, "1", {}, 1},
                                               {"1", "b", {}, label, {}, 7}};
    for (const bool several : {false, true})
      EXPECT_ERROR(AllOf(HasSubstr("line 7: label " + label), HasSubstr("limit of 1000000")),
                   classify_task(items, "texts", {}, several));
    EXPECT_EQ(classify_task(items, "texts", {label, "1"})->head().classes, 2u) << "a name";
  }
  EXPECT_EQ(classify_task({{"0", "a", {}, "999999"}}, "texts", {})->head().classes, 1'000'000u);
}

/// A logit above 0 for each of the letters a, b and c that stands in the text.
std::vector<float> has_abc(const text::Batch& batch) {
  std::vector<float> logits(batch.rows() * 3, -0.5F);
  each_token(batch, [&](std::size_t row, std::size_t, std::int64_t id) {
    if (id >= kLetterA && id < kLetterA + 6)
      logits[row * 3 + static_cast<std::size_t>(id - kLetterA) / 2] += 0.75F;
  });
  return logits;
}

TEST(MultiLabel, EveryClassByItself) {
  std::vector<ClassifiedText> items = {
      {"0", "a b", {}, "", std::vector<std::string>{"B", "A"}},
      {"1", "d", {}, "", std::vector<std::string>{}},
      {"2", "c", std::string("a"), "", std::vector<std::string>{"C"}}};
  const auto task = classify_task(items, "texts", {"A", "B", "C"});
  const Evaluation all = evaluate(*task, letter_tokenizer(), {}, has_abc);
  EXPECT_EQ(json(all.results->predictions()),
            json::parse(R"({"0": ["A", "B"], "1": [], "2": ["A", "C"]})"));
  EXPECT_NEAR(metric_of(all, "micro_f1"), 600.0 / 7, 1e-9);
  EXPECT_NEAR(metric_of(all, "macro_f1"), (200.0 / 3 + 100 + 100) / 3, 1e-9);
  EXPECT_NEAR(metric_of(all, "accuracy"), 200.0 / 3, 1e-9);
  EXPECT_EQ(all.metrics.front().name, "micro_f1") << "what --max-drop bounds";
  // The mean of windows: "a" is in one of three alone.
  const auto longer =
      classify_task({{"0", "a b b b b b b b b", {}, "A", {}}}, "texts", {"A", "B", "C"}, true);
  EvaluateOptions options;
  options.encode = {5, true};
  EXPECT_EQ(json(evaluate(*longer, letter_tokenizer(), options, has_abc).results->predictions()),
            json::parse(R"({"0": ["B"]})"));
  EXPECT_ERROR(AllOf(HasSubstr("list several labels"), HasSubstr("problem_type"),
                     HasSubstr("multi_label in C++, says")),
               classify_task(items, "texts", {"A", "B", "C"}, false));
}

TEST(MultiLabel, LabelsOfALineStandBetweenCommas) {
  const std::vector<ClassifiedText> items = {{"0", "a b", {}, "0, 1", {}}, {"1", "c", {}, "2", {}}};
  const auto task = classify_task(items, "texts", {}, true);
  const Evaluation all = evaluate(*task, letter_tokenizer(), {}, has_abc);
  EXPECT_EQ(metric_of(all, "micro_f1"), 100.0);
  EXPECT_EQ(json(all.results->predictions()), json::parse(R"({"0": ["0", "1"], "1": ["2"]})"));
  EXPECT_ERROR(HasSubstr("an empty label"),
               classify_task({{"0", "a", {}, "A,", {}}}, "texts", {"A", "B"}, true));
  EXPECT_ERROR(HasSubstr("the data contain Q, not among the model's classes"),
               classify_task({{"0", "a", {}, "A,Q", {}}}, "texts", {"A", "B"}, true));
}

TEST(Tasks, BatchesChangeNothing) {
  const auto task = classify_task(texts(), "texts", {});
  const json expected = evaluate(*task, letter_tokenizer(), {}, count_a).results->predictions();
  for (const text::BatchOptions batches : {text::BatchOptions{1, 64}, {4096, 1}, {12, 2}}) {
    std::size_t done = 0;
    const Evaluation other =
        evaluate(*task, letter_tokenizer(), {{}, batches}, count_a, [&](const Progress& now) {
          EXPECT_GT(now.done, done);
          EXPECT_EQ(now.total, 4u);
          done = now.done;
        });
    EXPECT_EQ(done, 4u);
    EXPECT_EQ(json(other.results->predictions()), expected);
  }
}

TEST(Tasks, WrongOutputsAreRefused) {
  const auto task = classify_task(texts(), "texts", {"neg", "pos"});
  EXPECT_ERROR(AllOf(HasSubstr("12 values"), HasSubstr("needs 2 classes: neg, pos")),
               evaluate(*task, letter_tokenizer(), {}, [](const text::Batch& batch) {
                 return std::vector<float>(batch.rows() * 3);
               }));
  EXPECT_ERROR(AllOf(HasSubstr("NaN or infinity"), HasSubstr("item ")),
               evaluate(*task, letter_tokenizer(), {}, [](const text::Batch& batch) {
                 std::vector<float> logits(batch.rows() * 2);
                 logits.back() = std::numeric_limits<float>::infinity();
                 return logits;
               }));
}

TEST(Tasks, DataWithoutWordPiecesAreRefused) {
  EvaluateOptions options;
  options.origin = "blank.txt";
  const text::RunBatchFn model = [](const text::Batch&) -> std::vector<float> {
    ADD_FAILURE() << "there is nothing to run";
    return {};
  };
  const auto masked =
      masked_task(without_ids({"\x01", " ", "a"}), letter_tokenizer().vocabulary_size());
  EXPECT_EQ(error_of([&] { evaluate(*masked, letter_tokenizer(), options, model, {}, 2); }),
            "blank.txt: nothing to score: no word pieces in the 2 texts read");
  const auto tagged = tagging_task({{{"\x01"}, {"O"}}}, {"O", "B-x"});
  EXPECT_EQ(error_of([&] { evaluate(*tagged, letter_tokenizer(), options, model); }),
            "blank.txt: nothing to score: no word pieces in the 1 sentences read");
}

// Vectors of two texts come in any order, since texts of one length run together.
TEST(Similarity, CosinesOfVectors) {
  const auto task = similarity_task(
      {{"0", "a b", "a a a b b b", 5}, {"1", "a a a a", "b", 0}, {"2", "a b b", "a", 2}},
      /*embeds=*/true);
  EvaluateOptions options;
  for (const int most : {1, 64}) {
    options.batches.max_batch = most;
    const Evaluation all = evaluate(*task, letter_tokenizer(), options, count_a);
    EXPECT_EQ(all.sequences, 6u);
    const json scores(all.results->predictions());
    EXPECT_NEAR(scores.at("0").get<double>(), 1.0, 1e-12);
    EXPECT_NEAR(scores.at("1").get<double>(), 0.0, 1e-12);
    EXPECT_NEAR(scores.at("2").get<double>(), 1.0 / std::sqrt(5.0), 1e-12);
    EXPECT_DOUBLE_EQ(metric_of(all, "spearman"), 1.0);
  }
}

TEST(Similarity, TextsOfVectorsArePreparedAsSentenceTransformersDo) {
  const auto tokenizer = text::Tokenizer::from_tokens(
      {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "B", "b"}, {.lower_case = false});
  const auto task = similarity_task({{"0", "a", "B", 5}}, true);
  EncodeOptions options;
  EXPECT_EQ(task->encode(0, tokenizer, options)[0].ids, (std::vector<std::int32_t>{2, 4, 3}));
  EXPECT_EQ(task->encode(0, tokenizer, options)[1].ids, (std::vector<std::int32_t>{2, 5, 3}));
  options.lower_case = true;
  EXPECT_EQ(task->encode(0, tokenizer, options)[1].ids, (std::vector<std::int32_t>{2, 6, 3}));
}

TEST(Similarity, Correlations) {
  const auto task = similarity_task({{"0", "a", "a", 5}, {"1", "a b", "b", 2}, {"2", "b", "c", 0}});
  const auto shared = [](const text::Batch& batch) {
    std::vector<float> scores(batch.rows(), 0.0F);
    each_token(batch, [&](std::size_t row, std::size_t at, std::int64_t id) {
      if (id == kLetterA) scores[row] += batch.token_type_ids[at] == 1 ? 2.0F : 1.0F;
    });
    return scores;
  };
  const Evaluation evaluation = evaluate(*task, letter_tokenizer(), {}, shared);
  // Predicted 3, 1, 0 for 5, 2, 0.
  EXPECT_DOUBLE_EQ(metric_of(evaluation, "spearman"), 1.0);
  EXPECT_NEAR(metric_of(evaluation, "pearson"), 0.997176464952738, 1e-14);
  EXPECT_TRUE(evaluation.metrics[0].is_correlation);
  EXPECT_EQ(json(evaluation.results->predictions()),
            json::parse(R"({"0": 3.0, "1": 1.0, "2": 0.0})"));
  EXPECT_TRUE(
      std::isnan(metric_of(evaluate(*task, letter_tokenizer(), {}, shared, {}, 1), "pearson")));
}

std::vector<TaggedSentence> sentences() {
  return {{{"a", "b", "ab", "c"}, {"B-x", "I-x", "B-x", "O"}},
          {{"\x01"}, {"O"}},
          {{"c", "a"}, {"O", "O"}, "last"}};
}

TEST(Tagging, FirstPiecesOfWords) {
  const auto task = tagging_task(sentences(), {"O", "B-x", "I-x"});
  const Evaluation evaluation =
      evaluate(*task, letter_tokenizer(), {}, by_token(3, [](std::int64_t id) {
        return id == kLetterA ? 1u : id == kLetterA + 2 ? 2u : 0u;  // a: B-x, b: I-x
      }));
  EXPECT_EQ(json(evaluation.results->predictions()),
            json::parse(R"({"0": ["B-x", "I-x", "B-x", "O"], "1": ["O"], "last": ["O", "B-x"]})"));
  EXPECT_NEAR(metric_of(evaluation, "precision"), 200.0 / 3, 1e-12);
  EXPECT_DOUBLE_EQ(metric_of(evaluation, "recall"), 100.0);
  EXPECT_DOUBLE_EQ(metric_of(evaluation, "f1"), 80.0);
  EXPECT_NEAR(metric_of(evaluation, "accuracy"), 600.0 / 7, 1e-12);
  EXPECT_EQ(evaluation.sequences, 2u) << "the second sentence has no word pieces";
}

TEST(Tagging, NeedsTheTagsOfTheModel) {
  EXPECT_ERROR(AllOf(HasSubstr("'labels'"), HasSubstr("id2label")), tagging_task(sentences(), {}));
  const auto refused = [](const std::vector<std::string>& labels) {
    return error_of([&] { tagging_task(sentences(), labels); });
  };
  EXPECT_THAT(refused({"O", "B-PER", "I-PER"}),
              AllOf(HasSubstr("the data contain B-x, I-x, which"), HasSubstr("O, B-PER, I-PER")));
  EXPECT_THAT(refused({"O", "B-x"}), AllOf(HasSubstr("the data contain I-x, which"),
                                           HasSubstr("the model's classes: O, B-x; ")));
  EXPECT_THAT(refused({"B-x", "I-x"}), HasSubstr("the data contain O, which"));
}

TEST(Masked, Accuracy) {
  const std::size_t vocabulary = letter_tokenizer().vocabulary_size();
  const auto task = masked_task({{"a a a a a a a a"}, {""}, {"b b b b", "last"}}, vocabulary);
  for (const std::size_t classes : {vocabulary, vocabulary + 3}) {
    const Evaluation evaluation =
        evaluate(*task, letter_tokenizer(), {},
                 by_token(classes, [](std::int64_t) { return std::size_t{kLetterA}; }));
    // round(0.15 * 10) = 2 of the first text and 1 of the last are hidden.
    EXPECT_NEAR(metric_of(evaluation, "accuracy"), 200.0 / 3, 1e-12);
    EXPECT_EQ(json(evaluation.results->predictions()),
              json::parse(R"({"0": ["a", "a"], "1": [], "last": ["a"]})"));
  }
  EXPECT_ERROR(HasSubstr("one class per vocabulary token"),
               evaluate(*task, letter_tokenizer(), {},
                        by_token(vocabulary - 1, [](std::int64_t) { return 0u; })));
}

TEST(Tasks, MainMetricIsTheFirst) {
  const QuestionParagraphs search{{"a b", "c"}, {{"0", "a", 0}, {"1", "c", 1}}};
  const std::shared_ptr<const Task> all[] = {
      classify_task(texts(), "texts", {}),
      classify_task({{"0", "a", {}, "x,y"}, {"1", "b", {}, "y"}}, "texts", {"x", "y"}, true),
      similarity_task({{"0", "a", "b", 1.0}, {"1", "a", "a", 2.0}}),
      retrieval_task(search),
      reranking_task(search),
      tagging_task(sentences(), {"O", "B-x", "I-x"}),
      masked_task({{"a a a a a a a a"}}, letter_tokenizer().vocabulary_size())};
  for (const auto& task : all) {
    const Head& head = task->head();
    const Evaluation evaluation =
        evaluate(*task, letter_tokenizer(), {}, [&](const text::Batch& batch) {
          const std::size_t outputs = head.by_token ? batch.tokens() : batch.rows();
          return std::vector<float>(outputs * std::max<std::size_t>(1, head.classes), 1.0F);
        });
    EXPECT_EQ(task->main_metric(), evaluation.metrics[0].name);
  }
}

}  // namespace
}  // namespace bertcl::tasks
