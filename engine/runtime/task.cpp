// SPDX-License-Identifier: Apache-2.0
// What a model is for.
#include "runtime/task.hpp"

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "ir/port.hpp"

namespace bertcl::runtime {
namespace {

bool says(const ir::Port& port, std::initializer_list<std::string_view> words) {
  return std::ranges::any_of(
      words, [&](std::string_view word) { return port.name.find(word) != std::string::npos; });
}

/// The last extent, if it is a number; else 0.
std::int64_t last_extent(const ir::Port& port) {
  const ir::Dim& last = port.type.shape.back();
  return last.is_constant() ? last.constant() : 0;
}

Task task_of(const ir::Port& port, const plan::Plan& plan) {
  const bool scores = says(port, {"logit", "score", "label", "prob"});
  switch (port.type.shape.size()) {
    case 1:  // one score for each text
      return scores ? Task::text_classification : Task::unknown;
    case 2:
      if (says(port, {"start", "end", "unstack"})) return Task::question_answering;
      if (scores) return Task::text_classification;
      return says(port, {"pool", "embed"}) ? Task::feature_extraction : Task::unknown;
    case 3:
      if (plan.word_rows > 0 && last_extent(port) == plan.word_rows) return Task::fill_mask;
      if (last_extent(port) == 2 && says(port, {"squad"})) return Task::question_answering;
      if (scores) return Task::token_classification;
      return says(port, {"hidden", "pool", "embed"}) ? Task::feature_extraction : Task::unknown;
    default:
      return Task::unknown;
  }
}

}  // namespace

Task task_of(const plan::Plan& plan) {
  // A head says more than the hidden states beside it.
  Task found = Task::unknown;
  for (const ir::Port& port : plan.model_outputs) {
    if (!ir::is_float(port.type.dtype)) continue;
    const Task task = task_of(port, plan);
    if (found == Task::unknown || (found == Task::feature_extraction && task != Task::unknown))
      found = task;
  }
  return found;
}

}  // namespace bertcl::runtime
