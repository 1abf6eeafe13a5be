// SPDX-License-Identifier: Apache-2.0
// Codes that kernels take for element types and functions.
#pragma once
#include <string>

#include "ir/tensor.hpp"

namespace bertcl::kernels {

/// Code of an element type (types.clh). Throws bertcl::Error for one that no kernel takes.
std::int32_t type_code(ir::DType type);

/// Codes of elementwise_unary.cl for the functions that linear has as activations too.
namespace unary {
enum : std::int32_t { tanh = 6, relu = 8, gelu = 9, gelu_tanh = 10 };
}

/// The code of an activation among those of elementwise_unary.cl.
std::int32_t unary_code(const std::string& activation);

/// Code of activation.clh for x / (1 + exp(-x)), which gated.cl alone takes.
inline constexpr std::int32_t kSiluCode = 5;

/// Code of an activation for the epilogue of GEMMs (activation.clh); "" is none.
std::int32_t activation_code(const std::string& name);

}  // namespace bertcl::kernels
