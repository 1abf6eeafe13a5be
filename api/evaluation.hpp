// SPDX-License-Identifier: Apache-2.0
// What the evaluations of the public interface share.
#pragma once
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "bertcl/sequences.hpp"
#include "bertcl/session.hpp"
#include "tasks/report.hpp"
#include "text/run_rows.hpp"

namespace bertcl {

/// Runs batches for runtime::row_values(). Refers to the session.
text::RunBatchFn model_of(const Session& session, std::vector<std::string> outputs, bool by_token);

/// Throws Error if the vocabulary is larger than the model's, or if sequences of `max_length`
/// tokens are longer than it takes.
void check_sizes(const ModelInfo& info, const Tokenizer& tokenizer, int max_length);

/// What `bertcl eval --json` writes. Fills in the path, precision and size of `row`.
std::string report_of(tasks::EvaluationRow row, const Session& session, std::string_view task,
                      const std::filesystem::path& data);

/// In UTF-8; what is none becomes U+FFFD.
std::string dump(const nlohmann::ordered_json& json);

}  // namespace bertcl
