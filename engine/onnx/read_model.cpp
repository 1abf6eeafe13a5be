// SPDX-License-Identifier: Apache-2.0
// Reading a model file: mapping, parsing, import.
#include "onnx/read_model.hpp"

#include <fmt/format.h>

#include <limits>
#include <new>

#include "bertcl/error.hpp"
#include "onnx/importer.hpp"
#include "onnx/mapped_file.hpp"
#include "onnx/wire.hpp"

namespace bertcl::onnx_io {

ir::Graph read_model(const std::filesystem::path& path, const ReadOptions& options) {
  const std::string name = path.string();
  if (!std::filesystem::exists(path)) throw Error(fmt::format("{}: no such file", name));
  const auto file = MappedFile::open(path);
  if (file->bytes().empty()) throw Error(fmt::format("{}: the file is empty", name));
  auto skeleton = take_weights_out(file->bytes());
  onnx::ModelProto model;
  if (!skeleton || skeleton->model.size() > std::numeric_limits<int>::max() ||
      !model.ParseFromString(skeleton->model))
    throw Error(fmt::format("{}: not an ONNX file, or a truncated one ({} bytes)", name,
                            file->bytes().size()));
  if (!model.has_graph()) throw Error(fmt::format("{}: not an ONNX model: no graph in it", name));
  skeleton->model.clear();
  try {
    TensorReader tensors(path, file);
    return Importer(model, name, tensors, options).run(skeleton->weights);
  } catch (const Error& e) {
    if (std::string_view(e.what()).starts_with(name)) throw;
    throw Error(fmt::format("{}: {}", name, e.what()));
  } catch (const std::exception& e) {  // out of memory and the like
    throw Error(fmt::format("{}: cannot be read: {}", name, e.what()));
  }
}

}  // namespace bertcl::onnx_io
