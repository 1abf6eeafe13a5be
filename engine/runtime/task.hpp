// SPDX-License-Identifier: Apache-2.0
// What a model is for.
#pragma once
#include "plan/plan.hpp"

namespace bertcl::runtime {

enum class Task {
  unknown,
  question_answering,
  text_classification,
  token_classification,
  fill_mask,
  feature_extraction
};

/// The task by the names and shapes of the outputs, as the exporters of Hugging Face and NVIDIA
/// choose them.
Task task_of(const plan::Plan& plan);

}  // namespace bertcl::runtime
