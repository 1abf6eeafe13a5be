// SPDX-License-Identifier: Apache-2.0
// Wraps a session of a model with a task head as the function that tasks/ calls.
#include "tools/models/task_model.hpp"

#include "bertcl/error.hpp"
#include "tasks/head_output.hpp"

namespace bertcl::tools {

TaskModel::TaskModel(runtime::Session& session, const tasks::Head& head)
    : model_(session), by_token_(head.by_token) {
  try {
    output_ = tasks::find_output(session.outputs(), head);
  } catch (const Error& error) {
    throw Error(session.path().string() + ": " + error.what());
  }
}

std::vector<float> TaskModel::operator()(const text::Batch& batch) {
  const runtime::Tensors outputs = model_.run(batch);
  const ir::Tensor tensor = outputs.find(output_)->second.converted(ir::DType::f32);
  const auto values = tensor.as<float>();
  const std::int64_t all_rows = model_.rows(batch), all_columns = model_.columns(batch);
  const std::int64_t positions = by_token_ ? all_columns : 1, used = by_token_ ? batch.seq : 1;
  const auto classes = std::ssize(values) / (all_rows * positions);
  std::vector<float> result;
  result.reserve(batch.batch * used * classes);
  for (std::int64_t row = 0; row < batch.batch; ++row) {
    const auto own =
        values.subspan(row * positions * classes, static_cast<std::size_t>(used * classes));
    result.insert(result.end(), own.begin(), own.end());
  }
  return result;
}

}  // namespace bertcl::tools
