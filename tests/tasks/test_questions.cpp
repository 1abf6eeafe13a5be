// SPDX-License-Identifier: Apache-2.0
// Questions around a made-up model: one result however batches are formed, and clean failures.
#include "tasks/evaluate.hpp"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <random>
#include <set>
#include <thread>

#include "tasks/prediction_files.hpp"
#include "tests/squad/support.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::tasks {
namespace {

using squad::Dataset;
using squad::hash_model;
using squad::Prediction;
using squad::Question;

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

constexpr int kLongest = 48;  // tokens

QuestionOptions small_options() {
  QuestionOptions options;
  options.features = {.doc_stride = 16, .max_query_length = 8};
  options.keep_nbest = true;
  return options;
}

/// Keeps what the results refer to.
struct Answered : Evaluation {
  std::unique_ptr<Task> task;

  const Prediction& operator[](std::size_t question) const {
    return results->answers()[question].prediction;
  }
};

Answered answer(const Dataset& dataset, const QuestionOptions& options,
                const text::RunBatchFn& model, const text::BatchOptions& batches = {},
                const ProgressFn& progress = {}, std::size_t limit = 0, int longest = kLongest) {
  auto task = questions_task(std::make_shared<const Dataset>(dataset), options);
  EvaluateOptions evaluation;
  evaluation.encode.max_length = longest;
  evaluation.batches = batches;
  auto done = evaluate(*task, squad::letter_tokenizer(), evaluation, model, progress, limit);
  return {std::move(done), std::move(task)};
}

std::map<std::string, double> metrics_of(const Evaluation& evaluation) {
  std::map<std::string, double> metrics;
  for (const Metric& metric : evaluation.metrics) metrics[metric.name] = metric.value;
  return metrics;
}

void expect_equal(const Answered& a, const Answered& b) {
  const auto one = a.results->answers(), other = b.results->answers();
  ASSERT_EQ(one.size(), other.size());
  for (std::size_t i = 0; i < one.size(); ++i) {
    const Prediction &x = a[i], &y = b[i];
    ASSERT_EQ(one[i].id, other[i].id);
    ASSERT_EQ(x.text, y.text) << one[i].id;
    ASSERT_EQ(x.span, y.span) << one[i].id;
    ASSERT_EQ(x.null_odds, y.null_odds) << one[i].id;
    ASSERT_EQ(x.nbest.size(), y.nbest.size()) << one[i].id;
    for (std::size_t k = 0; k < x.nbest.size(); ++k) {
      ASSERT_EQ(x.nbest[k].text, y.nbest[k].text) << one[i].id;
      ASSERT_EQ(x.nbest[k].probability, y.nbest[k].probability) << one[i].id;
    }
  }
  EXPECT_EQ(metrics_of(a), metrics_of(b));
  EXPECT_EQ(a.sequences, b.sequences);
  EXPECT_EQ(a.tokens, b.tokens);
  EXPECT_EQ(a.tokens_padded, b.tokens_padded);
}

TEST(Questions, EqualTheStraightWay) {
  for (const bool version_2 : {false, true}) {
    const Dataset dataset = random_dataset(version_2);
    const QuestionOptions options = small_options();
    std::size_t batched = 0;
    const Answered all = answer(dataset, options, [&](const text::Batch& batch) {
      batched += batch.tokens();
      return hash_model(batch);
    });
    squad::FeatureOptions windows_of = options.features;
    windows_of.max_seq_length = kLongest;
    const auto features = make_features(dataset, squad::letter_tokenizer(), windows_of);
    squad::PredictionOptions prediction_options{.version_2 = version_2};
    std::size_t next = 0;
    std::size_t tokens = 0;
    for (std::size_t q = 0; q < dataset.questions.size(); ++q) {
      const squad::Document document =
          squad::make_document(dataset.context_of(dataset.questions[q]), squad::letter_tokenizer());
      std::vector<squad::Logits> logits;
      const std::size_t first = next;
      for (; next < features.size() && features[next].example_index == q; ++next) {
        const std::vector<text::Row> alone = rows_of(std::span(features).subspan(next, 1));
        logits.push_back(squad::split_logits(hash_model(text::make_batch(alone))));
        tokens += features[next].length();
      }
      std::vector<squad::WindowLogits> windows;
      for (std::size_t i = 0; i < logits.size(); ++i)
        windows.push_back({&features[first + i], logits[i].start, logits[i].end});
      const Prediction expected =
          predict(document, windows, squad::letter_tokenizer(), prediction_options);
      EXPECT_EQ(all.results->answers()[q].id, dataset.questions[q].id);
      EXPECT_EQ(all[q].text, expected.text);
      EXPECT_EQ(all[q].span, expected.span);
      EXPECT_EQ(all[q].null_odds, expected.null_odds);
    }
    EXPECT_EQ(next, features.size());
    EXPECT_EQ(all.sequences, features.size());
    EXPECT_EQ(all.tokens, tokens);
    EXPECT_EQ(all.tokens_padded, features.size() * kLongest);
    EXPECT_EQ(batched, tokens);
    EXPECT_LT(batched, all.tokens_padded);
    EXPECT_EQ(all.metrics[0].name, "exact_match");
    EXPECT_EQ(all.metrics[1].name, "f1");
    EXPECT_EQ(all.task->main_metric(), "f1");
    EXPECT_GT(all.metrics[1].value, 0.0);
    EXPECT_LT(all.metrics[1].value, 100.0);
    EXPECT_EQ(metrics_of(all).contains("best_f1"), version_2);
  }
}

TEST(Questions, DoNotDependOnHowBatchesAreFormed) {
  for (const bool version_2 : {false, true}) {
    const Dataset dataset = random_dataset(version_2);
    const Answered reference = answer(dataset, small_options(), hash_model);
    for (const text::BatchOptions batches :
         {text::BatchOptions{1, 1}, {97, 64}, {100000, 7}, {100000, 100000}}) {
      for (const std::size_t group : {std::size_t{1}, std::size_t{13}, std::size_t{100000}}) {
        SCOPED_TRACE(testing::Message() << batches.max_tokens << " tokens, " << batches.max_batch
                                        << " rows, groups of " << group);
        QuestionOptions options = small_options();
        options.group_size = group;
        expect_equal(reference, answer(dataset, options, hash_model, batches));
      }
    }
  }
}

TEST(Questions, LimitTakesTheFirst) {
  const Dataset dataset = random_dataset(false);
  const Answered all = answer(dataset, small_options(), hash_model);
  const Answered some = answer(dataset, small_options(), hash_model, {}, {}, 17);
  ASSERT_EQ(some.results->answers().size(), 17u);
  EXPECT_EQ(some.items, 17u);
  for (std::size_t i = 0; i < 17; ++i) EXPECT_EQ(some[i].text, all[i].text);
  const Answered more = answer(dataset, small_options(), hash_model, {}, {}, 1000000);
  EXPECT_EQ(more.results->answers().size(), dataset.questions.size());
}

TEST(Questions, ProgressGrowsToTheEndOnTheCallingThread) {
  const Dataset dataset = random_dataset(false);
  QuestionOptions options = small_options();
  options.group_size = 20;
  std::vector<Progress> seen;
  std::set<std::thread::id> threads;
  const auto model = [&](const text::Batch& batch) {
    threads.insert(std::this_thread::get_id());
    return hash_model(batch);
  };
  const Answered all = answer(dataset, options, model, {}, [&](const Progress& progress) {
    threads.insert(std::this_thread::get_id());
    seen.push_back(progress);
  });
  ASSERT_FALSE(seen.empty());
  for (std::size_t i = 1; i < seen.size(); ++i) {
    EXPECT_GE(seen[i].done, seen[i - 1].done);
    EXPECT_GT(seen[i].tokens, seen[i - 1].tokens);
  }
  EXPECT_EQ(progress_unit(*all.task), "questions");
  EXPECT_EQ(seen.back().done, dataset.questions.size());
  EXPECT_EQ(seen.back().total, dataset.questions.size());
  EXPECT_EQ(seen.back().tokens, all.tokens);
  EXPECT_EQ(threads, std::set{std::this_thread::get_id()});
  EXPECT_LE(all.model_seconds, all.total_seconds);
}

TEST(Questions, AFailingModelEndsTheEvaluation) {
  const Dataset dataset = random_dataset(false);
  QuestionOptions options = small_options();
  options.group_size = 5;
  for (const int fails_at : {0, 1, 30}) {
    int calls = 0;
    const auto model = [&](const text::Batch& batch) {
      if (calls++ == fails_at) throw std::runtime_error("the device is gone");
      return hash_model(batch);
    };
    EXPECT_THROW(answer(dataset, options, model), std::runtime_error);
    EXPECT_EQ(calls, fails_at + 1) << "no call after the failure";
  }
}

TEST(Questions, FailuresAreReported) {
  const Dataset dataset = random_dataset(false);
  QuestionOptions options = small_options();
  options.group_size = 5;
  const auto error_with = [&](const text::RunBatchFn& model, const text::BatchOptions& batches = {},
                              int longest = kLongest) {
    return error_of([&] { answer(dataset, options, model, batches, {}, 0, longest); });
  };
  EXPECT_THAT(error_with(hash_model, {}, 6),
              AllOf(HasSubstr("leaves no room"),
                    StartsWith(fmt::format("question {}: ", dataset.questions[0].id))));
  EXPECT_THAT(error_with(hash_model, {4096, 0}), HasSubstr("max_batch 0"));
  EXPECT_THAT(error_with([](const text::Batch& batch) {
                std::vector<float> logits = hash_model(batch);
                logits.pop_back();
                return logits;
              }),
              HasSubstr("tokens; the task needs a start and an end logit for each token"));
  options.group_size = 1;  // so each call is of one question
  int question = 0;
  EXPECT_THAT(error_with([&](const text::Batch& batch) {
                std::vector<float> logits = hash_model(batch);
                if (question++ == 7) logits[0] = std::nanf("");
                return logits;
              }),
              HasSubstr("NaN or infinity for item 7 of the data, counted from 0;"));
  const Dataset blank{false, {" "}, {{.id = "q", .text = "who?", .answers = {"a"}}}};
  EXPECT_EQ(error_of([&] { answer(blank, options, hash_model); }),
            "data: nothing to score: no word pieces in the 1 questions read");
  options.predictions.n_best_size = 0;
  EXPECT_THAT(error_with(hash_model), HasSubstr("'n_best' 0"));
}

TEST(Questions, FilesAreReadBack) {
  const Dataset dataset = random_dataset(true);
  const Answered all = answer(dataset, small_options(), hash_model);
  const auto answers = all.results->answers();
  const nlohmann::json texts(all.results->predictions());
  EXPECT_EQ(texts.size(), answers.size());
  for (const auto& [id, prediction] : answers) EXPECT_EQ(texts.at(id), prediction.text);
  const squad::ScratchFile file("");
  const auto read = [&] {
    std::ifstream stream(file.path());
    return nlohmann::json::parse(stream);
  };
  save_predictions(file.path(), all.results->predictions());
  EXPECT_EQ(read(), texts);
  save_null_odds(file.path(), answers);
  for (const auto& [id, prediction] : answers) EXPECT_EQ(read().at(id), *prediction.null_odds);
  save_nbest(file.path(), answers);
  const nlohmann::json nbest = read();
  EXPECT_EQ(nbest.size(), dataset.questions.size());
  EXPECT_EQ(nbest["q0"][0]["text"], all[0].nbest[0].text);
  EXPECT_ERROR(HasSubstr("/nowhere/nbest.json: cannot write: No such file"),
               save_nbest("/nowhere/nbest.json", answers));
}

}  // namespace
}  // namespace bertcl::tasks
