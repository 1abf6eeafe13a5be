// SPDX-License-Identifier: Apache-2.0
// Which output of a model is that of a task, and the batches that suit it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ir/port.hpp"
#include "tasks/task.hpp"
#include "text/batch.hpp"

namespace bertcl::tasks {

/// The float output of the shape that the head asks for; of several the one that is called
/// "logits". Throws Error with all outputs and their shapes if there is none.
std::string find_output(const std::vector<ir::Port>& outputs, const Head& head);

/// The one of find_output(), or for spans squad::find_logits().
std::vector<std::string> find_outputs(const std::vector<ir::Port>& outputs, const Head& head);

/// Names of the tasks that models of such outputs are for, by their shapes and names; questions are
/// none of them. `vocabulary`: rows of the model's table of words.
std::vector<std::string> fitting_tasks(const std::vector<ir::Port>& outputs,
                                       std::int64_t vocabulary);

/// Bounds of a batch that suit the head: outputs of a masked language model are large.
text::BatchOptions usual_batches(const Head& head);

}  // namespace bertcl::tasks
