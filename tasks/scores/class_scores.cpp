// SPDX-License-Identifier: Apache-2.0
// Softmax and sigmoid in double precision, and an order that is the same on every machine.
#include "tasks/scores/class_scores.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace bertcl::tasks {

double sigmoid(double logit) { return 1.0 / (1.0 + std::exp(-logit)); }

std::vector<float> class_scores(std::span<const float> logits, Activation activation) {
  double max = -std::numeric_limits<double>::infinity();
  for (const float x : logits) max = std::max<double>(max, x);  // fmax: GCC 12 fails on Arm
  double sum = 0;
  if (activation == Activation::softmax)
    for (const float x : logits) sum += std::exp(x - max);
  std::vector<float> scores;
  scores.reserve(logits.size());
  for (const float x : logits) {
    const double score = activation == Activation::softmax   ? std::exp(x - max) / sum
                         : activation == Activation::sigmoid ? sigmoid(x)
                                                             : x;
    scores.push_back(static_cast<float>(score));
  }
  return scores;
}

std::vector<ClassScore> best_classes(std::span<const float> scores, std::size_t count) {
  std::vector<std::size_t> order(scores.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  count = std::min(count, order.size());
  const auto middle = order.begin() + static_cast<std::ptrdiff_t>(count);
  std::partial_sort(order.begin(), middle, order.end(), [&](std::size_t a, std::size_t b) {
    if (std::isnan(scores[a]) != std::isnan(scores[b])) return std::isnan(scores[b]);
    if (scores[a] > scores[b] || scores[b] > scores[a]) return scores[a] > scores[b];
    return a < b;
  });
  std::vector<ClassScore> best;
  for (std::size_t i = 0; i < count; ++i) best.push_back({order[i], scores[order[i]]});
  return best;
}

}  // namespace bertcl::tasks
