// SPDX-License-Identifier: Apache-2.0
// What a public session holds, for the files that implement it.
#pragma once
#include <filesystem>

#include "api/boundary.hpp"
#include "bertcl/opencl.hpp"
#include "runtime/session.hpp"

namespace bertcl {

struct Session::Impl {
  mutable runtime::Session session;  // its calls may meet
  ModelInfo info;
};

/// The path that a model in memory would have in its folder, to find companion files; empty without
/// a folder.
std::filesystem::path file_in(const ModelBytes& model);

/// `model`: its file, empty if none; companion files name the pad token.
runtime::SessionOptions to_runtime(const SessionOptions& options,
                                   const std::filesystem::path& model);
onnx_io::ModelBytes to_runtime(const ModelBytes& model);

/// Makes sessions of those of the engine, and the other way round.
struct SessionAccess {
  static Session make(runtime::Session session);
  static DeviceRun start(const Session& session, const DeviceSequences& sequences,
                         const DeviceOutputs& outputs, std::span<const cl_event> wait_for);
  /// Empty where the model was loaded from memory.
  static std::filesystem::path file(const Session& session);
  static runtime::Session& of(const Session& session) {
    return held(session.impl_, "session").session;
  }
};

}  // namespace bertcl
