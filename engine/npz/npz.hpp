// SPDX-License-Identifier: Apache-2.0
// Named tensors in NumPy's .npz files: a zip of one .npy file for each name.
#pragma once
#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include "ir/tensor.hpp"

namespace bertcl::npz {

using Arrays = std::map<std::string, ir::Tensor, std::less<>>;

/// Reads what numpy.savez or numpy.savez_compressed wrote. Throws Error that names the file, and
/// the array where one is damaged or of an unknown element type. `wanted` is called with every name
/// before any array is read, and says which are; what it throws is thrown.
Arrays load(const std::filesystem::path& path,
            const std::function<bool(const std::string&)>& wanted = {});

/// Writes an uncompressed .npz under a temporary name and renames it. Equal arrays give equal
/// bytes. Throws Error that names the file.
void save(const std::filesystem::path& path, const Arrays& arrays);

}  // namespace bertcl::npz
