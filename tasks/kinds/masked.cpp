// SPDX-License-Identifier: Apache-2.0
// Prediction of masked tokens: masked language models.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "tasks/kinds/append_prediction.hpp"
#include "tasks/scores/argmax.hpp"
#include "tasks/scores/metrics.hpp"
#include "tasks/task.hpp"

namespace bertcl::tasks {
namespace {

class MaskedResults : public Results {
 public:
  MaskedResults(const std::vector<NamedText>& texts, std::size_t count,
                const text::Tokenizer& tokenizer)
      : texts_(texts), tokenizer_(tokenizer), tokens_(count) {}

  void add(std::size_t item, const Sequence& sequence, std::span<const float> output) override {
    const std::size_t classes = output.size() / sequence.length();
    for (std::size_t i = 0; i < sequence.places.size(); ++i) {
      const std::size_t chosen = argmax(output.subspan(sequence.places[i] * classes, classes));
      predicted_.push_back(static_cast<std::int64_t>(chosen));
      reference_.push_back(sequence.targets[i]);
      // Some models have more classes than the vocabulary tokens.
      std::vector<std::string>& tokens = tokens_[item];
      tokens.resize(std::max(tokens.size(), sequence.words[i] + 1));
      tokens[sequence.words[i]] = chosen < tokenizer_.vocabulary_size()
                                      ? tokenizer_.token(static_cast<std::int32_t>(chosen))
                                      : fmt::format("[{}]", chosen);
    }
  }
  std::vector<Metric> metrics() const override {
    return {{"accuracy", accuracy(predicted_, reference_)}};
  }
  nlohmann::ordered_json predictions() const override {
    nlohmann::ordered_json json = nlohmann::ordered_json::object();
    for (std::size_t i = 0; i < tokens_.size(); ++i)
      append_prediction(json, key_of(texts_[i].id, i), tokens_[i]);
    return json;
  }

 private:
  const std::vector<NamedText>& texts_;
  const text::Tokenizer& tokenizer_;
  std::vector<std::int64_t> predicted_, reference_;  // of all hidden tokens, in the order of add()
  std::vector<std::vector<std::string>> tokens_;     // [items] what is predicted
};

class MaskedTask : public Task {
 public:
  MaskedTask(std::vector<NamedText> texts, std::size_t vocabulary) : texts_(std::move(texts)) {
    head_ = {true, vocabulary, true,
             fmt::format("one class per vocabulary token ({})", vocabulary)};
  }

  std::size_t size() const override { return texts_.size(); }
  std::string unit() const override { return "texts"; }
  const Head& head() const override { return head_; }
  std::string main_metric() const override { return "accuracy"; }
  std::vector<Sequence> encode(std::size_t item, const text::Tokenizer& tokenizer,
                               const EncodeOptions& options) const override {
    return encode_masked(texts_[item].text, tokenizer, options.max_length, item);
  }
  std::unique_ptr<Results> results(std::size_t count,
                                   const text::Tokenizer& tokenizer) const override {
    return std::make_unique<MaskedResults>(texts_, count, tokenizer);
  }

 private:
  std::vector<NamedText> texts_;
  Head head_;
};

}  // namespace

std::unique_ptr<Task> masked_task(std::vector<NamedText> texts, std::size_t vocabulary) {
  return std::make_unique<MaskedTask>(std::move(texts), vocabulary);
}

}  // namespace bertcl::tasks
