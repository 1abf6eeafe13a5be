// SPDX-License-Identifier: Apache-2.0
// A layer that a model file does not hold: sentence-transformers stores it beside the model.
#pragma once
#include <optional>
#include <string>

#include "ir/tensor.hpp"

namespace bertcl::ir {

/// activation(x * weight + bias) of vectors x.
struct DenseLayer {
  std::string name;                     ///< for messages
  ir::Tensor weight;                    ///< f32 [in, out]
  std::optional<ir::Tensor> bias = {};  ///< f32 [out]
  std::string activation = {};          ///< an operator: "Tanh", "Relu", ..; "": none
};

}  // namespace bertcl::ir
