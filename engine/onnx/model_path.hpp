// SPDX-License-Identifier: Apache-2.0
// The model's file in a folder as Hugging Face's exporters write it.
#pragma once
#include <filesystem>

namespace bertcl::onnx_io {

/// The path itself, unless it is a folder: then model.onnx in it, else onnx/model.onnx, else the
/// one .onnx file of both folders. Throws Error that names the folder, and its files if there are
/// several.
std::filesystem::path find_model(const std::filesystem::path& path);

}  // namespace bertcl::onnx_io
