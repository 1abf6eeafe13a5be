// SPDX-License-Identifier: Apache-2.0
// The module Dense of sentence-transformers.
#include "runtime/dense_module.hpp"

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

namespace bertcl::runtime {
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

}  // namespace

ir::Value* add_dense_module(ir::Graph& graph, ir::Value* x, const fs::path& folder) {
  const std::string_view activation = activation_of(folder / "config.json");
  const fs::path file = folder / "model.safetensors";
  if (!fs::exists(file))
    throw Error(fmt::format("{} is missing; SentenceTransformer.save_pretrained() writes it, a "
                            "pytorch_model.bin is not read",
                            file.string()),
                ErrorCode::invalid_file);
  npz::Arrays arrays = npz::load_safetensors(file);
  const auto take = [&](const char* name) {
    const auto found = arrays.find(name);
    if (found == arrays.end()) fail(file, fmt::format("has no tensor '{}'", name));
    if (!ir::is_float(found->second.dtype()))
      fail(file, fmt::format("'{}' is of type {}", name, ir::name_of(found->second.dtype())));
    return found->second.converted(ir::DType::f32);
  };
  const ir::Tensor weight = take("linear.weight");
  const ir::Dim& width = x->type.shape.back();
  if (weight.shape().size() != 2 || width != ir::Dim(weight.shape()[1]))
    fail(file, fmt::format("'linear.weight' is [{}], but vectors have {} dimensions",
                           fmt::join(weight.shape(), ", "), width.str()));
  const std::int64_t out = weight.shape()[0];
  const ir::Type type{ir::DType::f32, {x->type.shape[0], out}};
  const std::string name = folder.filename().string();
  ir::Value* y =
      graph.add("MatMul", {x, graph.add_constant(name + ".weight", transposed(weight))}, {}, type);
  if (arrays.contains("linear.bias")) {
    const ir::Tensor bias = take("linear.bias");
    if (bias.shape() != ir::Sizes{out})
      fail(file,
           fmt::format("'linear.bias' is [{}], expected [{}]", fmt::join(bias.shape(), ", "), out));
    y = graph.add("Add", {y, graph.add_constant(name + ".bias", bias)}, {}, type);
  }
  return activation.empty() ? y : graph.add(std::string(activation), {y}, {}, type);
}

}  // namespace bertcl::runtime
