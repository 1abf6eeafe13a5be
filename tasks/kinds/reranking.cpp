// SPDX-License-Identifier: Apache-2.0
// The paragraphs that BM25 finds for a question, ordered by a cross-encoder.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "bertcl/error.hpp"
#include "tasks/kinds/append_prediction.hpp"
#include "tasks/rank.hpp"
#include "tasks/scores/bm25.hpp"
#include "tasks/scores/metrics.hpp"
#include "tasks/task.hpp"

namespace bertcl::tasks {
namespace {

class RerankingTask : public Task {
 public:
  explicit RerankingTask(QuestionParagraphs data) : data_(distinct(std::move(data))) {
    if (data_.questions.empty())
      throw Error("no question has a paragraph that answers it, so there is nothing to rank");
    const Bm25 search(data_.paragraphs);
    for (const QuestionParagraphs::Question& question : data_.questions)
      candidates_.push_back(search.best(question.text, kCandidates));
  }

  std::size_t size() const override { return data_.questions.size(); }
  std::string unit() const override { return "questions"; }
  const Head& head() const override { return rank_head(); }
  std::string main_metric() const override { return "mrr_at_10"; }
  std::vector<Sequence> encode(std::size_t item, const text::Tokenizer& tokenizer,
                               const EncodeOptions& options) const override {
    std::vector<Sequence> sequences;
    for (const std::size_t paragraph : candidates_[item]) {
      sequences.push_back(encode_pair(data_.questions[item].text, data_.paragraphs[paragraph],
                                      tokenizer, options.max_length));
      sequences.back().part = sequences.size() - 1;
    }
    return sequences;
  }
  std::unique_ptr<Results> results(std::size_t count, const text::Tokenizer&) const override;

  const QuestionParagraphs& data() const { return data_; }
  const std::vector<std::size_t>& candidates(std::size_t item) const { return candidates_[item]; }

 private:
  QuestionParagraphs data_;
  std::vector<std::vector<std::size_t>> candidates_;  // [questions] paragraphs, BM25's best first
};

class RerankingResults : public Results {
 public:
  RerankingResults(const RerankingTask& task, std::size_t count) : task_(task) {
    for (std::size_t item = 0; item < count; ++item)
      scores_.emplace_back(task.candidates(item).size());
  }

  void add(std::size_t item, const Sequence& sequence, std::span<const float> output) override {
    scores_[item][sequence.part] = output[0];
  }
  std::vector<Metric> metrics() const override {
    std::vector<std::size_t> ranks, before;
    for (std::size_t item = 0; item < scores_.size(); ++item) {
      const std::vector<std::size_t>& candidates = task_.candidates(item);
      const auto at = static_cast<std::size_t>(
          std::ranges::find(candidates, task_.data().questions[item].paragraph) -
          candidates.begin());
      before.push_back(at + 1);  // beyond all candidates where it is none of them
      ranks.push_back(at == candidates.size() ? at + 1 : rank_of(scores_[item], at));
    }
    return {{"mrr_at_10", search_scores(ranks, kSearchDepth).mrr},
            {"bm25_mrr_at_10", search_scores(before, kSearchDepth).mrr},
            {"bm25_recall_at_20", search_scores(before, kCandidates).recall}};
  }
  /// The index of the paragraph of the best score.
  nlohmann::ordered_json predictions() const override {
    nlohmann::ordered_json json = nlohmann::ordered_json::object();
    for (std::size_t item = 0; item < scores_.size(); ++item) {
      const auto best = std::ranges::max_element(scores_[item]);
      append_prediction(json, task_.data().questions[item].id,
                        task_.candidates(item)[best - scores_[item].begin()]);
    }
    return json;
  }

 private:
  const RerankingTask& task_;
  std::vector<std::vector<float>> scores_;  // [items][candidates]
};

std::unique_ptr<Results> RerankingTask::results(std::size_t count, const text::Tokenizer&) const {
  return std::make_unique<RerankingResults>(*this, count);
}

}  // namespace

std::unique_ptr<Task> reranking_task(QuestionParagraphs data) {
  return std::make_unique<RerankingTask>(std::move(data));
}

}  // namespace bertcl::tasks
