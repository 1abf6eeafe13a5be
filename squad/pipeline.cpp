// SPDX-License-Identifier: Apache-2.0
// Three stages with a bounded queue between each: tokenize, run the model, choose answers.
#include "squad/pipeline.hpp"

#include <algorithm>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <span>
#include <thread>

#include "squad/bounded_queue.hpp"
#include "support/fail.hpp"
#include "support/stopwatch.hpp"
#include "text/data_file.hpp"

namespace bertcl::squad {
namespace {

/// Consecutive questions whose windows are sorted by length together.
struct Group {
  std::size_t first_question = 0;
  std::vector<std::shared_ptr<const Document>> documents;  // [questions]
  std::vector<std::size_t> feature_begin;                  // [questions + 1]
  std::vector<Feature> features;
  std::vector<Logits> logits;  // [features]
};

using GroupQueue = BoundedQueue<std::unique_ptr<Group>>;

/// Groups that wait before a stage.
constexpr std::size_t queue_capacity = 2;

/// The first exception of any thread.
class Failure {
 public:
  void set(std::exception_ptr exception) {
    const std::lock_guard lock(mutex_);
    if (!exception_) exception_ = std::move(exception);
  }
  void rethrow() const {
    if (exception_) std::rethrow_exception(exception_);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr exception_;
};

void tokenize_questions(const Dataset& dataset, std::span<const Question> questions,
                        const text::Tokenizer& tokenizer, const EvaluateOptions& options,
                        GroupQueue& ready) {
  std::shared_ptr<const Document> document;
  std::size_t context = dataset.contexts.size();
  auto group = std::make_unique<Group>();
  for (std::size_t i = 0; i < questions.size(); ++i) {
    const Question& question = questions[i];
    if (question.context != context) {
      context = question.context;
      document = std::make_shared<Document>(make_document(dataset.contexts[context], tokenizer));
    }
    group->documents.push_back(document);
    group->feature_begin.push_back(group->features.size());
    try {
      for (Feature& feature :
           make_features(*document, question.text, tokenizer, options.features, i))
        group->features.push_back(std::move(feature));
    } catch (const NoRoomForContext& error) {
      fail("question {}: {}", text::excerpt_of(question.id), error.what());
    }
    const bool last = i + 1 == questions.size();
    if (group->features.size() < options.window_features && !last) continue;
    group->feature_begin.push_back(group->features.size());
    if (!ready.push(std::move(group))) return;
    group = std::make_unique<Group>();
    group->first_question = i + 1;
  }
}

void choose_answers(const Group& group, const text::Tokenizer& tokenizer,
                    const PredictionOptions& options, bool keep_nbest,
                    std::vector<QuestionPrediction>& predictions) {
  for (std::size_t i = 0; i < group.documents.size(); ++i) {
    std::vector<WindowLogits> windows;
    for (std::size_t f = group.feature_begin[i]; f < group.feature_begin[i + 1]; ++f) {
      windows.push_back({&group.features[f], group.logits[f].start, group.logits[f].end});
    }
    Prediction prediction = predict(*group.documents[i], windows, tokenizer, options);
    if (!keep_nbest) prediction.nbest = {};
    predictions[group.first_question + i].prediction = std::move(prediction);
  }
}

class ModelStage {
 public:
  ModelStage(const EvaluateOptions& options, const LogitsFn& model, const ProgressFn& progress,
             Evaluation& evaluation)
      : options_(options), model_(model), progress_(progress), evaluation_(evaluation) {}

  void run(Group& group) {
    text::Done all;
    const auto tell = [&](const text::Done& done) {
      all = done;
      if (!progress_) return;
      const std::size_t share = group.documents.size() * done.rows / group.features.size();
      progress_({.questions = group.first_question + share,
                 .questions_total = evaluation_.predictions.size(),
                 .features = evaluation_.features + done.rows,
                 .tokens = evaluation_.tokens + done.tokens,
                 .model_seconds = evaluation_.model_seconds + done.seconds});
    };
    group.logits = run_model(group.features, options_.batches, model_, tell);
    evaluation_.features += all.rows;
    evaluation_.tokens += all.tokens;
    evaluation_.model_seconds += all.seconds;
  }

 private:
  const EvaluateOptions& options_;
  const LogitsFn& model_;
  const ProgressFn& progress_;
  Evaluation& evaluation_;
};

}  // namespace

Evaluation evaluate(const Dataset& dataset, const text::Tokenizer& tokenizer,
                    const EvaluateOptions& options, const LogitsFn& model,
                    const ProgressFn& progress, std::size_t limit) {
  const Stopwatch clock;
  check(options.predictions);
  const std::size_t count =
      limit == 0 ? dataset.questions.size() : std::min(limit, dataset.questions.size());
  const std::span<const Question> questions = std::span(dataset.questions).first(count);
  PredictionOptions prediction_options = options.predictions;
  prediction_options.version_2 = dataset.version_2;

  Evaluation evaluation;
  for (const Question& question : questions) evaluation.predictions.push_back({question.id, {}});

  GroupQueue ready(queue_capacity);
  GroupQueue done(queue_capacity);
  Failure failure;
  // A stage that fails closes both queues, so that no other one waits for ever.
  const auto guarded = [&](const auto& stage) {
    try {
      stage();
    } catch (...) {
      failure.set(std::current_exception());
      ready.close();
      done.close();
    }
  };
  {
    const std::jthread tokenizing([&] {
      guarded([&] { tokenize_questions(dataset, questions, tokenizer, options, ready); });
      ready.close();
    });
    const std::jthread choosing([&] {
      guarded([&] {
        while (const auto group = done.pop()) {
          choose_answers(**group, tokenizer, prediction_options, options.keep_nbest,
                         evaluation.predictions);
        }
      });
    });
    guarded([&] {
      ModelStage stage(options, model, progress, evaluation);
      while (auto group = ready.pop()) {
        stage.run(**group);
        if (!done.push(std::move(*group))) return;
      }
    });
    done.close();
  }
  failure.rethrow();

  evaluation.tokens_padded =
      evaluation.features * static_cast<std::size_t>(options.features.max_seq_length);
  if (dataset.version_2) {
    // The answers hold the null decision already: no further threshold.
    const NullOdds null_odds = evaluation.null_odds();
    evaluation.scores = evaluate_v2(questions, evaluation.answers(), &null_odds,
                                    std::numeric_limits<double>::infinity());
  } else {
    evaluation.scores = evaluate_v1(questions, evaluation.answers());
  }
  evaluation.total_seconds = clock.seconds();
  return evaluation;
}

Predictions Evaluation::answers() const {
  Predictions result;
  for (const auto& [id, prediction] : predictions) result[id] = prediction.text;
  return result;
}

NullOdds Evaluation::null_odds() const {
  NullOdds result;
  for (const auto& [id, prediction] : predictions) {
    if (prediction.null_odds) result[id] = *prediction.null_odds;
  }
  return result;
}

}  // namespace bertcl::squad
