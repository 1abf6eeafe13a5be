// SPDX-License-Identifier: Apache-2.0
// The module Dense of sentence-transformers: a linear layer on the vector of a sequence
// (sentence_transformers/models/Dense.py).
#pragma once
#include <filesystem>
#include <vector>

#include "runtime/pooling.hpp"

namespace bertcl::tasks {

/// The layers of such modules. A folder holds config.json (activation_function) and
/// model.safetensors (linear.weight [out, in], linear.bias [out] or none). Throws Error that names
/// the file where it is damaged, and where the activation is another than Identity, Tanh, ReLU,
/// GELU and Sigmoid.
std::vector<runtime::DenseLayer> read_dense_modules(
    const std::vector<std::filesystem::path>& folders);

}  // namespace bertcl::tasks
