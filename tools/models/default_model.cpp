// SPDX-License-Identifier: Apache-2.0
// The location of the bundled model.
#include "tools/models/default_model.hpp"

#include <cstdlib>
#include <system_error>

#include "bertcl/error.hpp"
#include "support/fail.hpp"

namespace bertcl::tools {

namespace fs = std::filesystem;

fs::path find_default_model() {
  std::error_code failure;
  if (const char* named = std::getenv("BERTCL_MODEL"); named && *named) {
    std::string file = named;
    fs::file_status status = fs::status(file, failure);
    if (const auto name = file.find('='); !fs::exists(status) && name != std::string::npos) {
      file.erase(0, name + 1);
      status = fs::status(file, failure);
    }
    if (fs::exists(status)) return file;
    if (status.type() == fs::file_type::not_found)
      fail("BERTCL_MODEL names {}, which does not exist", file);
    fail("BERTCL_MODEL names {}: {}", file, failure.message());
  }
  const fs::path program = fs::read_symlink("/proc/self/exe", failure).parent_path();
  for (const fs::path& start : {program, fs::current_path(failure)}) {
    for (fs::path folder = start; !folder.empty(); folder = folder.parent_path()) {
      for (const char* place : {"models", "share/bertcl/models"}) {
        const fs::path model = folder / place / "minilm-l6-squad" / "model.onnx";
        if (fs::exists(model, failure)) return model;
      }
      if (folder == folder.root_path()) break;
    }
  }
  throw Error(
      "the default model, models/minilm-l6-squad/model.onnx, is not beside the program; name a "
      "model "
      "or set BERTCL_MODEL");
}

}  // namespace bertcl::tools
