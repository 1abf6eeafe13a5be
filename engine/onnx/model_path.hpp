// SPDX-License-Identifier: Apache-2.0
// The model's file in a folder as Hugging Face's exporters write it, and its size.
#pragma once
#include <cstdint>
#include <filesystem>

namespace bertcl::onnx_io {

/// The path itself, unless it is a folder: then model.onnx in it, else onnx/model.onnx. Throws
/// Error that names the folder if it has neither.
std::filesystem::path find_model(const std::filesystem::path& path);

/// Bytes of the file and of external data beside it (MODEL.data, MODEL_data); a file that is absent
/// counts 0.
std::uintmax_t model_bytes(const std::filesystem::path& model);

}  // namespace bertcl::onnx_io
