// SPDX-License-Identifier: Apache-2.0
// Options of the commands that run a model, and the session made from them.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bertcl/error.hpp"
#include "ir/dtype.hpp"
#include "opencl/context_future.hpp"
#include "runtime/session.hpp"
#include "tools/options/command.hpp"

namespace bertcl::tools {

struct ModelOptions : CommonOptions {
  ir::DType precision = ir::DType::f32;  ///< of float GEMMs: f32, f16 or bf16
  std::string gemm = "auto";             ///< float GEMMs: "auto", "own" or "clblast"
  std::string require;                   ///< "int8": as meets_requirement() says
  std::string disabled_kernels;          ///< comma-separated variants
  std::vector<std::string> disabled_passes;
  int requests = 0;  ///< most runs in flight; 0 is the usual number
  bool keep_padding = false;
  bool command_buffer = false;
  bool allow_nonfinite = false;             ///< weights and outputs may hold NaN and infinity
  std::optional<runtime::Pooling> pooling;  ///< no option of every command: of those for vectors
};

/// add_command() with the options of ModelOptions.
CLI::App* add_model_command(CLI::App& program, const std::string& name,
                            const std::string& description, const std::string& example,
                            ModelOptions& options);

/// Adds --precision alone, for programs without the other options.
void add_precision_option(CLI::App& command, ir::DType& precision, const std::string& help);

/// To be called for a command that takes outputs as they are: its --allow-nonfinite is about
/// weights alone.
void take_any_outputs(CLI::App& command);

runtime::SessionOptions to_session_options(const ModelOptions& options);

/// What `work` returns. The message of its Error begins with the model's file if it does not name
/// it, and does not begin with that of the data.
template <class Work>
auto naming_model(const std::filesystem::path& model, const Work& work,
                  const std::string& data = {}) {
  try {
    return work();
  } catch (const Error& error) {
    const std::string message = error.what();
    if (message.find(model.string()) != std::string::npos) throw;
    if (!data.empty() && message.starts_with(data + ": ")) throw;
    throw Error(model.string() + ": " + message);
  }
}

/// Loads and compiles a model. Throws Error that names the file, or that of the device, which comes
/// first. `context` is shared with other sessions, where set; else the device is opened while the
/// file is read. Where the device does not have the precision that the options ask for, a line on
/// standard error says so.
runtime::Session load_model(const std::filesystem::path& path, const ModelOptions& options,
                            const opencl::ContextFuture& context = {});
runtime::Session load_model(const std::filesystem::path& path,
                            const runtime::SessionOptions& options);
/// The same for a session that `make` creates from these options; messages call the model `path`.
runtime::Session make_session(
    const std::filesystem::path& path, const runtime::SessionOptions& options,
    const std::function<runtime::Session(const runtime::SessionOptions&)>& make);

/// With --require int8: false if the model is float, or quantized MatMuls of it run in float; the
/// reasons are on standard error then.
bool meets_requirement(const runtime::Session& session, const ModelOptions& options);

/// Batch and sequence size, for commands with synthetic inputs.
struct BatchSize {
  std::int64_t batch = 0, seq = 0;
};

/// The requested size; else the file's fixed size, or 1 and 128. Throws Error if the file fixes
/// another size than requested.
BatchSize batch_size(const runtime::Session& session, std::optional<int> batch,
                     std::optional<int> seq);

/// Extents of all inputs for a batch of full sequences. Those named `seq` (or by any other name
/// that is not the first axis) are its tokens.
std::map<std::string, ir::Sizes, std::less<>> input_sizes(const runtime::Session& session,
                                                          BatchSize size);

/// Inputs for a forward pass over full sequences: random ids below `ids`, masks of ones, token
/// types 0, random floats.
runtime::Tensors random_inputs(const runtime::Session& session, BatchSize size, std::int64_t ids);

}  // namespace bertcl::tools
