// SPDX-License-Identifier: Apache-2.0
// ONNX files to the IR.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/graph.hpp"
#include "ir/limits.hpp"
#include "onnx/mapped_file.hpp"
#include "support/model_in_memory.hpp"

namespace onnx {
class ModelProto;
}

namespace bertcl::onnx_io {

class TensorReader;

struct ReadOptions {
  /// Read a decoder's keys and values of earlier tokens (past_key_values.N.key) as empty constants,
  /// and leave out those that it gives (present.N.key): the graph is the encoder of a whole text.
  bool without_past = true;
  ir::Limits limits = {};
  /// Takes the stamps of the files that weights are views of.
  std::vector<FileStamp>* files = nullptr;
};

/// The content of a model file.
struct ModelFile {
  std::shared_ptr<const void> owner;          // of the bytes that the weights are views of
  ir::Memory memory = ir::Memory::anonymous;  // where these bytes are
  std::shared_ptr<onnx::ModelProto> model;
  /// Taken out of the message: one for each initializer, empty where it has no raw_data.
  std::vector<std::optional<std::span<const std::byte>>> weights;
  std::optional<FileStamp> stamp;  // none of a model in memory
};
/// Throws as read_model() does if it is not a model.
ModelFile open_model(const std::filesystem::path& path);

/// Reads an ONNX model (opset 7 to the newest, default domain and com.microsoft) into the IR: one
/// spelling per operator, every result typed, weights as views of the mapped file where their
/// alignment allows. Names of values are those of the file. Throws bertcl::Error that names file,
/// node and operator, and what is supported, for everything that cannot be read or is beyond the
/// limits.
ir::Graph read_model(const std::filesystem::path& path, const ReadOptions& options = {});

/// The content of an ONNX file. `owner` keeps the bytes as long as weights are views of them.
struct ModelBytes {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
  std::filesystem::path folder;  // of external data; empty: such data are an error
};
/// The same for them; messages call the model `kModelInMemory`.
ir::Graph read_model(const ModelBytes& model, const ReadOptions& options = {});

/// The values of initializer i of a message.
using InitializerReader = std::function<ir::Tensor(int i)>;

/// The same from a message in memory. `path` is for errors, and its folder for external data, which
/// `tensors` reads.
ir::Graph import_model(const onnx::ModelProto& model, const std::filesystem::path& path,
                       TensorReader& tensors, const InitializerReader& initializer,
                       const ReadOptions& options = {});

/// metadata_props of a model. Throws as read_model() does.
std::map<std::string, std::string> read_metadata(const std::filesystem::path& path);

/// The files beside a model that hold its weights, whether they are there or not; none of a missing
/// file. Throws as read_model() does if `path` is not a model.
std::vector<std::filesystem::path> external_files(const std::filesystem::path& path);
/// The same of a model that was read from `path`.
std::vector<std::filesystem::path> external_files(const onnx::ModelProto& model,
                                                  const std::filesystem::path& path);

/// Size in bytes of a model file and its external data; a missing file counts 0. Throws as
/// read_model() does if `path` is not a model.
std::uintmax_t model_bytes(const std::filesystem::path& path);
/// The same where its external_files() are known.
std::uintmax_t model_bytes(const std::filesystem::path& path,
                           const std::vector<std::filesystem::path>& weight_files);

/// "Add", "com.microsoft::BiasGelu", ...: what read_model knows, sorted.
std::vector<std::string> supported_operators();

}  // namespace bertcl::onnx_io
