// SPDX-License-Identifier: Apache-2.0
// The model's file in a folder as Hugging Face's exporters write it.
#include "onnx/model_path.hpp"

#include <system_error>

#include "bertcl/error.hpp"

namespace bertcl::onnx_io {

namespace fs = std::filesystem;

fs::path find_model(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return path;
  for (const char* name : {"model.onnx", "onnx/model.onnx"})
    if (fs::exists(path / name, ignored)) return path / name;
  throw Error(path.string() + ": the folder has neither model.onnx nor onnx/model.onnx",
              ErrorCode::io);
}

}  // namespace bertcl::onnx_io
