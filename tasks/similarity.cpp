// SPDX-License-Identifier: Apache-2.0
// Semantic similarity of two texts: STS-B.
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "tasks/metrics.hpp"
#include "tasks/task.hpp"

namespace bertcl::tasks {
namespace {

class SimilarityResults : public Results {
 public:
  SimilarityResults(const std::vector<ScoredPair>& pairs, std::size_t count)
      : pairs_(pairs), predicted_(count) {}

  void add(std::size_t item, const Sequence&, std::span<const float> output) override {
    predicted_[item] = output[0];
  }
  std::vector<Metric> metrics() const override {
    constexpr double undefined = std::numeric_limits<double>::quiet_NaN();
    if (predicted_.size() < 2) return {{"pearson", undefined, true}, {"spearman", undefined, true}};
    std::vector<double> reference;
    for (std::size_t i = 0; i < predicted_.size(); ++i) reference.push_back(pairs_[i].score);
    return {{"pearson", pearson(predicted_, reference), true},
            {"spearman", spearman(predicted_, reference), true}};
  }
  nlohmann::ordered_json predictions() const override {
    nlohmann::ordered_json json = nlohmann::ordered_json::object();
    for (std::size_t i = 0; i < predicted_.size(); ++i) json[pairs_[i].id] = predicted_[i];
    return json;
  }

 private:
  const std::vector<ScoredPair>& pairs_;
  std::vector<double> predicted_;  // [items]
};

class SimilarityTask : public Task {
 public:
  explicit SimilarityTask(std::vector<ScoredPair> pairs) : pairs_(std::move(pairs)) {}

  std::size_t size() const override { return pairs_.size(); }
  std::string unit() const override { return "pairs"; }
  const Head& head() const override { return head_; }
  std::vector<Sequence> encode(std::size_t item, const text::WordPieceTokenizer& tokenizer,
                               const EncodeOptions& options) const override {
    return {encode_pair(pairs_[item].first, pairs_[item].second, tokenizer, options.max_length)};
  }
  std::unique_ptr<Results> results(std::size_t count,
                                   const text::WordPieceTokenizer&) const override {
    return std::make_unique<SimilarityResults>(pairs_, count);
  }

 private:
  std::vector<ScoredPair> pairs_;
  Head head_{false, 1, false, "1 score"};
};

}  // namespace

std::unique_ptr<Task> similarity_task(std::vector<ScoredPair> pairs) {
  return std::make_unique<SimilarityTask>(std::move(pairs));
}

}  // namespace bertcl::tasks
