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
    const std::string whole = named;
    fs::file_status status = fs::status(whole, failure);
    if (fs::exists(status)) return whole;
    if (const auto equals = whole.find('='); equals != std::string::npos) {
      const std::string file = whole.substr(equals + 1);
      if (equals == 0 || file.empty())
        fail("BERTCL_MODEL is '{}', expected a path or NAME=PATH", whole);
      status = fs::status(file, failure);
      if (fs::exists(status)) return file;
      if (status.type() == fs::file_type::not_found)
        fail("BERTCL_MODEL is '{}': neither it nor {} exists", whole, file);
    }
    if (status.type() == fs::file_type::not_found)
      fail("BERTCL_MODEL names {}, which does not exist", whole);
    fail("BERTCL_MODEL names {}: {}", whole, failure.message());
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
