// SPDX-License-Identifier: Apache-2.0
// Tensors of the public interface from and to those of the engine; no bytes are copied.
#pragma once
#include "bertcl/tensor.hpp"
#include "ir/tensor.hpp"
#include "runtime/session.hpp"

namespace bertcl {

struct Tensor::Data {
  ir::Tensor tensor;
};

/// Throws Error for a number that is none of them.
ir::DType to_runtime(ElementType type);
inline ElementType to_public(ir::DType type) { return static_cast<ElementType>(type); }
Tensor to_public(ir::Tensor tensor);
Tensors to_public(runtime::Tensors tensors);
runtime::Tensors to_runtime(const Tensors& tensors);

}  // namespace bertcl
