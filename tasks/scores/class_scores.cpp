// SPDX-License-Identifier: Apache-2.0
// Softmax and sigmoid in double precision, and an order that is the same on every machine.
#include "tasks/scores/class_scores.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "support/best_indexes.hpp"

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
  std::vector<ClassScore> best;
  for (const std::size_t label : best_indexes(scores, count))
    best.push_back({label, scores[label]});
  return best;
}

}  // namespace bertcl::tasks
