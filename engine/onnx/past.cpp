// SPDX-License-Identifier: Apache-2.0
// A model that takes keys and values of earlier tokens, imported as the encoder that it is without
// any:
//   %past_key_values.0.key: f32[batch, heads, past, size]    becomes    f32[batch, heads, 0, size]
#include "onnx/past.hpp"

#include <algorithm>
#include <cctype>
#include <set>
#include <string_view>

#include "onnx/importer.hpp"
#include "onnx/inputs.hpp"

namespace bertcl::onnx_io {
namespace {

/// True for `first` and then, after '.' or '_', numbers and the words of keys and values.
bool is_cache_name(std::string_view name, std::string_view first) {
  static const std::set<std::string_view> words = {"key", "keys", "value", "values"};
  if (!name.starts_with(first)) return false;
  name.remove_prefix(first.size());
  if (name.empty()) return false;
  while (!name.empty()) {
    if (name.front() != '.' && name.front() != '_') return false;
    name.remove_prefix(1);
    const std::string_view word = name.substr(0, name.find_first_of("._"));
    const bool number = !word.empty() && std::ranges::all_of(word, [](unsigned char c) {
      return std::isdigit(c) != 0;
    });
    if (!number && !words.contains(word)) return false;
    name.remove_prefix(word.size());
  }
  return true;
}

}  // namespace

std::optional<std::size_t> past_axis(const std::string& name, const ir::Type& type) {
  const std::size_t rank = type.shape.size();
  if (!is_cache_name(name, "past") || !ir::is_float(type.dtype) || (rank != 4 && rank != 5))
    return std::nullopt;
  const ir::Dim& tokens = type.shape[rank - 2];
  if (tokens.is_constant() && tokens.constant() != 0) return std::nullopt;
  return rank - 2;
}

bool is_kv_cache_output(const std::string& name) { return is_cache_name(name, "present"); }

void Importer::add_inputs(const std::vector<const onnx::ValueInfoProto*>& inputs) {
  std::vector<std::pair<std::string, ir::Type>> past;
  for (auto& [name, type] : input_types(inputs, file_)) {
    if (const auto axis = past_axis(name, type); options_.without_past && axis) {
      type.shape[*axis] = 0;
      past.emplace_back(name, std::move(type));
    } else {
      define(name, graph_.add_input(name, std::move(type)));
    }
  }
  for (const ir::Value* in : graph_.inputs()) check_extents(*in);
  has_past_ = !past.empty();
  const auto rank_2 = [](const ir::Value* in) { return in->type.shape.size() == 2; };
  const auto tokens = std::ranges::find_if(graph_.inputs(), rank_2);
  for (auto& [name, type] : past) {
    // Where the file does not say that its batch is that of the tokens.
    ir::Dim& batch = type.shape[type.shape.size() - 4];
    if (!batch.is_constant() && tokens != graph_.inputs().end()) batch = (*tokens)->type.shape[0];
    ir::Value* zero =
        graph_.add_constant(name + "/zero", ir::Tensor::scalar(0.0f).converted(type.dtype));
    ir::Node* node = graph_.add_node("Expand", {zero}, {}, {{name, std::move(type)}});
    define(name, node->output());
  }
}

}  // namespace bertcl::onnx_io
