// SPDX-License-Identifier: Apache-2.0
// Sentiment, negative or positive: SST-2, movie reviews.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <nlohmann/json.hpp>
#include <utility>

#include "bertcl/error.hpp"
#include "tasks/argmax.hpp"
#include "tasks/metrics.hpp"
#include "tasks/task.hpp"

namespace bertcl::tasks {
namespace {

/// 0 for "0", "neg", "NEGATIVE", "LABEL_0"; 1 for their opposites; -1 for anything else.
int polarity_of(std::string label) {
  std::transform(label.begin(), label.end(), label.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (label == "0" || label == "label_0" || label.starts_with("neg")) return 0;
  if (label == "1" || label == "label_1" || label.starts_with("pos")) return 1;
  return -1;
}

/// The class of the model that means negative, and that for positive.
std::array<std::size_t, 2> classes_of(const std::vector<std::string>& labels) {
  if (labels.empty()) return {0, 1};
  std::array<int, 2> at = {-1, -1};
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const int polarity = polarity_of(labels[i]);
    if (polarity >= 0) at[static_cast<std::size_t>(polarity)] = static_cast<int>(i);
  }
  if (labels.size() != 2 || at[0] < 0 || at[1] < 0) {
    throw Error(
        fmt::format("the model's classes are {}, but the task has two, negative and positive; list "
                    "them in output order: --labels negative,positive",
                    fmt::join(labels, ", ")));
  }
  return {static_cast<std::size_t>(at[0]), static_cast<std::size_t>(at[1])};
}

class PolarityTask : public Task {
 public:
  PolarityTask(std::vector<ClassifiedText> texts, std::string unit, std::vector<std::string> names,
               const std::vector<std::string>& model_labels)
      : texts_(std::move(texts)),
        unit_(std::move(unit)),
        names_(std::move(names)),
        classes_(classes_of(model_labels)) {}

  std::size_t size() const override { return texts_.size(); }
  std::string unit() const override { return unit_; }
  const Head& head() const override { return head_; }
  std::vector<Sequence> encode(std::size_t item, const text::WordPieceTokenizer& tokenizer,
                               const EncodeOptions& options) const override {
    const std::string& text = texts_[item].text;
    if (options.windows) return encode_windows(text, tokenizer, options.max_length);
    return {encode_text(text, tokenizer, options.max_length)};
  }
  std::unique_ptr<Results> results(std::size_t count,
                                   const text::WordPieceTokenizer&) const override;

 private:
  friend class PolarityResults;
  std::vector<ClassifiedText> texts_;
  std::string unit_;
  std::vector<std::string> names_;
  std::array<std::size_t, 2> classes_;
  Head head_{false, 2, false, "2 classes, negative and positive"};
};

class PolarityResults : public Results {
 public:
  PolarityResults(const PolarityTask& task, std::size_t count) : task_(task), sums_(count) {}

  void add(std::size_t item, const Sequence&, std::span<const float> output) override {
    for (std::size_t i = 0; i < 2; ++i) sums_[item][i] += output[task_.classes_[i]];
  }
  std::vector<Metric> metrics() const override {
    std::vector<std::int64_t> predicted, reference;
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      predicted.push_back(static_cast<std::int64_t>(predicted_class(i)));
      reference.push_back(task_.texts_[i].label);
    }
    return {{"accuracy", accuracy(predicted, reference)}};
  }
  nlohmann::ordered_json predictions() const override {
    nlohmann::ordered_json json = nlohmann::ordered_json::object();
    for (std::size_t i = 0; i < sums_.size(); ++i)
      json[task_.texts_[i].id] = task_.names_[predicted_class(i)];
    return json;
  }

 private:
  // Both classes are summed over the same windows: the sum decides as their mean does.
  std::size_t predicted_class(std::size_t item) const {
    return argmax(std::span<const double>(sums_[item]));
  }

  const PolarityTask& task_;
  std::vector<std::array<double, 2>> sums_;  // [items] negative, positive
};

std::unique_ptr<Results> PolarityTask::results(std::size_t count,
                                               const text::WordPieceTokenizer&) const {
  return std::make_unique<PolarityResults>(*this, count);
}

}  // namespace

std::unique_ptr<Task> polarity_task(std::vector<ClassifiedText> texts, std::string unit,
                                    std::vector<std::string> names,
                                    const std::vector<std::string>& model_labels) {
  return std::make_unique<PolarityTask>(std::move(texts), std::move(unit), std::move(names),
                                        model_labels);
}

}  // namespace bertcl::tasks
