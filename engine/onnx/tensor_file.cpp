// SPDX-License-Identifier: Apache-2.0
// A file that holds one TensorProto, as the test data sets of ONNX do.
#include "onnx/tensor_file.hpp"

#include <limits>

#include "bertcl/error.hpp"
#include "onnx/mapped_file.hpp"
#include "onnx/proto.hpp"
#include "onnx/tensors.hpp"

namespace bertcl::onnx_io {

std::pair<std::string, ir::Tensor> read_tensor_file(const std::filesystem::path& path) {
  const auto file = MappedFile::open(path);
  const auto bytes = file->bytes();
  onnx::TensorProto proto;
  if (bytes.size() > std::numeric_limits<int>::max() ||
      !proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) ||
      proto.data_type() == onnx::TensorProto::UNDEFINED) {
    throw Error(path.string() + ": not an ONNX tensor (TensorProto)");
  }
  try {
    return {proto.name(), TensorReader(path, file, ir::Memory::mapped_file).read(proto)};
  } catch (const Error& error) {
    throw Error(path.string() + ": " + error.what(), error.code());
  }
}

}  // namespace bertcl::onnx_io
