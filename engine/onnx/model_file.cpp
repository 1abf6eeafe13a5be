// SPDX-License-Identifier: Apache-2.0
// Loading and saving models as protobuf messages.
#include "onnx/model_file.hpp"

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <unistd.h>

#include <fstream>
#include <limits>

#include "bertcl/error.hpp"
#include "onnx/proto.hpp"
#include "onnx/tensors.hpp"

namespace bertcl::onnx_io {
namespace {

constexpr std::size_t largest_message = std::numeric_limits<std::int32_t>::max();

/// Takes external data into the message, so that the model can be saved anywhere.
void take_in_external_data(onnx::GraphProto& graph, TensorReader& reader, const std::string& name) {
  std::size_t total = 0;
  for (auto& tensor : *graph.mutable_initializer()) {
    if (tensor.data_location() != onnx::TensorProto::EXTERNAL) continue;
    const ir::Tensor data = reader.read(tensor);
    total += data.bytes().size();
    if (total > largest_message)
      throw Error(fmt::format("{}: with its external data the model is larger than 2 GiB", name));
    tensor.set_raw_data(data.bytes().data(), data.bytes().size());
    tensor.clear_external_data();
    tensor.clear_data_location();
  }
}

}  // namespace

ModelFile::ModelFile(std::unique_ptr<onnx::ModelProto> proto) : proto_(std::move(proto)) {}
ModelFile::~ModelFile() = default;
ModelFile::ModelFile(ModelFile&&) noexcept = default;
ModelFile& ModelFile::operator=(ModelFile&&) noexcept = default;

ModelFile ModelFile::load(const std::filesystem::path& path) {
  const std::string name = path.string();
  if (!std::filesystem::exists(path)) throw Error(fmt::format("{}: no such file", name));
  const auto file = MappedFile::open(path);
  const auto bytes = file->bytes();
  if (bytes.size() > largest_message)
    throw Error(fmt::format("{}: larger than 2 GiB; keep the weights in external data", name));
  auto proto = std::make_unique<onnx::ModelProto>();
  if (!proto->ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) || !proto->has_graph())
    throw Error(
        fmt::format("{}: not an ONNX file, or a truncated one ({} bytes)", name, bytes.size()));
  TensorReader reader(path, nullptr);
  take_in_external_data(*proto->mutable_graph(), reader, name);
  return ModelFile(std::move(proto));
}

void ModelFile::save(const std::filesystem::path& path) const {
  const std::string temporary = fmt::format("{}.{}.tmp", path.string(), ::getpid());
  bool written = false;
  {
    std::ofstream out(temporary, std::ios::binary);
    google::protobuf::io::OstreamOutputStream stream(&out);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    written = out.good() && proto_->ByteSizeLong() <= largest_message &&
              proto_->SerializeToCodedStream(&coded);
    coded.Trim();
    out.flush();
    written = written && out.good();
  }
  std::error_code error;
  if (written) std::filesystem::rename(temporary, path, error);
  if (!written || error) {
    std::error_code ignored;
    std::filesystem::remove(temporary, ignored);
    throw Error(fmt::format("{}: the model cannot be written{}{}", path.string(), error ? ": " : "",
                            error ? error.message() : ""));
  }
}

}  // namespace bertcl::onnx_io
