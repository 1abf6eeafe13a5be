// SPDX-License-Identifier: Apache-2.0
// Wraps a session of a model with a task head as the function that tasks/ calls.
#pragma once
#include <string>
#include <vector>

#include "runtime/session.hpp"
#include "tasks/task.hpp"
#include "text/batch.hpp"
#include "tools/models/text_model.hpp"

namespace bertcl::tools {

/// Refers to the session, which must outlive it.
class TaskModel {
 public:
  /// Throws Error that names the model if it has another head.
  TaskModel(runtime::Session& session, const tasks::Head& head);

  /// [batch, classes], or [batch, seq, classes] by token.
  std::vector<float> operator()(const text::Batch& batch);

  /// One small batch, so that compilation at first use is not measured.
  void warm_up() { (*this)(model_.small_batch()); }

  TextModel& model() { return model_; }

 private:
  TextModel model_;
  std::string output_;
  bool by_token_;
};

}  // namespace bertcl::tools
