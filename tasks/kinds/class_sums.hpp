// SPDX-License-Identifier: Apache-2.0
// Logits of the classes of each text, summed over its windows.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "tasks/task.hpp"

namespace bertcl::tasks {

/// The results of a task on texts and classes. All classes of a text are summed over the same
/// windows: the sums decide as their means do.
class ClassSums : public Results {
 public:
  explicit ClassSums(std::size_t texts) : sums_(texts) {}

  void add(std::size_t text, const Sequence&, std::span<const float> logits) override {
    std::vector<double>& sums = sums_[text];
    sums.resize(logits.size());
    for (std::size_t i = 0; i < logits.size(); ++i) sums[i] += logits[i];
  }

 protected:
  std::size_t texts() const { return sums_.size(); }
  std::span<const double> sums(std::size_t text) const { return sums_[text]; }

 private:
  std::vector<std::vector<double>> sums_;  // [texts][classes]
};

}  // namespace bertcl::tasks
