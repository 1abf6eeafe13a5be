// SPDX-License-Identifier: Apache-2.0
// Questions of SQuAD: windows over their contexts, and the answers that their logits give.
#include <algorithm>
#include <limits>
#include <mutex>
#include <nlohmann/json.hpp>
#include <utility>

#include "squad/batch.hpp"
#include "squad/metrics.hpp"
#include "support/fail.hpp"
#include "tasks/kinds/append_prediction.hpp"
#include "tasks/task.hpp"
#include "text/base/data_file.hpp"

namespace bertcl::tasks {
namespace {

using squad::QuestionPrediction;

class QuestionsTask : public Task {
 public:
  QuestionsTask(std::shared_ptr<const squad::Dataset> dataset, const QuestionOptions& options)
      : dataset_(std::move(dataset)), options_(options) {
    check(options_.predictions);
    options_.predictions.version_2 = dataset_->version_2;
    options_.predictions.allow_nonfinite = true;  // evaluate() refuses them
  }

  std::size_t size() const override { return dataset_->questions.size(); }
  std::string unit() const override { return "questions"; }
  const Head& head() const override { return squad::logits_head(); }
  std::string main_metric() const override { return "f1"; }
  std::size_t group_size() const override { return options_.group_size; }
  std::vector<Sequence> encode(std::size_t item, const text::Tokenizer& tokenizer,
                               const EncodeOptions& options) const override {
    const squad::Question& question = dataset_->questions[item];
    const auto document = document_of(question.context, tokenizer);
    squad::FeatureOptions features = options_.features;
    features.max_seq_length = options.max_length;
    std::vector<Sequence> sequences;
    try {
      for (squad::Feature& feature :
           make_features(*document, question.text, tokenizer, features, item)) {
        Sequence sequence{{feature.input_ids, feature.second}};
        sequence.part = sequences.size();
        sequence.window = std::make_shared<squad::QuestionWindow>(document, std::move(feature));
        sequences.push_back(std::move(sequence));
      }
    } catch (const squad::NoRoomForContext& error) {
      fail("question {}: {}", text::excerpt_of(question.id), error.what());
    }
    return sequences;
  }
  std::unique_ptr<Results> results(std::size_t count,
                                   const text::Tokenizer& tokenizer) const override;

  const squad::Dataset& dataset() const { return *dataset_; }
  const QuestionOptions& options() const { return options_; }

 private:
  /// That of the question before, where it has the same context.
  std::shared_ptr<const squad::Document> document_of(std::size_t context,
                                                     const text::Tokenizer& tokenizer) const {
    const std::lock_guard lock(mutex_);
    if (!document_ || context_ != context || tokenizer_ != &tokenizer)
      document_ = std::make_shared<squad::Document>(
          squad::make_document(dataset_->contexts[context], tokenizer));
    context_ = context;
    tokenizer_ = &tokenizer;
    return document_;
  }

  std::shared_ptr<const squad::Dataset> dataset_;
  QuestionOptions options_;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const squad::Document> document_;
  mutable std::size_t context_ = 0;                     // of it
  mutable const text::Tokenizer* tokenizer_ = nullptr;  // that made it
};

class QuestionsResults : public Results {
 public:
  QuestionsResults(const QuestionsTask& task, std::size_t count, const text::Tokenizer& tokenizer)
      : task_(task), tokenizer_(tokenizer), windows_(count) {
    for (std::size_t i = 0; i < count; ++i)
      predictions_.push_back({task.dataset().questions[i].id, {}});
  }

  void add(std::size_t item, const Sequence& sequence, std::span<const float> output) override {
    std::vector<RunWindow>& windows = windows_[item];
    windows.resize(std::max(windows.size(), sequence.part + 1));
    windows[sequence.part] = {sequence.window, squad::split_logits(output)};
  }
  void finish(std::size_t item) override {
    const auto windows = std::exchange(windows_[item], {});
    std::vector<squad::WindowLogits> logits;
    for (const RunWindow& run : windows)
      logits.push_back({&run.window->feature, run.logits.start, run.logits.end});
    static const squad::Document nothing;
    squad::Prediction& prediction = predictions_[item].prediction;
    prediction = predict(windows.empty() ? nothing : *windows[0].window->document, logits,
                         tokenizer_, task_.options().predictions);
    if (!task_.options().keep_nbest) prediction.nbest = {};
  }
  std::vector<Metric> metrics() const override {
    const squad::Scores all = scores();
    std::vector<Metric> metrics = {{"exact_match", all.exact_match}, {"f1", all.f1}};
    for (const auto& [name, value] : all.official_metrics())
      metrics.push_back({name, value, false, true});
    return metrics;
  }
  nlohmann::ordered_json predictions() const override {
    nlohmann::ordered_json json = nlohmann::ordered_json::object();
    for (const auto& [id, prediction] : predictions_) append_prediction(json, id, prediction.text);
    return json;
  }
  std::span<const QuestionPrediction> answers() const override { return predictions_; }

 private:
  struct RunWindow {
    std::shared_ptr<const squad::QuestionWindow> window;
    squad::Logits logits;
  };

  squad::Scores scores() const {
    const auto questions = std::span(task_.dataset().questions).first(predictions_.size());
    squad::Predictions texts;
    squad::NullOdds null_odds;
    for (const auto& [id, prediction] : predictions_) {
      texts[id] = prediction.text;
      if (prediction.null_odds) null_odds[id] = *prediction.null_odds;
    }
    if (!task_.dataset().version_2) return evaluate_v1(questions, texts);
    // The answers hold the null decision already: no further threshold.
    return evaluate_v2(questions, texts, &null_odds, std::numeric_limits<double>::infinity());
  }

  const QuestionsTask& task_;
  const text::Tokenizer& tokenizer_;
  std::vector<std::vector<RunWindow>> windows_;  // [items] of those that are not finished
  std::vector<QuestionPrediction> predictions_;  // [items]
};

std::unique_ptr<Results> QuestionsTask::results(std::size_t count,
                                                const text::Tokenizer& tokenizer) const {
  return std::make_unique<QuestionsResults>(*this, count, tokenizer);
}

}  // namespace

std::unique_ptr<Task> questions_task(std::shared_ptr<const squad::Dataset> dataset,
                                     const QuestionOptions& options) {
  return std::make_unique<QuestionsTask>(std::move(dataset), options);
}

}  // namespace bertcl::tasks
