// SPDX-License-Identifier: Apache-2.0
// What the evaluations of the public interface share.
#pragma once
#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "bertcl/sequences.hpp"
#include "bertcl/session.hpp"
#include "tasks/evaluate.hpp"
#include "text/run_rows.hpp"

namespace bertcl {

/// Runs batches for runtime::row_values(). Refers to the session.
text::RunBatchFn model_of(const Session& session, std::vector<std::string> outputs, bool by_token);

/// Evaluates the session on a task. `progress` is told what is done, of how many; false ends the
/// evaluation. Throws Error if the vocabulary is larger than the model's, if sequences are longer
/// than it takes, or if it has another head.
tasks::Evaluation run_task(const Session& session, const text::Tokenizer& tokenizer,
                           const tasks::Task& task, const tasks::EvaluateOptions& options,
                           const std::function<bool(std::size_t, std::size_t)>& progress,
                           std::size_t limit);

/// What `bertcl eval --json` writes.
std::string report_of(const tasks::Evaluation& evaluation, const Session& session,
                      std::string_view task, const std::filesystem::path& data);

}  // namespace bertcl
