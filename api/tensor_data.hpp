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

inline ir::DType internal(ElementType type) { return static_cast<ir::DType>(type); }
inline ElementType external(ir::DType type) { return static_cast<ElementType>(type); }
Tensor external(ir::Tensor tensor);
Tensors external(runtime::Tensors tensors);
runtime::Tensors internal(const Tensors& tensors);

}  // namespace bertcl
