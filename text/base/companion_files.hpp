// SPDX-License-Identifier: Apache-2.0
// Where the files lie that belong to a model.
#pragma once
#include <filesystem>

namespace bertcl::text {

/// `name` in the model's folder or, where it is not present (is_present()) and the model is
/// FOLDER/onnx/model.onnx (as on the Hugging Face hub), in FOLDER. The former where it is in
/// neither.
std::filesystem::path companion_file(const std::filesystem::path& model,
                                     const std::filesystem::path& name);

/// True for the path of a folder inside of the model's, as modules.json names them: "1_Pooling".
bool is_inside(const std::filesystem::path& path);

}  // namespace bertcl::text
