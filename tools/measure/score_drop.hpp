// SPDX-License-Identifier: Apache-2.0
// The score that a model loses on a task against another.
#pragma once
#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "opencl/context.hpp"
#include "quant/graph/model.hpp"
#include "runtime/session.hpp"
#include "squad/dataset.hpp"
#include "tasks/task.hpp"
#include "text/tokenizer.hpp"

namespace bertcl::tools {

/// The indices below `total` that are not among `taken`, `limit` of them in equal steps; all if it
/// is 0. Throws Error if there are none.
std::vector<std::size_t> other_items(std::size_t total, const std::vector<std::size_t>& taken,
                                     std::size_t limit);

/// The questions of those indices.
squad::Dataset some_questions(const squad::Dataset& dataset,
                              const std::vector<std::size_t>& indices);

struct TaskScore {
  std::string name;     ///< "F1", "accuracy", "Pearson": tasks::Task::main_metric()
  double points = 0.0;  ///< percent, or hundredths of a correlation
};

/// The score of models on the items of a task.
struct ScoreMeasure {
  std::size_t items = 0;
  std::string unit;  ///< of items: "questions"
  /// `what` names the model on the terminal.
  std::function<TaskScore(runtime::Session& session, const std::string& what)> measure;
};

/// Measures on data that `origin` names in messages. The tokenizer must live as long.
ScoreMeasure task_measure(std::shared_ptr<const tasks::Task> task, const text::Tokenizer& tokenizer,
                          int max_length, const std::string& origin);

/// The same where items are those of the file `origin` at these indices: its message names the item
/// whose output is not finite.
ScoreMeasure naming_items(ScoreMeasure measure, const std::string& origin,
                          std::vector<std::size_t> items);

class ScoreDrop {
 public:
  /// Measures `model`, the float one. Throws Error if it has no head of the task, or if the score
  /// is not defined for it.
  ScoreDrop(const std::filesystem::path& model, const std::string& device, ScoreMeasure measure);

  /// The float model's points minus this one's.
  double operator()(const quant::Model& model);

  const TaskScore& float_score() const { return float_score_; }
  std::size_t items() const { return measure_.items; }
  const std::string& unit() const { return measure_.unit; }

 private:
  ScoreMeasure measure_;
  std::shared_ptr<opencl::Context> context_;
  TaskScore float_score_;
};

}  // namespace bertcl::tools
