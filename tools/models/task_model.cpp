// SPDX-License-Identifier: Apache-2.0
// Wraps a session of a model with a head as the function that tasks/ calls.
#include "tools/models/task_model.hpp"

#include "tasks/head_output.hpp"
#include "tools/options/model_options.hpp"

namespace bertcl::tools {

TaskModel::TaskModel(runtime::Session& session, const tasks::Head& head)
    : TextModel(session), by_token_(head.by_token) {
  outputs_ =
      naming_model(session.path(), [&] { return tasks::find_outputs(session.outputs(), head); });
}

}  // namespace bertcl::tools
