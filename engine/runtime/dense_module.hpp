// SPDX-License-Identifier: Apache-2.0
// The module Dense of sentence-transformers: a linear layer on the vector of a sequence
// (sentence_transformers/models/Dense.py).
#pragma once
#include <filesystem>

#include "ir/graph.hpp"

namespace bertcl::runtime {

/// Adds activation(x * weight^T + bias) for x f32 [batch, in]; the result is [batch, out].
/// `folder` holds config.json (activation_function) and model.safetensors (linear.weight [out, in],
/// linear.bias [out] or none). Throws Error that names the file where it is damaged, where the
/// activation is another than Identity, Tanh, ReLU, GELU and Sigmoid, or where the widths differ.
ir::Value* add_dense_module(ir::Graph& graph, ir::Value* x, const std::filesystem::path& folder);

}  // namespace bertcl::runtime
