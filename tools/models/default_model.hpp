// SPDX-License-Identifier: Apache-2.0
// The location of the bundled model.
#pragma once
#include <filesystem>

namespace bertcl::tools {

/// The file that the environment variable BERTCL_MODEL names as PATH or NAME=PATH; else
/// models/minilm-l6-squad/model.onnx in or above the current folder or that of the program, or in
/// share/bertcl beside the program's. Throws Error with what to do if there is none.
std::filesystem::path find_default_model();

}  // namespace bertcl::tools
