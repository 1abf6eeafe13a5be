// SPDX-License-Identifier: Apache-2.0
// The module Dense of sentence-transformers.
#include "tasks/dense_module.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "bertcl/error.hpp"
#include "npz/safetensors.hpp"

namespace bertcl::tasks {
namespace {

namespace fs = std::filesystem;

/// Activations by their names in torch, and the operator of each; Identity has none.
constexpr std::pair<std::string_view, std::string_view> activations[] = {
    {"Identity", ""}, {"Tanh", "Tanh"}, {"ReLU", "Relu"}, {"GELU", "Gelu"}, {"Sigmoid", "Sigmoid"}};

[[noreturn]] void fail(const fs::path& file, const std::string& what) {
  throw Error(file.string() + ": " + what, ErrorCode::invalid_file);
}

/// The operator of "torch.nn.modules.activation.Tanh"; Tanh is the default of the module.
std::string_view activation_of(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) fail(file, "cannot be read");
  const auto config = nlohmann::json::parse(stream, nullptr, /*allow_exceptions=*/false);
  if (!config.is_object()) fail(file, "is no JSON object");
  for (const char* key : {"module_input_name", "module_output_name"})
    if (const auto name = config.find(key); name != config.end() && *name != "sentence_embedding")
      fail(file, fmt::format("{} {} is not supported", key, name->dump()));
  const auto given = config.find("activation_function");
  if (given == config.end()) return "Tanh";
  std::vector<std::string_view> known;
  for (const auto& [name, op] : activations) known.push_back(name);
  if (!given->is_string())
    fail(file, fmt::format("activation_function is {}, expected a name", given->dump()));
  const std::string path = given->get<std::string>();
  const auto* const found =
      std::ranges::find(activations, path.substr(path.rfind('.') + 1),
                        &std::pair<std::string_view, std::string_view>::first);
  if (found == std::end(activations))
    fail(file,
         fmt::format("activation_function {} is not supported ({})", path, fmt::join(known, ", ")));
  return found->second;
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

runtime::DenseLayer read_module(const fs::path& folder) {
  const std::string_view activation = activation_of(folder / "config.json");
  const fs::path file = folder / "model.safetensors";
  if (!fs::exists(file))
    throw Error(fmt::format("{} is missing; SentenceTransformer.save_pretrained() writes it, a "
                            "pytorch_model.bin is not read",
                            file.string()),
                ErrorCode::invalid_file);
  const npz::Arrays arrays = npz::load_safetensors(file);
  const auto take = [&](const char* name, std::size_t rank) {
    const auto found = arrays.find(name);
    if (found == arrays.end()) fail(file, fmt::format("has no tensor '{}'", name));
    const ir::Tensor& tensor = found->second;
    if (!ir::is_float(tensor.dtype()) || tensor.shape().size() != rank)
      fail(file,
           fmt::format("'{}' is {}[{}], expected floats in {}", name, ir::name_of(tensor.dtype()),
                       fmt::join(tensor.shape(), ", "), rank == 1 ? "one axis" : "two axes"));
    return tensor.converted(ir::DType::f32);
  };
  const ir::Tensor weight = take("linear.weight", 2);
  runtime::DenseLayer layer{folder.string(), transposed(weight), {}, std::string(activation)};
  if (!arrays.contains("linear.bias")) return layer;
  layer.bias = take("linear.bias", 1);
  if (layer.bias->shape()[0] != weight.shape()[0])
    fail(file, fmt::format("'linear.bias' has {} elements, expected {}", layer.bias->shape()[0],
                           weight.shape()[0]));
  return layer;
}

}  // namespace

std::vector<runtime::DenseLayer> read_dense_modules(const std::vector<fs::path>& folders) {
  std::vector<runtime::DenseLayer> layers;
  for (const fs::path& folder : folders) layers.push_back(read_module(folder));
  return layers;
}

}  // namespace bertcl::tasks
