// SPDX-License-Identifier: Apache-2.0
// TensorProto to ir::Tensor.
#pragma once
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/tensor.hpp"
#include "onnx/mapped_file.hpp"

namespace onnx {
class TensorProto;
}

namespace bertcl::onnx_io {

/// The element type of an ONNX data type number; empty if there is none.
std::optional<ir::DType> known_element_type(std::int32_t onnx_type);
/// The same; throws bertcl::Error naming `where` and the type.
ir::DType element_type(std::int32_t onnx_type, const std::string& where);

/// Reads the tensors of one model.
class TensorReader {
 public:
  /// External data is looked for in the folder of `model`, whose bytes `owner` keeps alive in the
  /// given memory; without a folder, as for a model in memory, it is an error.
  TensorReader(std::filesystem::path model, std::shared_ptr<const void> owner, ir::Memory memory,
               bool has_folder = true)
      : model_(std::move(model)),
        owner_(std::move(owner)),
        memory_(memory),
        has_folder_(has_folder) {}

  /// The tensor with its bytes as a view of the mapped file where they are aligned, else one copy.
  /// `raw` replaces raw_data where the caller took it out of the message. Elements of 2 and 4 bits
  /// become i8 or u8.
  ir::Tensor read(const onnx::TensorProto& proto,
                  std::optional<std::span<const std::byte>> raw = std::nullopt);

  /// Appends those of the files with external data that were read.
  void append_stamps(std::vector<FileStamp>& stamps) const {
    for (const auto& [location, file] : external_) stamps.push_back(file->stamp());
  }

 private:
  /// The data, wherever they are, under the given type and extents.
  ir::Tensor read_data(const onnx::TensorProto& proto, ir::DType dtype, ir::Sizes sizes,
                       std::optional<std::span<const std::byte>> raw, const std::string& where);
  ir::Tensor read_external(const onnx::TensorProto& proto, ir::DType dtype, ir::Sizes sizes,
                           const std::string& where);

  std::filesystem::path model_;
  std::shared_ptr<const void> owner_;
  ir::Memory memory_;
  bool has_folder_;
  std::map<std::string, std::shared_ptr<const MappedFile>> external_;
};

}  // namespace bertcl::onnx_io
