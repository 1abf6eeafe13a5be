// SPDX-License-Identifier: Apache-2.0
// The module Dense of sentence-transformers.
#include "tasks/model_files/dense_module.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "bertcl/error.hpp"
#include "npz/safetensors.hpp"
#include "text/base/file.hpp"
#include "text/base/json_file.hpp"
#include "text/base/json_node.hpp"

namespace bertcl::tasks {
namespace {

namespace fs = std::filesystem;

/// Activations by their names in torch.nn, and the operator of each; Identity has none.
constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kDenseActivations = {
    {{"modules.linear.Identity", ""},
     {"modules.activation.Tanh", "Tanh"},
     {"modules.activation.ReLU", "Relu"},
     {"modules.activation.GELU", "Gelu"},
     {"modules.activation.Sigmoid", "Sigmoid"}}};

[[noreturn]] void fail_in(const fs::path& file, const std::string& what) {
  throw Error(file.string() + ": " + what, ErrorCode::invalid_file);
}

/// The operator; Tanh is the default of the module.
std::string_view activation_of(const text::JsonNode& config) {
  const auto given = config.find("activation_function");
  if (!given) return "Tanh";
  for (const auto& [name, op] : kDenseActivations)
    if (given->string() == fmt::format("torch.nn.{}", name)) return op;
  given->fail(
      fmt::format("is '{}', which is not supported (supported: Identity, Tanh, ReLU, GELU, Sigmoid "
                  "of torch.nn)",
                  given->string()));
}

ir::Tensor transposed(const ir::Tensor& weight) {
  const auto rows = static_cast<std::size_t>(weight.shape()[0]);
  const auto columns = static_cast<std::size_t>(weight.shape()[1]);
  const auto from = weight.as<float>();
  std::vector<float> to(rows * columns);
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < columns; ++c) to[c * rows + r] = from[r * columns + c];
  return ir::Tensor::of({weight.shape()[1], weight.shape()[0]}, to);
}

ir::DenseLayer read_weights(const fs::path& file, std::string_view activation) {
  if (!text::is_present(file))
    fail_in(file,
            "is missing, but modules.json names the module; a pytorch_model.bin is not read: "
            "SentenceTransformer.save_pretrained() writes this file");
  text::check_regular_file(file);
  const npz::Arrays arrays = npz::load_safetensors(file);
  const auto take = [&](const char* name, std::size_t rank) {
    const auto found = arrays.find(name);
    if (found == arrays.end()) fail_in(file, fmt::format("has no tensor '{}'", name));
    const ir::Tensor& tensor = found->second;
    if (!ir::is_float(tensor.dtype()) || tensor.shape().size() != rank || tensor.size() == 0)
      fail_in(file, fmt::format("'{}' is {}[{}], expected floats in {}", name,
                                ir::name_of(tensor.dtype()), fmt::join(tensor.shape(), ", "),
                                rank == 1 ? "one axis" : "two axes"));
    return tensor.converted(ir::DType::f32);
  };
  for (const auto& [name, tensor] : arrays)
    if (name != "linear.weight" && name != "linear.bias")
      fail_in(file, fmt::format("holds '{}', which is not supported", name));
  const ir::Tensor weight = take("linear.weight", 2);
  ir::DenseLayer layer{file.string(), transposed(weight), {}, std::string(activation)};
  if (!arrays.contains("linear.bias")) return layer;
  layer.bias = take("linear.bias", 1);
  if (layer.bias->shape()[0] != weight.shape()[0])
    fail_in(file, fmt::format("'linear.bias' has {} elements, expected {}", layer.bias->shape()[0],
                              weight.shape()[0]));
  return layer;
}

/// What config.json says must be what the weights are.
void check_config(const text::JsonNode& config, const ir::DenseLayer& layer) {
  for (const char* key : {"module_input_name", "module_output_name"})
    if (const auto name = config.find(key); name && name->string() != "sentence_embedding")
      name->fail(fmt::format("is '{}', which is not supported (supported: sentence_embedding)",
                             name->string()));
  if (const auto residual = config.find("use_residual"); residual && residual->boolean())
    residual->fail("is not supported");
  if (const auto bias = config.find("bias"); bias && bias->boolean() != layer.bias.has_value())
    bias->fail(fmt::format("is {}, but model.safetensors has {}", bias->boolean(),
                           layer.bias ? "a bias" : "no bias"));
  const std::pair<const char*, std::size_t> sizes[] = {{"in_features", 0}, {"out_features", 1}};
  for (const auto& [key, axis] : sizes)
    if (const auto size = config.find(key); size && size->integer() != layer.weight.shape()[axis])
      size->fail(fmt::format("is {}, but the weights have {}", size->integer(),
                             layer.weight.shape()[axis]));
}

ir::DenseLayer read_module(const fs::path& folder) {
  const fs::path file = folder / "config.json";
  if (!text::is_present(file)) fail_in(file, "is missing, but modules.json names the module");
  const nlohmann::json json = text::read_json(file);
  const std::string origin = file.string();
  const text::JsonNode config(json, origin);
  ir::DenseLayer layer = read_weights(folder / "model.safetensors", activation_of(config));
  check_config(config, layer);
  return layer;
}

}  // namespace

std::function<std::vector<ir::DenseLayer>()> dense_modules(std::vector<fs::path> folders) {
  if (folders.empty()) return {};
  return [folders = std::move(folders)] {
    std::vector<ir::DenseLayer> layers;
    for (const fs::path& folder : folders) layers.push_back(read_module(folder));
    return layers;
  };
}

}  // namespace bertcl::tasks
