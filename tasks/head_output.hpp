// SPDX-License-Identifier: Apache-2.0
// Which output of a model is that of a task, and the batches that suit it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tasks/task.hpp"
#include "text/batch.hpp"

namespace bertcl::tasks {

struct ModelOutput {
  std::string name;
  std::vector<std::int64_t> shape;  ///< 0 where an extent is free
  bool is_float = true;
  std::string description;  ///< "logits f32[batch, 2]", for messages
};

/// The float output of the shape that the head asks for; of several the one that is called
/// "logits". Throws Error with all outputs and their shapes if there is none.
std::string find_output(const std::vector<ModelOutput>& outputs, const Head& head);

/// Bounds of a batch that suit the head: outputs of a masked language model are large.
text::BatchOptions usual_batches(const Head& head);

}  // namespace bertcl::tasks
