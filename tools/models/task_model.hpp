// SPDX-License-Identifier: Apache-2.0
// Wraps a session of a model with a head as the function that tasks/ calls.
#pragma once
#include <vector>

#include "runtime/session.hpp"
#include "tasks/task.hpp"
#include "text/run_rows.hpp"
#include "tools/models/text_model.hpp"

namespace bertcl::tools {

/// Refers to the session, which must outlive it.
class TaskModel : public TextModel {
 public:
  /// Throws Error that names the model if it has another head.
  TaskModel(runtime::Session& session, const tasks::Head& head);

  /// Runs a batch, as text::RunBatchFn.
  std::vector<float> operator()(const text::Batch& batch) {
    return run(batch, outputs_, by_token_);
  }

  /// One small batch, so that compilation at first use is not measured.
  void warm_up() { (*this)(small_batch()); }

 private:
  runtime::OutputNames outputs_;
  bool by_token_;
};

}  // namespace bertcl::tools
