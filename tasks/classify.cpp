// SPDX-License-Identifier: Apache-2.0
// Which class a text is of: any number of classes, texts and pairs.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "bertcl/error.hpp"
#include "tasks/argmax.hpp"
#include "tasks/metrics.hpp"
#include "tasks/task.hpp"

namespace bertcl::tasks {
namespace {

using Labels = std::vector<std::string>;

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

/// The classes of a model that stand for labels of the data.
using ClassOf = std::map<std::string, std::size_t>;

/// The class at which `matches(label, class)`; none if a label has no class.
template <class Matches>
std::optional<ClassOf> match(const std::set<std::string>& data, std::size_t classes,
                             const Matches& matches) {
  ClassOf class_of;
  for (const std::string& label : data) {
    std::size_t at = 0;
    while (at < classes && !matches(label, at)) ++at;
    if (at == classes) return std::nullopt;
    class_of[label] = at;
  }
  return class_of;
}

/// 0 for "0", "neg", "NEGATIVE", "LABEL_0"; 1 for their opposites; none for anything else.
std::optional<std::size_t> polarity_of(const std::string& name) {
  const std::string label = lower(name);
  if (label == "0" || label == "label_0" || label.starts_with("neg")) return 0;
  if (label == "1" || label == "label_1" || label.starts_with("pos")) return 1;
  return std::nullopt;
}

/// The class that a label counts, from 0.
std::optional<std::size_t> number_of(const std::string& label) {
  std::size_t number = 0;
  const auto [rest, error] = std::from_chars(label.data(), label.data() + label.size(), number);
  if (error != std::errc{} || rest != label.data() + label.size()) return std::nullopt;
  return number;
}

/// Labels by the names of the model's classes; negative and positive by any of their names;
/// numbers count the classes.
ClassOf match_names(const std::set<std::string>& data, const Labels& names) {
  const std::size_t classes = names.size();
  if (auto same = match(data, classes, [&](auto& label, auto at) { return label == names[at]; }))
    return *same;
  if (auto same = match(data, classes,
                        [&](auto& label, auto at) { return lower(label) == lower(names[at]); }))
    return *same;
  if (classes == 2 && polarity_of(names[0]) && polarity_of(names[1]) &&
      polarity_of(names[0]) != polarity_of(names[1])) {
    if (auto polar = match(data, classes, [&](auto& label, auto at) {
          return polarity_of(label) == polarity_of(names[at]);
        }))
      return *polar;
  }
  if (auto numbers =
          match(data, classes, [](auto& label, auto at) { return number_of(label) == at; }))
    return *numbers;
  std::set<std::string> unknown = data;
  for (const std::string& name : names) unknown.erase(name);
  throw Error(fmt::format(
      "the data have {}, which the model cannot give: its classes are {}; if it only calls them "
      "otherwise, give the classes in the order of its output as --labels",
      fmt::join(unknown, ", "), fmt::join(names, ", ")));
}

/// Without names of the model's classes.
ClassOf match_numbers(const std::set<std::string>& data) {
  ClassOf class_of;
  const auto take = [&](const auto& index_of) {
    class_of.clear();
    for (const std::string& label : data) {
      const auto index = index_of(label);
      if (!index) return false;
      class_of[label] = *index;
    }
    return true;
  };
  if (take(number_of) || take(polarity_of)) return class_of;
  throw Error(fmt::format(
      "which class of the model stands for {} is not known; give the classes in the order of its "
      "output as --labels, or put the model's config.json with id2label beside it",
      fmt::join(data, ", ")));
}

class ClassifyTask : public Task {
 public:
  ClassifyTask(std::vector<ClassifiedText> texts, std::string unit, const Labels& model_labels)
      : texts_(std::move(texts)), unit_(std::move(unit)), names_(model_labels) {
    std::set<std::string> labels;
    for (const ClassifiedText& text : texts_) labels.insert(text.label);
    class_of_ = names_.empty() ? match_numbers(labels) : match_names(labels, names_);
    head_.classes = std::max<std::size_t>(2, names_.size());
    head_.or_more = names_.empty();
    for (const auto& [label, index] : class_of_) {
      head_.classes = std::max(head_.classes, index + 1);
      if (names_.size() <= index) names_.resize(index + 1);
      names_[index] = label;  // predictions are named as the data name them
    }
    head_.meaning = fmt::format("{} classes", head_.classes);
    if (!head_.or_more) head_.meaning += fmt::format(": {}", fmt::join(model_labels, ", "));
  }

  std::size_t size() const override { return texts_.size(); }
  std::string unit() const override { return unit_; }
  const Head& head() const override { return head_; }
  std::vector<Sequence> encode(std::size_t item, const text::WordPieceTokenizer& tokenizer,
                               const EncodeOptions& options) const override {
    const ClassifiedText& text = texts_[item];
    if (text.second) return {encode_pair(text.text, *text.second, tokenizer, options.max_length)};
    if (options.windows) return encode_windows(text.text, tokenizer, options.max_length);
    return {encode_text(text.text, tokenizer, options.max_length)};
  }
  std::unique_ptr<Results> results(std::size_t count,
                                   const text::WordPieceTokenizer&) const override;

  const ClassifiedText& text(std::size_t item) const { return texts_[item]; }
  std::size_t class_of(std::size_t item) const { return class_of_.at(texts_[item].label); }
  std::string name_of(std::size_t index) const {
    return index < names_.size() && !names_[index].empty() ? names_[index] : std::to_string(index);
  }

 private:
  std::vector<ClassifiedText> texts_;
  std::string unit_;
  Labels names_;  // of classes; empty where there is none
  ClassOf class_of_;
  Head head_;
};

class ClassifyResults : public Results {
 public:
  ClassifyResults(const ClassifyTask& task, std::size_t count) : task_(task), sums_(count) {}

  void add(std::size_t item, const Sequence&, std::span<const float> output) override {
    std::vector<double>& sums = sums_[item];
    sums.resize(output.size());
    for (std::size_t i = 0; i < output.size(); ++i) sums[i] += output[i];
  }
  std::vector<Metric> metrics() const override {
    std::vector<std::int64_t> predicted, reference;
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      predicted.push_back(static_cast<std::int64_t>(predicted_class(i)));
      reference.push_back(static_cast<std::int64_t>(task_.class_of(i)));
    }
    return {{"accuracy", accuracy(predicted, reference)},
            {"macro_f1", macro_f1(predicted, reference)}};
  }
  nlohmann::ordered_json predictions() const override {
    nlohmann::ordered_json json = nlohmann::ordered_json::object();
    for (std::size_t i = 0; i < sums_.size(); ++i)
      json[task_.text(i).id] = task_.name_of(predicted_class(i));
    return json;
  }

 private:
  // All classes are summed over the same windows: the sum decides as their mean does.
  std::size_t predicted_class(std::size_t item) const {
    return argmax(std::span<const double>(sums_[item]));
  }

  const ClassifyTask& task_;
  std::vector<std::vector<double>> sums_;  // [items][classes]
};

std::unique_ptr<Results> ClassifyTask::results(std::size_t count,
                                               const text::WordPieceTokenizer&) const {
  return std::make_unique<ClassifyResults>(*this, count);
}

}  // namespace

std::unique_ptr<Task> classify_task(std::vector<ClassifiedText> texts, std::string unit,
                                    const std::vector<std::string>& model_labels) {
  return std::make_unique<ClassifyTask>(std::move(texts), std::move(unit), model_labels);
}

}  // namespace bertcl::tasks
