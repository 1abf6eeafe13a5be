// SPDX-License-Identifier: Apache-2.0
// The pipeline around a made-up model: one result however batches are formed, and clean failures.
#include "squad/pipeline.hpp"

#include <fmt/format.h>

#include <cmath>
#include <random>
#include <set>
#include <thread>

#include "tests/squad/support.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::squad {
namespace {

/// Documents of 1 to 120 random words, a few questions each.
Dataset random_dataset(bool version_2) {
  std::mt19937 random(5);
  Dataset dataset;
  dataset.version_2 = version_2;
  while (dataset.questions.size() < 90) {
    std::string context;
    for (std::size_t words = 1 + random() % 120; words > 0; --words) {
      for (std::size_t letters = 1 + random() % 3; letters > 0; --letters) {
        context += static_cast<char>('a' + random() % 26);
      }
      context += words > 1 ? " " : "";
    }
    dataset.contexts.push_back(context);
    for (std::size_t n = random() % 4; n > 0; --n) {
      Question question;
      question.id = fmt::format("q{}", dataset.questions.size());
      question.text = random() % 2 == 0 ? "who sat?" : "the cat sat on the mat?";
      question.context = dataset.contexts.size() - 1;
      if (!version_2 || random() % 2 == 0) question.answers.push_back({context.substr(0, 3), 0});
      question.is_impossible = question.answers.empty();
      dataset.questions.push_back(question);
    }
  }
  return dataset;
}

EvaluateOptions small_options() {
  EvaluateOptions options;
  options.features = {.max_seq_length = 48, .doc_stride = 16, .max_query_length = 8};
  options.keep_nbest = true;
  return options;
}

void expect_equal(const Evaluation& a, const Evaluation& b) {
  ASSERT_EQ(a.predictions.size(), b.predictions.size());
  for (std::size_t i = 0; i < a.predictions.size(); ++i) {
    const Prediction& x = a.predictions[i].prediction;
    const Prediction& y = b.predictions[i].prediction;
    ASSERT_EQ(a.predictions[i].id, b.predictions[i].id);
    ASSERT_EQ(x.text, y.text) << a.predictions[i].id;
    ASSERT_EQ(x.span, y.span) << a.predictions[i].id;
    ASSERT_EQ(x.null_odds, y.null_odds) << a.predictions[i].id;
    ASSERT_EQ(x.nbest.size(), y.nbest.size()) << a.predictions[i].id;
    for (std::size_t k = 0; k < x.nbest.size(); ++k) {
      ASSERT_EQ(x.nbest[k].text, y.nbest[k].text) << a.predictions[i].id;
      ASSERT_EQ(x.nbest[k].probability, y.nbest[k].probability) << a.predictions[i].id;
    }
  }
  EXPECT_EQ(a.scores.official_metrics(), b.scores.official_metrics());
  EXPECT_EQ(a.features, b.features);
  EXPECT_EQ(a.tokens, b.tokens);
  EXPECT_EQ(a.tokens_padded, b.tokens_padded);
}

TEST(Pipeline, EqualsTheStraightWay) {
  for (const bool version_2 : {false, true}) {
    const Dataset dataset = random_dataset(version_2);
    const EvaluateOptions options = small_options();
    std::size_t batched = 0;
    const Evaluation evaluation =
        evaluate(dataset, letter_tokenizer(), options, [&](const Batch& batch) {
          batched += batch.tokens();
          return hash_model(batch);
        });
    const auto features = make_features(dataset, letter_tokenizer(), options.features);
    PredictionOptions prediction_options{.version_2 = version_2};
    std::size_t next = 0;
    std::size_t tokens = 0;
    for (std::size_t q = 0; q < dataset.questions.size(); ++q) {
      const Document document =
          make_document(dataset.context_of(dataset.questions[q]), letter_tokenizer());
      std::vector<Logits> logits;
      const std::size_t first = next;
      for (; next < features.size() && features[next].example_index == q; ++next) {
        const std::size_t index = next;
        const std::vector<text::Row> alone = rows_of(std::span(features).subspan(index, 1));
        logits.push_back(split_logits(hash_model(text::make_batch(alone))));
        tokens += features[next].length();
      }
      std::vector<WindowLogits> windows;
      for (std::size_t i = 0; i < logits.size(); ++i) {
        windows.push_back({&features[first + i], logits[i].start, logits[i].end});
      }
      const Prediction expected =
          predict(document, windows, letter_tokenizer(), prediction_options);
      EXPECT_EQ(evaluation.predictions[q].id, dataset.questions[q].id);
      EXPECT_EQ(evaluation.predictions[q].prediction.text, expected.text);
      EXPECT_EQ(evaluation.predictions[q].prediction.span, expected.span);
      EXPECT_EQ(evaluation.predictions[q].prediction.null_odds, expected.null_odds);
    }
    EXPECT_EQ(next, features.size());
    EXPECT_EQ(evaluation.features, features.size());
    EXPECT_EQ(evaluation.tokens, tokens);
    EXPECT_EQ(evaluation.tokens_padded, features.size() * 48);
    EXPECT_EQ(batched, tokens);
    EXPECT_LT(batched, evaluation.tokens_padded);
    EXPECT_GT(evaluation.scores.f1, 0.0);
    EXPECT_LT(evaluation.scores.f1, 100.0);
    EXPECT_EQ(evaluation.scores.thresholds.has_value(), version_2);
  }
}

TEST(Pipeline, DoesNotDependOnHowBatchesAreFormed) {
  for (const bool version_2 : {false, true}) {
    const Dataset dataset = random_dataset(version_2);
    const Evaluation reference = evaluate(dataset, letter_tokenizer(), small_options(), hash_model);
    for (const BatchOptions batches : {BatchOptions{1, 1}, BatchOptions{97, 64},
                                       BatchOptions{100000, 7}, BatchOptions{100000, 100000}}) {
      for (const std::size_t window : {std::size_t{1}, std::size_t{13}, std::size_t{100000}}) {
        SCOPED_TRACE(testing::Message() << batches.max_tokens << " tokens, " << batches.max_batch
                                        << " rows, window of " << window);
        EvaluateOptions options = small_options();
        options.batches = batches;
        options.window_features = window;
        expect_equal(reference, evaluate(dataset, letter_tokenizer(), options, hash_model));
      }
    }
  }
}

TEST(Pipeline, LimitTakesTheFirstQuestions) {
  const Dataset dataset = random_dataset(false);
  const Evaluation all = evaluate(dataset, letter_tokenizer(), small_options(), hash_model);
  const Evaluation some =
      evaluate(dataset, letter_tokenizer(), small_options(), hash_model, {}, 17);
  ASSERT_EQ(some.predictions.size(), 17u);
  EXPECT_EQ(some.scores.total, 17u);
  EXPECT_TRUE(some.scores.missing.empty());
  for (std::size_t i = 0; i < 17; ++i) {
    EXPECT_EQ(some.predictions[i].prediction.text, all.predictions[i].prediction.text);
  }
  const Evaluation more =
      evaluate(dataset, letter_tokenizer(), small_options(), hash_model, {}, 1000000);
  EXPECT_EQ(more.predictions.size(), dataset.questions.size());
}

TEST(Pipeline, ProgressGrowsToTheEndOnTheCallingThread) {
  const Dataset dataset = random_dataset(false);
  EvaluateOptions options = small_options();
  options.window_features = 20;
  std::vector<Progress> seen;
  std::set<std::thread::id> threads;
  const LogitsFn model = [&](const Batch& batch) {
    threads.insert(std::this_thread::get_id());
    return hash_model(batch);
  };
  const Evaluation evaluation =
      evaluate(dataset, letter_tokenizer(), options, model, [&](const Progress& progress) {
        threads.insert(std::this_thread::get_id());
        seen.push_back(progress);
      });
  ASSERT_FALSE(seen.empty());
  for (std::size_t i = 1; i < seen.size(); ++i) {
    EXPECT_GE(seen[i].questions, seen[i - 1].questions);
    EXPECT_GT(seen[i].features, seen[i - 1].features);
    EXPECT_GT(seen[i].tokens, seen[i - 1].tokens);
  }
  EXPECT_EQ(seen.back().questions, dataset.questions.size());
  EXPECT_EQ(seen.back().questions_total, dataset.questions.size());
  EXPECT_EQ(seen.back().features, evaluation.features);
  EXPECT_EQ(seen.back().tokens, evaluation.tokens);
  EXPECT_EQ(threads, std::set{std::this_thread::get_id()});
  EXPECT_LE(evaluation.model_seconds, evaluation.total_seconds);
}

TEST(Pipeline, AFailingModelEndsTheEvaluation) {
  const Dataset dataset = random_dataset(false);
  EvaluateOptions options = small_options();
  options.window_features = 5;
  for (const int fails_at : {0, 1, 30}) {
    int calls = 0;
    const LogitsFn model = [&](const Batch& batch) {
      if (calls++ == fails_at) throw std::runtime_error("the device is gone");
      return hash_model(batch);
    };
    EXPECT_THROW(evaluate(dataset, letter_tokenizer(), options, model), std::runtime_error);
    EXPECT_EQ(calls, fails_at + 1) << "no call after the failure";
  }
}

TEST(Pipeline, FailuresOfEveryStageAreReported) {
  const Dataset dataset = random_dataset(false);
  EvaluateOptions options = small_options();
  options.window_features = 5;
  const auto error_with = [&](const EvaluateOptions& with, const LogitsFn& model) {
    return error_of([&] { evaluate(dataset, letter_tokenizer(), with, model); });
  };
  EvaluateOptions no_room = options;
  no_room.features.max_seq_length = 6;
  EXPECT_THAT(error_with(no_room, hash_model),
              AllOf(HasSubstr("leaves no room"),
                    StartsWith(fmt::format("question {}: ", dataset.questions[0].id))));
  EvaluateOptions no_batch = options;
  no_batch.batches.max_batch = 0;
  EXPECT_THAT(error_with(no_batch, hash_model), HasSubstr("max_batch 0"));
  EXPECT_THAT(error_with(options,
                         [](const Batch& batch) {
                           std::vector<float> logits = hash_model(batch);
                           logits.pop_back();
                           return logits;
                         }),
              HasSubstr("tokens; the task needs a start and an end logit for each token"));
  EXPECT_THAT(error_with(options,
                         [](const Batch& batch) {
                           std::vector<float> logits = hash_model(batch);
                           logits[0] = std::nanf("");
                           return logits;
                         }),
              HasSubstr("NaN"));
}

TEST(Pipeline, FilesAreReadBack) {
  const Dataset dataset = random_dataset(true);
  const Evaluation evaluation = evaluate(dataset, letter_tokenizer(), small_options(), hash_model);
  const ScratchFile file("");
  const auto read = [&] {
    std::ifstream stream(file.path());
    return nlohmann::json::parse(stream);
  };
  save_predictions(file.path(), evaluation);
  EXPECT_EQ(read().get<Predictions>(), evaluation.answers());
  save_null_odds(file.path(), evaluation);
  EXPECT_EQ(read().get<NullOdds>(), evaluation.null_odds());
  save_nbest(file.path(), evaluation);
  const nlohmann::json nbest = read();
  EXPECT_EQ(nbest.size(), dataset.questions.size());
  EXPECT_EQ(nbest["q0"][0]["text"], evaluation.predictions[0].prediction.nbest[0].text);
  EXPECT_ERROR(HasSubstr("/nowhere/predictions.json: cannot write: No such file"),
               save_predictions("/nowhere/predictions.json", evaluation));
}

}  // namespace
}  // namespace bertcl::squad
