// SPDX-License-Identifier: Apache-2.0
// Which class a text is of, or which classes: any number of them, texts and pairs.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "bertcl/error.hpp"
#include "tasks/kinds/append_prediction.hpp"
#include "tasks/kinds/class_sums.hpp"
#include "tasks/kinds/match_labels.hpp"
#include "tasks/scores/argmax.hpp"
#include "tasks/scores/metrics.hpp"
#include "tasks/task.hpp"

namespace bertcl::tasks {
namespace {

class LabelTask : public Task {
 public:
  LabelTask(std::vector<ClassifiedText> texts, std::string unit)
      : texts_(std::move(texts)), unit_(std::move(unit)) {}

  std::size_t size() const override { return texts_.size(); }
  std::string unit() const override { return unit_; }
  const Head& head() const override { return matched_.head; }
  std::vector<Sequence> encode(std::size_t item, const text::Tokenizer& tokenizer,
                               const EncodeOptions& options) const override {
    return encode_classified(texts_[item], tokenizer, options);
  }

  const ClassifiedText& text(std::size_t item) const { return texts_[item]; }
  std::string name_of(std::size_t index) const { return matched_.name_of(index); }

 protected:
  std::vector<ClassifiedText> texts_;
  MatchedLabels matched_;

 private:
  std::string unit_;
};

class ClassifyTask : public LabelTask {
 public:
  ClassifyTask(std::vector<ClassifiedText> texts, std::string unit,
               const std::vector<std::string>& model_labels)
      : LabelTask(std::move(texts), std::move(unit)) {
    DataLabels labels;
    for (const ClassifiedText& text : texts_) labels.try_emplace(text.label, text.line);
    matched_ = match_labels(labels, model_labels, 2, possible_header(texts_));
  }

  std::string main_metric() const override { return "accuracy"; }
  std::unique_ptr<Results> results(std::size_t count, const text::Tokenizer&) const override;

  std::size_t class_of(std::size_t item) const { return matched_.class_of.at(texts_[item].label); }
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

class MultiLabelTask : public LabelTask {
 public:
  MultiLabelTask(std::vector<ClassifiedText> texts, std::string unit,
                 const std::vector<std::string>& model_labels)
      : LabelTask(std::move(texts), std::move(unit)) {
    DataLabels labels;
    for (ClassifiedText& text : texts_) {
      if (!text.labels) text.labels = split_labels(text.label);
      for (const std::string& label : *text.labels) labels.try_emplace(label, text.line);
    }
    if (const auto empty = labels.find(""); empty != labels.end())
      throw Error(found_text({*empty}) + ", an empty label; check for stray commas");
    matched_ = match_labels(labels, model_labels, 1, possible_header(texts_));
    for (const ClassifiedText& text : texts_) {
      std::set<std::size_t> classes;
      for (const std::string& label : *text.labels) classes.insert(matched_.class_of.at(label));
      references_.emplace_back(classes.begin(), classes.end());
    }
  }

  std::string main_metric() const override { return "micro_f1"; }
  std::unique_ptr<Results> results(std::size_t count, const text::Tokenizer&) const override;

  const LabelSets& references() const { return references_; }

 private:
  LabelSets references_;
};

class MultiLabelResults : public ClassSums {
 public:
  MultiLabelResults(const MultiLabelTask& task, std::size_t count)
      : ClassSums(count), task_(task) {}

  std::vector<Metric> metrics() const override {
    LabelSets predicted, reference = task_.references();
    reference.resize(texts());
    for (std::size_t i = 0; i < texts(); ++i) predicted.push_back(classes(i));
    const LabelScores scores = label_scores(predicted, reference);
    return {{"micro_f1", scores.micro_f1},
            {"macro_f1", scores.macro_f1},
            {"accuracy", scores.accuracy}};
  }
  nlohmann::ordered_json predictions() const override {
    nlohmann::ordered_json json = nlohmann::ordered_json::object();
    for (std::size_t i = 0; i < texts(); ++i) {
      nlohmann::ordered_json names = nlohmann::ordered_json::array();
      for (const std::size_t index : classes(i)) names.push_back(task_.name_of(index));
      append_prediction(json, task_.text(i).id, std::move(names));
    }
    return json;
  }

 private:
  std::vector<std::size_t> classes(std::size_t text) const {
    const std::span<const double> logits = sums(text);
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < logits.size(); ++i)
      if (logits[i] > 0) found.push_back(i);
    return found;
  }

  const MultiLabelTask& task_;
};

std::unique_ptr<Results> MultiLabelTask::results(std::size_t count, const text::Tokenizer&) const {
  return std::make_unique<MultiLabelResults>(*this, count);
}

}  // namespace

std::unique_ptr<Task> classify_task(std::vector<ClassifiedText> texts, std::string unit,
                                    const std::vector<std::string>& model_labels,
                                    std::optional<bool> multi_label) {
  const bool lists = std::ranges::any_of(
      texts, [](const ClassifiedText& text) { return text.labels.has_value(); });
  if (lists && multi_label == false)
    throw Error(
        "the data list several labels for a text, but problem_type in the model's config.json, or "
        "TaskOptions::multi_label in C++, says that a text has one");
  if (multi_label.value_or(lists))
    return std::make_unique<MultiLabelTask>(std::move(texts), std::move(unit), model_labels);
  return std::make_unique<ClassifyTask>(std::move(texts), std::move(unit), model_labels);
}

}  // namespace bertcl::tasks
