// SPDX-License-Identifier: Apache-2.0
// Scores of classes from a model's logits.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

namespace bertcl::tasks {

/// What makes scores of logits: softmax where a text has one label, the sigmoid of each where it
/// may have several, or none.
enum class Activation { softmax, sigmoid, none };

/// 1 / (1 + exp(-logit))
double sigmoid(double logit);

struct ClassScore {
  std::size_t label = 0;  ///< index of the class
  float score = 0;
};

/// Scores of all classes in their order; NaN where the logit, or with softmax any, is NaN, or where
/// infinity is the largest. Requires a logit.
std::vector<float> class_scores(std::span<const float> logits, Activation activation);

/// The best `count` classes by their scores, best first; equal ones in their order, NaN last.
std::vector<ClassScore> best_classes(std::span<const float> scores, std::size_t count);

}  // namespace bertcl::tasks
