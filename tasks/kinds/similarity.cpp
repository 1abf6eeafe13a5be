// SPDX-License-Identifier: Apache-2.0
// Semantic similarity of two texts: STS-B.
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "tasks/kinds/append_prediction.hpp"
#include "tasks/scores/metrics.hpp"
#include "tasks/scores/vector_similarity.hpp"
#include "tasks/task.hpp"

namespace bertcl::tasks {
namespace {

class SimilarityResults : public Results {
 public:
  SimilarityResults(const std::vector<ScoredPair>& pairs, std::size_t count)
      : predicted_(count), pairs_(pairs) {}

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
    for (std::size_t i = 0; i < predicted_.size(); ++i)
      append_prediction(json, pairs_[i].id, predicted_[i]);
    return json;
  }

 protected:
  std::vector<double> predicted_;  // [items]

 private:
  const std::vector<ScoredPair>& pairs_;
};

/// The cosine of the vectors of both texts, in whichever order they come.
class EmbeddingResults : public SimilarityResults {
 public:
  EmbeddingResults(const std::vector<ScoredPair>& pairs, std::size_t count)
      : SimilarityResults(pairs, count), vectors_(2 * count) {}

  void add(std::size_t item, const Sequence& sequence, std::span<const float> output) override {
    vectors_[2 * item + sequence.part].assign(output.begin(), output.end());
    const std::vector<float>&one = vectors_[2 * item], &other = vectors_[2 * item + 1];
    if (!one.empty() && !other.empty()) predicted_[item] = cosine(one, other);
  }
  std::vector<std::vector<float>> vectors() const override { return vectors_; }

 private:
  std::vector<std::vector<float>> vectors_;  // [items][2]
};

class SimilarityTask : public Task {
 public:
  SimilarityTask(std::vector<ScoredPair> pairs, bool embeds)
      : pairs_(std::move(pairs)), embeds_(embeds) {}

  std::size_t size() const override { return pairs_.size(); }
  std::string unit() const override { return "pairs"; }
  const Head& head() const override { return embeds_ ? vector_ : score_; }
  std::string main_metric() const override { return "pearson"; }
  std::vector<Sequence> encode(std::size_t item, const text::Tokenizer& tokenizer,
                               const EncodeOptions& options) const override {
    const auto encode_one = [&](const std::string& text, std::size_t part) {
      return encode_embedded(text, options.lower_case, part, tokenizer, options.max_length);
    };
    if (embeds_) return {encode_one(pairs_[item].first, 0), encode_one(pairs_[item].second, 1)};
    return {encode_pair(pairs_[item].first, pairs_[item].second, tokenizer, options.max_length)};
  }
  std::unique_ptr<Results> results(std::size_t count, const text::Tokenizer&) const override {
    if (embeds_) return std::make_unique<EmbeddingResults>(pairs_, count);
    return std::make_unique<SimilarityResults>(pairs_, count);
  }

 private:
  std::vector<ScoredPair> pairs_;
  bool embeds_;
  Head score_{false, 1, false,
              "1 score; to compare text vectors, set up pooling (modules.json beside the model, or "
              "the session's pooling options)"},
      vector_{false, 1, true, "a vector"};
};

}  // namespace

std::unique_ptr<Task> similarity_task(std::vector<ScoredPair> pairs, bool embeds) {
  return std::make_unique<SimilarityTask>(std::move(pairs), embeds);
}

}  // namespace bertcl::tasks
