// SPDX-License-Identifier: Apache-2.0
// Reading a model file: mapping, parsing, import.
#include "onnx/read_model.hpp"

#include <fmt/format.h>

#include <limits>
#include <new>
#include <set>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "bertcl/error.hpp"
#include "onnx/importer.hpp"
#include "onnx/mapped_file.hpp"
#include "onnx/wire.hpp"
#include "support/check_path.hpp"

namespace bertcl::onnx_io {

namespace {

ModelFile parse_model(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                      ir::Memory memory, const std::string& name) {
  ModelFile opened{std::move(owner), memory, std::make_shared<onnx::ModelProto>(), {}, {}};
  if (bytes.empty()) throw Error(fmt::format("{}: the file is empty", name));
  auto skeleton = strip_weights(bytes);
  if (!skeleton || skeleton->model.size() > std::numeric_limits<int>::max() ||
      !opened.model->ParseFromString(skeleton->model))
    throw Error(
        fmt::format("{}: not an ONNX file, or a truncated one ({} bytes)", name, bytes.size()));
  if (!opened.model->has_graph())
    throw Error(fmt::format("{}: not an ONNX model: it has no graph", name));
  opened.weights = std::move(skeleton->weights);
  opened.weights.resize(static_cast<std::size_t>(opened.model->graph().initializer_size()));
  return opened;
}

ir::Graph import_file(const ModelFile& opened, const std::filesystem::path& path, bool has_folder,
                      const ReadOptions& options) {
  TensorReader tensors(path, opened.owner, opened.memory, has_folder);
  ir::Graph graph = import_model(
      *opened.model, path, tensors,
      [&](int i) {
        return tensors.read(opened.model->graph().initializer(i),
                            opened.weights[static_cast<std::size_t>(i)]);
      },
      options);
  if (options.files && opened.stamp) options.files->push_back(*opened.stamp);
  if (options.files) tensors.append_stamps(*options.files);
  return graph;
}

}  // namespace

ModelFile open_model(const std::filesystem::path& path) {
  const std::string name = path.string();
  check_path(path, "model");
  std::error_code failure;
  if (!std::filesystem::exists(path, failure) && !failure)
    throw Error(fmt::format("{}: no such file", name), ErrorCode::io);
  const auto file = MappedFile::open(path);
  ModelFile opened = parse_model(file->bytes(), file, ir::Memory::mapped_file, name);
  opened.stamp = file->stamp();
  return opened;
}

ir::Graph read_model(const std::filesystem::path& path, const ReadOptions& options) {
  return import_file(open_model(path), path, true, options);
}

ir::Graph read_model(const ModelBytes& model, const ReadOptions& options) {
  return import_file(parse_model(model.bytes, model.owner, ir::Memory::anonymous, kModelInMemory),
                     model.folder / kModelInMemory, !model.folder.empty(), options);
}

ir::Graph import_model(const onnx::ModelProto& model, const std::filesystem::path& path,
                       TensorReader& tensors, const InitializerReader& initializer,
                       const ReadOptions& options) {
  const std::string name = path.string();
  const auto no_memory = [&] {
    return Error(fmt::format("{}: out of memory while reading it", name), ErrorCode::out_of_memory);
  };
  try {
    return Importer(model, name, tensors, options).run(initializer);
  } catch (const Error& e) {
    if (std::string_view(e.what()).starts_with(name)) throw;
    throw Error(fmt::format("{}: {}", name, e.what()), e.code());
  } catch (const std::bad_alloc&) {
    throw no_memory();
  } catch (const std::length_error&) {  // a size beyond any memory
    throw no_memory();
  } catch (const std::exception& e) {
    throw Error(fmt::format("{}: cannot be read: {}", name, e.what()));
  }
}

std::map<std::string, std::string> read_metadata(const std::filesystem::path& path) {
  std::map<std::string, std::string> metadata;
  const ModelFile opened = open_model(path);
  for (const auto& entry : opened.model->metadata_props()) metadata[entry.key()] = entry.value();
  return metadata;
}

std::vector<std::filesystem::path> external_files(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return {};
  return external_files(*open_model(path).model, path);
}

std::vector<std::filesystem::path> external_files(const onnx::ModelProto& model,
                                                  const std::filesystem::path& path) {
  std::set<std::string> locations;
  for (const onnx::TensorProto& tensor : model.graph().initializer())
    if (tensor.data_location() == onnx::TensorProto::EXTERNAL)
      for (const auto& entry : tensor.external_data())
        if (entry.key() == "location") locations.insert(entry.value());
  std::vector<std::filesystem::path> files;
  for (const std::string& location : locations) files.push_back(path.parent_path() / location);
  return files;
}

std::uintmax_t model_bytes(const std::filesystem::path& path) {
  return model_bytes(path, external_files(path));
}

std::uintmax_t model_bytes(const std::filesystem::path& path,
                           const std::vector<std::filesystem::path>& weight_files) {
  std::error_code absent;
  std::uintmax_t bytes = std::filesystem::file_size(path, absent);
  if (absent) return 0;
  for (const std::filesystem::path& file : weight_files)
    if (const auto size = std::filesystem::file_size(file, absent); !absent) bytes += size;
  return bytes;
}

}  // namespace bertcl::onnx_io
