// SPDX-License-Identifier: Apache-2.0
// Wraps a session of a model with a head as the function that squad/ and tasks/ call.
#include "tools/models/task_model.hpp"

#include "squad/logit_outputs.hpp"
#include "tasks/head_output.hpp"
#include "tools/options/model_options.hpp"

namespace bertcl::tools {

TaskModel::TaskModel(runtime::Session& session) : TextModel(session), by_token_(true) {
  outputs_ = naming_model(session.path(), [&] { return squad::find_logits(session.outputs()); });
}

TaskModel::TaskModel(runtime::Session& session, const tasks::Head& head)
    : TextModel(session), by_token_(head.by_token) {
  outputs_ = {
      naming_model(session.path(), [&] { return tasks::find_output(session.outputs(), head); })};
}

}  // namespace bertcl::tools
