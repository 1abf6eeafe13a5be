// SPDX-License-Identifier: Apache-2.0
// The model's file in a folder as Hugging Face's exporters write it.
#include "onnx/model_path.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <system_error>
#include <vector>

#include "bertcl/error.hpp"

namespace bertcl::onnx_io {

namespace fs = std::filesystem;

fs::path find_model(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return path;
  for (const char* name : {"model.onnx", "onnx/model.onnx"})
    if (fs::exists(path / name, ignored)) return path / name;
  std::vector<std::string> others;
  for (const fs::path& folder : {path, path / "onnx"})
    for (fs::directory_iterator entry(folder, ignored), end; entry != end; entry.increment(ignored))
      if (entry->path().extension() == ".onnx") others.push_back(entry->path().string());
  if (others.size() == 1) return others.front();
  std::ranges::sort(others);
  const std::string names =
      others.empty() ? "; export the model to ONNX"
                     : fmt::format("; name one of its files: {}", fmt::join(others, ", "));
  throw Error(path.string() + ": the folder has neither model.onnx nor onnx/model.onnx" + names,
              ErrorCode::io);
}

}  // namespace bertcl::onnx_io
