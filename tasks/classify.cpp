// SPDX-License-Identifier: Apache-2.0
// Which class a text is of: any number of classes, texts and pairs.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "bertcl/error.hpp"
#include "tasks/append_prediction.hpp"
#include "tasks/argmax.hpp"
#include "tasks/class_sums.hpp"
#include "tasks/match_labels.hpp"
#include "tasks/metrics.hpp"
#include "tasks/task.hpp"

namespace bertcl::tasks {
namespace {

class ClassifyTask : public Task {
 public:
  ClassifyTask(std::vector<ClassifiedText> texts, std::string unit,
               const std::vector<std::string>& model_labels)
      : texts_(std::move(texts)), unit_(std::move(unit)) {
    DataLabels labels;
    for (const ClassifiedText& text : texts_) labels.try_emplace(text.label, text.line);
    matched_ = match_labels(labels, model_labels, 2);
  }

  std::size_t size() const override { return texts_.size(); }
  std::string unit() const override { return unit_; }
  const Head& head() const override { return matched_.head; }
  std::vector<Sequence> encode(std::size_t item, const text::Tokenizer& tokenizer,
                               const EncodeOptions& options) const override {
    return encode_classified(texts_[item], tokenizer, options);
  }
  std::unique_ptr<Results> results(std::size_t count, const text::Tokenizer&) const override;

  const ClassifiedText& text(std::size_t item) const { return texts_[item]; }
  std::size_t class_of(std::size_t item) const { return matched_.class_of.at(texts_[item].label); }
  std::string name_of(std::size_t index) const { return matched_.name_of(index); }

 private:
  std::vector<ClassifiedText> texts_;
  std::string unit_;
  MatchedLabels matched_;
};

class ClassifyResults : public ClassSums {
 public:
  ClassifyResults(const ClassifyTask& task, std::size_t count) : ClassSums(count), task_(task) {}

  std::vector<Metric> metrics() const override {
    std::vector<std::int64_t> predicted, reference;
    for (std::size_t i = 0; i < texts(); ++i) {
      predicted.push_back(static_cast<std::int64_t>(argmax(sums(i))));
      reference.push_back(static_cast<std::int64_t>(task_.class_of(i)));
    }
    return {{"accuracy", accuracy(predicted, reference)},
            {"macro_f1", macro_f1(predicted, reference)}};
  }
  nlohmann::ordered_json predictions() const override {
    nlohmann::ordered_json json = nlohmann::ordered_json::object();
    for (std::size_t i = 0; i < texts(); ++i)
      append_prediction(json, task_.text(i).id, task_.name_of(argmax(sums(i))));
    return json;
  }

 private:
  const ClassifyTask& task_;
};

std::unique_ptr<Results> ClassifyTask::results(std::size_t count, const text::Tokenizer&) const {
  return std::make_unique<ClassifyResults>(*this, count);
}

}  // namespace

std::unique_ptr<Task> classify_task(std::vector<ClassifiedText> texts, std::string unit,
                                    const std::vector<std::string>& model_labels,
                                    std::optional<bool> multi_label) {
  const bool lists = std::any_of(texts.begin(), texts.end(), [](const ClassifiedText& text) {
    return text.labels.has_value();
  });
  if (lists && multi_label == false)
    throw Error(
        "the data list several labels for a text, but problem_type in the model's config.json, or "
        "TaskOptions::multi_label in C++, says that a text has one");
  if (multi_label.value_or(lists))
    return multi_label_task(std::move(texts), std::move(unit), model_labels);
  return std::make_unique<ClassifyTask>(std::move(texts), std::move(unit), model_labels);
}

}  // namespace bertcl::tasks
