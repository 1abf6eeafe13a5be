// SPDX-License-Identifier: Apache-2.0
// Evaluates a model on a task: texts in, scores, predictions and times out.
#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tasks/task.hpp"
#include "text/run_rows.hpp"
#include "text/tokenizer.hpp"

namespace bertcl::tasks {

struct EvaluateOptions {
  EncodeOptions encode;
  text::BatchOptions batches;
  std::string origin = "data";   ///< of the texts, for messages
  bool allow_nonfinite = false;  ///< NaN and infinite values, else an error
};

/// Counts sequences, or items where their sequences come in groups (Task::group_size()); items are
/// estimated inside a group.
struct Progress {
  std::size_t done = 0, total = 0;
  std::size_t tokens = 0;  ///< done, padding not counted
  double model_seconds = 0.0;
};

/// The unit of Progress::done in the plural: "sequences", "questions".
std::string progress_unit(const Task& task);

/// Called after each batch by the thread that called evaluate().
using ProgressFn = std::function<void(const Progress&)>;

struct Evaluation {
  std::unique_ptr<Results> results;
  std::vector<Metric> metrics;
  std::size_t items = 0;
  std::size_t sequences = 0;
  std::size_t tokens = 0;         ///< real tokens
  std::size_t tokens_padded = 0;  ///< sequences * max_length: what fixed shapes would compute
  std::size_t items_cut = 0;      ///< items that lost tokens
  double model_seconds = 0.0;     ///< inside the model function
  double total_seconds = 0.0;
};

/// Runs `model` on the first `limit` items (all, if 0) and scores them. Tokenizing and
/// Results::finish() run on two threads while the model runs. The task and the tokenizer must live
/// as long as the results. The scores do not depend on how batches are formed, if a row's output
/// does not. Where Task::group_size() is set, only the results grow with the number of items.
/// Exceptions of the model pass through. Throws Error if no item has a sequence to run, or if the
/// model's output has another size than the task's head, or is not finite.
Evaluation evaluate(const Task& task, const text::Tokenizer& tokenizer,
                    const EvaluateOptions& options, const text::RunBatchFn& model,
                    const ProgressFn& progress = {}, std::size_t limit = 0);

}  // namespace bertcl::tasks
