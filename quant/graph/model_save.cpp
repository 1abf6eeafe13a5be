// SPDX-License-Identifier: Apache-2.0
// Writing of models: inline, or with external data beyond protobuf's limit.
#include <cstdint>
#include <filesystem>
#include <string>

#include "quant/graph/model.hpp"
#include "support/pending_file.hpp"
#include "support/written_files.hpp"

namespace bertcl::quant {
namespace {

constexpr std::int64_t kExternalAlign = 4096;  // so that readers can map each tensor
constexpr std::size_t kExternalLeast = 1024;

void set_entry(onnx::TensorProto& tensor, const std::string& key, const std::string& value) {
  auto* entry = tensor.add_external_data();
  entry->set_key(key);
  entry->set_value(value);
}

}  // namespace

void Model::take_in(onnx::TensorProto& tensor) const {
  if (tensor.data_location() != onnx::TensorProto::EXTERNAL) return;
  const ir::Tensor values = read(tensor);
  tensor.clear_external_data();
  tensor.clear_data_location();
  tensor.set_raw_data(values.bytes().data(), values.bytes().size());
}

void Model::take_in(google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes) const {
  for (auto& node : nodes) {
    for (auto& attribute : *node.mutable_attribute()) {
      if (attribute.has_t()) take_in(*attribute.mutable_t());
      for (auto& t : *attribute.mutable_tensors()) take_in(t);
    }
    for_each_branch(node, [&](onnx::GraphProto& branch) { take_in(branch); });
  }
}

void Model::take_in(onnx::GraphProto& branch) const {
  for (auto& t : *branch.mutable_initializer()) take_in(t);
  take_in(*branch.mutable_node());
}

std::int64_t Model::save(const std::filesystem::path& path, std::int64_t inline_limit) {
  WrittenFiles files;
  const std::int64_t bytes = add_to(files, path, inline_limit);
  files.commit();
  files.keep();
  return bytes;
}

std::int64_t Model::add_to(WrittenFiles& files, const std::filesystem::path& path,
                           std::int64_t inline_limit) {
  // External data of the source becomes a view of its mapped file.
  for (const auto& t : graph().initializer())
    if (t.data_location() == onnx::TensorProto::EXTERNAL && !added_.contains(t.name()))
      added_[t.name()] = read(t.name());

  take_in(*proto_.mutable_graph()->mutable_node());
  for (auto& function : *proto_.mutable_functions()) take_in(*function.mutable_node());

  const std::filesystem::path data_path = written_file(path).string() + ".data";
  PendingFile* const data = weight_bytes() > inline_limit ? &files.add(data_path) : nullptr;
  PendingFile& model = files.add(path);  // is renamed when its data is there

  for (auto& t : *proto_.mutable_graph()->mutable_initializer()) {
    const bool apart = added_.contains(t.name()) || raw_.contains(t.name());
    if (!apart && !t.has_raw_data()) continue;  // float_data and its like stay as they are
    const auto bytes = bytes_of(t);
    t.clear_external_data();
    t.clear_data_location();
    if (data && bytes.size() >= kExternalLeast) {
      while (data->written() % kExternalAlign != 0) data->stream().put('\0');
      set_entry(t, "location", data_path.filename().string());
      set_entry(t, "offset", std::to_string(data->written()));
      set_entry(t, "length", std::to_string(bytes.size()));
      t.set_data_location(onnx::TensorProto::EXTERNAL);
      data->stream().write(reinterpret_cast<const char*>(bytes.data()),
                           static_cast<std::streamsize>(bytes.size()));
      if (!data->stream()) data->fail();
      t.clear_raw_data();
    } else if (apart) {
      t.set_raw_data(bytes.data(), bytes.size());
    }
  }
  if (!proto_.SerializeToOstream(&model.stream())) model.fail();
  std::int64_t total = model.written();
  model.close();
  if (data) {
    total += data->written();
    data->close();
  }
  return total;
}

}  // namespace bertcl::quant
