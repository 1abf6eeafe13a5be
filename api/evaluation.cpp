// SPDX-License-Identifier: Apache-2.0
// What the evaluations of the public interface share.
#include "api/evaluation.hpp"

#include <nlohmann/json.hpp>
#include <utility>

#include "api/boundary.hpp"
#include "api/session_impl.hpp"
#include "bertcl/error.hpp"
#include "onnx/read_model.hpp"
#include "plan/report.hpp"
#include "runtime/report.hpp"
#include "runtime/row_values.hpp"
#include "support/json_text.hpp"
#include "support/with_code.hpp"
#include "tasks/head_output.hpp"
#include "tasks/model_files/model_config.hpp"
#include "tasks/report.hpp"

namespace bertcl {
namespace {

void check_sizes(const ModelInfo& info, const text::Tokenizer& tokenizer, int max_length) {
  const auto tokens = static_cast<std::int64_t>(tokenizer.model_vocabulary_size());
  if (info.vocab_size > 0 && tokens > info.vocab_size)
    throw Error("the tokenizer has " + std::to_string(tokens) +
                " tokens, the model's embedding table " + std::to_string(info.vocab_size) +
                " rows; use the tokenizer that belongs to this model");
  tasks::check_length(max_length, info.max_length);
}

}  // namespace

text::RunBatchFn model_of(const Session& session, std::vector<std::string> outputs, bool by_token) {
  return [&session = SessionAccess::of(session), outputs = std::move(outputs),
          by_token](const text::Batch& batch) {
    return runtime::row_values(session, {batch.ids, batch.token_type_ids, batch.offsets}, outputs,
                               by_token);
  };
}

tasks::Evaluation run_task(const Session& session, const text::Tokenizer& tokenizer,
                           const tasks::Task& task, const tasks::EvaluateOptions& options,
                           const std::function<bool(std::size_t, std::size_t)>& progress,
                           std::size_t limit) {
  check_sizes(session.info(), tokenizer, options.encode.max_length);
  const auto outputs = with_code(ErrorCode::unsupported, [&] {
    return tasks::find_outputs(SessionAccess::of(session).outputs(), task.head());
  });
  const auto tell = [&](const tasks::Progress& now) {
    if (progress && !call_user_callback([&] { return progress(now.done, now.total); }))
      throw Error("the evaluation was cancelled", ErrorCode::cancelled);
  };
  return tasks::evaluate(task, tokenizer, options, model_of(session, outputs, task.head().by_token),
                         tell, limit);
}

std::string report_of(const tasks::Evaluation& evaluation, const Session& session,
                      std::string_view task, const std::filesystem::path& data) {
  tasks::EvaluationRow row;
  row.set_results(evaluation);
  row.path = SessionAccess::of(session).path();
  row.precision = plan::precision_of(SessionAccess::of(session).plan()).str();
  row.bytes = onnx_io::model_bytes(row.path);
  return json_text(runtime::report_of("eval", SessionAccess::of(session).plan().context->info(),
                                      {{"data", data.string()},
                                       {"task", task},
                                       {"models", nlohmann::ordered_json::array({to_json(row)})}}));
}

}  // namespace bertcl
