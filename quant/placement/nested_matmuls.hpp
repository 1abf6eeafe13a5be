// SPDX-License-Identifier: Apache-2.0
// MatMuls that the main graph does not show.
#pragma once
#include <vector>

#include "quant/graph/model.hpp"
#include "quant/placement/placement.hpp"

namespace bertcl::quant {

/// The MatMuls inside functions that the model calls and graphs inside nodes (branches of
/// If, bodies of loops), each once, and why they stay in float.
std::vector<SkippedNode> nested_matmuls(const onnx::ModelProto& model);

}  // namespace bertcl::quant
