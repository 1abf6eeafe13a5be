// SPDX-License-Identifier: Apache-2.0
// Where the files lie that belong to a model.
#include "text/base/companion_files.hpp"

#include "text/base/file.hpp"

namespace bertcl::text {

std::filesystem::path companion_file(const std::filesystem::path& model,
                                     const std::filesystem::path& name) {
  namespace fs = std::filesystem;
  const fs::path folder = model.has_parent_path() ? model.parent_path() : fs::path(".");
  fs::path beside = folder / name;
  if (is_present(beside)) return beside;
  const fs::path whole = fs::absolute(folder / "model").lexically_normal().parent_path();
  if (whole.filename() != "onnx") return beside;
  fs::path above = whole.parent_path() / name;
  return is_present(above) ? above : beside;
}

bool is_inside(const std::filesystem::path& path) {
  const std::filesystem::path plain = path.lexically_normal();
  return !plain.empty() && plain != "." && plain.is_relative() && *plain.begin() != "..";
}

}  // namespace bertcl::text
