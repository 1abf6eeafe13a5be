// SPDX-License-Identifier: Apache-2.0
// Files of one array: .npy, .npz, .safetensors.
#pragma once
#include <string>
#include <string_view>

#include "ir/tensor.hpp"

namespace bertcl::tools {

/// `ending` in lower case, `path` in any.
bool has_ending(std::string_view path, std::string_view ending);

/// Whether it is one, by the ending of its name.
bool is_array_file(const std::string& path);

/// Writes an f32 tensor to a file of is_array_file(), where .npz and .safetensors call it `name`.
/// Throws Error if it cannot be written.
void write_array(const std::string& path, const std::string& name, const ir::Tensor& tensor);

}  // namespace bertcl::tools
