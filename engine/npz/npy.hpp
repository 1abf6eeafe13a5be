// SPDX-License-Identifier: Apache-2.0
// One tensor in the bytes of a .npy file (NEP 1, format 1.0 to 3.0).
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "ir/tensor.hpp"

namespace bertcl::npz {

/// Reads the bytes of a .npy file: numbers and bool of either byte order, C or Fortran order.
/// Throws Error that begins with `origin` on damage and on element types without a DType.
ir::Tensor parse_npy(std::vector<std::byte> bytes, const std::string& origin);

/// The bytes of a .npy file, format 1.0, little-endian, C order. Throws Error for bf16, which
/// NumPy does not have.
std::vector<std::byte> format_npy(const ir::Tensor& tensor);

}  // namespace bertcl::npz
