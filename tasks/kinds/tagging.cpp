// SPDX-License-Identifier: Apache-2.0
// A tag for each word: WNUT17.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "support/fail.hpp"
#include "support/option_name.hpp"
#include "tasks/kinds/append_prediction.hpp"
#include "tasks/kinds/match_labels.hpp"
#include "tasks/scores/argmax.hpp"
#include "tasks/scores/metrics.hpp"
#include "tasks/task.hpp"

namespace bertcl::tasks {

void check_tags_are_known(const std::vector<std::string>& labels) {
  if (labels.empty()) {
    fail(
        "the tags of the model's classes are unknown; list them in output order with {} "
        "(O,B-person,I-person,.. or a file, one per line), or put the model's config.json with "
        "id2label beside it",
        option_name("labels"));
  }
}

namespace {

void check_labels(const std::vector<TaggedSentence>& sentences,
                  const std::vector<std::string>& labels) {
  check_tags_are_known(labels);
  DataLabels unknown;
  for (const TaggedSentence& sentence : sentences)
    for (std::size_t i = 0; i < sentence.tags.size(); ++i)
      unknown.try_emplace(sentence.tags[i], i < sentence.lines.size() ? sentence.lines[i] : 0);
  for (const std::string& label : labels) unknown.erase(label);
  if (!unknown.empty()) {
    fail(
        "{}, which is not among the model's classes: {}; if the model only names it differently, "
        "list the tags in output order with {}",
        found_text(unknown), fmt::join(labels, ", "), option_name("labels"));
  }
}

class TaggingResults : public Results {
 public:
  TaggingResults(const std::vector<TaggedSentence>& sentences,
                 const std::vector<std::string>& labels, std::size_t count)
      : labels_(labels) {
    for (std::size_t i = 0; i < count; ++i) {
      ids_.push_back(sentences[i].id);
      reference_.push_back(sentences[i].tags);
      predicted_.emplace_back(sentences[i].tags.size(), "O");
    }
  }

  void add(std::size_t item, const Sequence& sequence, std::span<const float> output) override {
    const std::size_t classes = output.size() / sequence.length();
    for (std::size_t i = 0; i < sequence.places.size(); ++i)
      predicted_[item][sequence.words[i]] =
          labels_[argmax(output.subspan(sequence.places[i] * classes, classes))];
  }
  std::vector<Metric> metrics() const override {
    const EntityScores scores = entity_scores(predicted_, reference_);
    return {{"f1", scores.f1},
            {"precision", scores.precision},
            {"recall", scores.recall},
            {"accuracy", scores.accuracy}};
  }
  nlohmann::ordered_json predictions() const override {
    nlohmann::ordered_json json = nlohmann::ordered_json::object();
    for (std::size_t i = 0; i < predicted_.size(); ++i)
      append_prediction(json, key_of(ids_[i], i), predicted_[i]);
    return json;
  }

 private:
  const std::vector<std::string>& labels_;
  std::vector<std::string> ids_;
  Tags reference_, predicted_;
};

class TaggingTask : public Task {
 public:
  TaggingTask(std::vector<TaggedSentence> sentences, std::vector<std::string> labels)
      : sentences_(std::move(sentences)), labels_(std::move(labels)) {
    check_labels(sentences_, labels_);
    head_ = {true, labels_.size(), false,
             fmt::format("{} classes: {}", labels_.size(), fmt::join(labels_, ", "))};
  }

  std::size_t size() const override { return sentences_.size(); }
  std::string unit() const override { return "sentences"; }
  const Head& head() const override { return head_; }
  std::string main_metric() const override { return "f1"; }
  std::vector<Sequence> encode(std::size_t item, const text::Tokenizer& tokenizer,
                               const EncodeOptions& options) const override {
    return encode_words(sentences_[item].words, tokenizer, options.max_length);
  }
  std::unique_ptr<Results> results(std::size_t count, const text::Tokenizer&) const override {
    return std::make_unique<TaggingResults>(sentences_, labels_, count);
  }

 private:
  std::vector<TaggedSentence> sentences_;
  std::vector<std::string> labels_;
  Head head_;
};

}  // namespace

std::unique_ptr<Task> tagging_task(std::vector<TaggedSentence> sentences,
                                   std::vector<std::string> model_labels) {
  return std::make_unique<TaggingTask>(std::move(sentences), std::move(model_labels));
}

}  // namespace bertcl::tasks
