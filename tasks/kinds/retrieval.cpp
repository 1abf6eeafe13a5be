// SPDX-License-Identifier: Apache-2.0
// Search for the paragraph of a question by vectors.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "bertcl/error.hpp"
#include "tasks/kinds/append_prediction.hpp"
#include "tasks/scores/metrics.hpp"
#include "tasks/scores/vector_similarity.hpp"
#include "tasks/task.hpp"

namespace bertcl::tasks {
namespace {

/// Parts of an item: its question, and its paragraph where no earlier question has the same.
constexpr std::size_t kQuestionPart = 0, kParagraphPart = 1;

class RetrievalTask : public Task {
 public:
  RetrievalTask(QuestionParagraphs data, RetrievalPrompts prompts)
      : data_(distinct(std::move(data))), prompts_(std::move(prompts)) {
    if (data_.questions.empty())
      throw Error("no question has a paragraph that answers it, so there is nothing to search for");
  }

  std::size_t size() const override { return data_.questions.size(); }
  std::string unit() const override { return "questions"; }
  const Head& head() const override { return head_; }
  std::string main_metric() const override { return "ndcg_at_10"; }
  std::vector<Sequence> encode(std::size_t item, const text::Tokenizer& tokenizer,
                               const EncodeOptions& options) const override {
    const auto encode_one = [&](const std::string& text, std::size_t part) {
      return encode_embedded(text, options.lower_case, part, tokenizer, options.max_length);
    };
    const QuestionParagraphs::Question& question = data_.questions[item];
    std::vector<Sequence> sequences;
    if (brings_paragraph(item))
      sequences.push_back(
          encode_one(prompts_.paragraph + data_.paragraphs[question.paragraph], kParagraphPart));
    sequences.push_back(encode_one(prompts_.question + question.text, kQuestionPart));
    return sequences;
  }
  std::unique_ptr<Results> results(std::size_t count, const text::Tokenizer&) const override;

  const QuestionParagraphs& data() const { return data_; }

 private:
  /// distinct() numbers paragraphs by their first questions.
  bool brings_paragraph(std::size_t item) const {
    const std::size_t own = data_.questions[item].paragraph;
    return item == 0 || own > max_before(item);
  }
  std::size_t max_before(std::size_t item) const { return highest_[item - 1]; }

  QuestionParagraphs data_;
  RetrievalPrompts prompts_;
  Head head_{false, 1, true, "a vector"};
  std::vector<std::size_t> highest_ = [this] {  // [questions] paragraph so far
    std::vector<std::size_t> highest;
    for (const auto& question : data_.questions)
      highest.push_back(highest.empty() ? question.paragraph
                                        : std::max(highest.back(), question.paragraph));
    return highest;
  }();
};

class RetrievalResults : public Results {
 public:
  RetrievalResults(const QuestionParagraphs& data, std::size_t count)
      : data_(data), questions_(count) {}

  void add(std::size_t item, const Sequence& sequence, std::span<const float> output) override {
    if (sequence.part == kQuestionPart) {
      questions_[item].assign(output.begin(), output.end());
      return;
    }
    const std::size_t paragraph = data_.questions[item].paragraph;
    if (paragraphs_.size() <= paragraph) paragraphs_.resize(paragraph + 1);
    paragraphs_[paragraph].assign(output.begin(), output.end());
  }
  std::vector<Metric> metrics() const override {
    const ComparedVectors paragraphs = compared_paragraphs();
    std::vector<std::size_t> ranks;
    for (std::size_t item = 0; item < questions_.size(); ++item)
      ranks.push_back(
          rank_of(paragraphs.similarities(questions_[item]), data_.questions[item].paragraph));
    const SearchScores scores = search_scores(ranks, kSearchDepth);
    return {
        {"ndcg_at_10", scores.ndcg}, {"mrr_at_10", scores.mrr}, {"recall_at_10", scores.recall}};
  }
  /// The index of the paragraph that is found first.
  nlohmann::ordered_json predictions() const override {
    const ComparedVectors paragraphs = compared_paragraphs();
    nlohmann::ordered_json json = nlohmann::ordered_json::object();
    for (std::size_t item = 0; item < questions_.size(); ++item) {
      const std::vector<double> cosines = paragraphs.similarities(questions_[item]);
      append_prediction(json, data_.questions[item].id,
                        std::ranges::max_element(cosines) - cosines.begin());
    }
    return json;
  }
  std::vector<std::vector<float>> vectors() const override {
    std::vector<std::vector<float>> all = questions_;
    all.insert(all.end(), paragraphs_.begin(), paragraphs_.end());
    return all;
  }

 private:
  ComparedVectors compared_paragraphs() const {
    std::vector<float> all;
    for (const std::vector<float>& vector : paragraphs_)
      all.insert(all.end(), vector.begin(), vector.end());
    return {Similarity::cosine, all, paragraphs_.empty() ? 0 : paragraphs_.front().size()};
  }

  const QuestionParagraphs& data_;
  std::vector<std::vector<float>> questions_, paragraphs_;
};

std::unique_ptr<Results> RetrievalTask::results(std::size_t count, const text::Tokenizer&) const {
  return std::make_unique<RetrievalResults>(data_, count);
}

}  // namespace

QuestionParagraphs distinct(QuestionParagraphs all) {
  QuestionParagraphs result;
  std::map<std::string_view, std::size_t> places;
  for (QuestionParagraphs::Question& question : all.questions) {
    const std::string& text = all.paragraphs[question.paragraph];
    const auto [place, is_new] = places.emplace(text, result.paragraphs.size());
    if (is_new) result.paragraphs.push_back(text);
    result.questions.push_back({std::move(question.id), std::move(question.text), place->second});
  }
  return result;
}

std::unique_ptr<Task> retrieval_task(QuestionParagraphs data, RetrievalPrompts prompts) {
  return std::make_unique<RetrievalTask>(std::move(data), std::move(prompts));
}

}  // namespace bertcl::tasks
