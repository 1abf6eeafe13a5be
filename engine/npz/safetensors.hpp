// SPDX-License-Identifier: Apache-2.0
// Named tensors in files of safetensors: the length of the header (u64), the header in JSON, the
// elements (github.com/huggingface/safetensors).
#pragma once
#include <filesystem>
#include <string>

#include "npz/npz.hpp"

namespace bertcl::npz {

/// Reads all tensors. Throws Error that names the file, and the tensor where one is damaged or of
/// an element type without a DType.
Arrays load_safetensors(const std::filesystem::path& path);

/// The content of a file of these tensors.
std::string format_safetensors(const Arrays& arrays);

}  // namespace bertcl::npz
