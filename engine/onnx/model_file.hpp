// SPDX-License-Identifier: Apache-2.0
// An ONNX file as its protobuf message, for tools that edit a model rather than compile it.
#pragma once
#include <filesystem>
#include <memory>

namespace onnx {
class ModelProto;
}

namespace bertcl::onnx_io {

/// A whole model in memory, external data included. Its message is declared in "onnx/proto.hpp".
class ModelFile {
 public:
  /// Throws bertcl::Error naming the file if it is missing, no ONNX file or larger than the 2 GiB
  /// that protobuf can hold.
  static ModelFile load(const std::filesystem::path& path);
  explicit ModelFile(std::unique_ptr<onnx::ModelProto> proto);
  ~ModelFile();
  ModelFile(ModelFile&&) noexcept;
  ModelFile& operator=(ModelFile&&) noexcept;

  onnx::ModelProto& proto() { return *proto_; }
  const onnx::ModelProto& proto() const { return *proto_; }

  /// Writes under a temporary name and renames it, so nothing half written is left behind. Equal
  /// models give equal bytes. Throws bertcl::Error naming the file.
  void save(const std::filesystem::path& path) const;

 private:
  std::unique_ptr<onnx::ModelProto> proto_;
};

}  // namespace bertcl::onnx_io
