// SPDX-License-Identifier: Apache-2.0
// The module Dense of sentence-transformers: a linear layer on the vector of a sequence
// (sentence_transformers/models/Dense.py).
#pragma once
#include <filesystem>
#include <functional>
#include <vector>

#include "ir/dense_layer.hpp"

namespace bertcl::tasks {

/// The layers of such modules, for runtime::Pooling; null where there are none. A folder holds
/// config.json (activation_function, bias, in_features, out_features) and model.safetensors
/// (linear.weight [out, in], linear.bias [out] or none). Throws Error that names the file where it
/// is damaged or contradicts the other, where the activation is another than Identity, Tanh, ReLU,
/// GELU and Sigmoid, and where the module reads or adds anything else.
std::function<std::vector<ir::DenseLayer>()> dense_modules(
    std::vector<std::filesystem::path> folders);

}  // namespace bertcl::tasks
