// SPDX-License-Identifier: Apache-2.0
// Types of the graph's inputs and the names of their dynamic extents.
#include "onnx/inputs.hpp"

#include <fmt/format.h>

#include <cctype>
#include <map>
#include <set>

#include "bertcl/error.hpp"
#include "onnx/proto.hpp"
#include "onnx/tensors.hpp"

namespace bertcl::onnx_io {
namespace {

/// True for the two-dimensional token inputs of BERT. TensorFlow writes "input_ids:0", some
/// exporters a path before the name.
bool is_bert_input(std::string name, int rank) {
  static const std::set<std::string> names = {"input_ids",      "attention_mask", "input_mask",
                                              "token_type_ids", "segment_ids",    "position_ids"};
  name = name.substr(0, name.find(':'));
  name = name.substr(name.rfind('/') + 1);
  return rank == 2 && names.contains(name);
}

}  // namespace

std::string symbol_name(std::string name) {
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_') c = '_';
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) ||
      ir::is_fresh_symbol(name))
    name = "d_" + name;
  return name;
}

std::vector<std::pair<std::string, ir::Type>> input_types(
    const std::vector<const onnx::ValueInfoProto*>& inputs, const std::string& file) {
  std::map<std::string, std::string> renamed;
  for (const auto* in : inputs) {
    const auto& shape = in->type().tensor_type().shape();
    if (!is_bert_input(in->name(), shape.dim_size())) continue;
    for (int d = 0; d < 2; ++d)
      if (const auto& param = shape.dim(d).dim_param(); !param.empty())
        renamed.emplace(param, d == 0 ? "batch" : "seq");
  }
  std::vector<std::pair<std::string, ir::Type>> types;
  for (const auto* in : inputs) {
    const std::string where = fmt::format("{}: input '{}'", file, in->name());
    if (in->name().empty()) throw Error(fmt::format("{}: an input has no name", file));
    if (!in->type().has_tensor_type())
      throw Error(fmt::format("{} is not a tensor; only tensors are supported", where));
    const auto& tensor = in->type().tensor_type();
    if (!tensor.has_shape()) throw Error(fmt::format("{} declares no shape", where));
    ir::Type type{element_type(tensor.elem_type(), where), {}};
    const bool bert = is_bert_input(in->name(), tensor.shape().dim_size());
    for (int d = 0; d < tensor.shape().dim_size(); ++d) {
      const auto& dim = tensor.shape().dim(d);
      if (dim.has_dim_value() && dim.dim_value() >= 0) {
        type.shape.push_back(dim.dim_value());
      } else if (bert) {
        type.shape.push_back(ir::Dim::symbol(d == 0 ? "batch" : "seq"));
      } else if (dim.dim_param().empty() || dim.dim_param() == "?") {
        type.shape.push_back(ir::Dim::symbol(symbol_name(fmt::format("{}_dim{}", in->name(), d))));
      } else {
        const auto it = renamed.find(dim.dim_param());
        type.shape.push_back(
            ir::Dim::symbol(it == renamed.end() ? symbol_name(dim.dim_param()) : it->second));
      }
    }
    types.emplace_back(in->name(), std::move(type));
  }
  return types;
}

}  // namespace bertcl::onnx_io
