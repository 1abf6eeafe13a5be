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

using Inputs = std::vector<const onnx::ValueInfoProto*>;

/// TensorFlow writes "input_ids:0", some exporters a path before the name.
std::string base_name(std::string name) {
  name = name.substr(0, name.find(':'));
  return name.substr(name.rfind('/') + 1);
}

/// True for the two-dimensional token inputs of BERT.
bool is_bert_input(const onnx::ValueInfoProto& input) {
  static const std::set<std::string> names = {"input_ids",      "attention_mask", "input_mask",
                                              "token_type_ids", "segment_ids",    "position_ids"};
  return input.type().tensor_type().shape().dim_size() == 2 &&
         names.contains(base_name(input.name()));
}

/// The name that the file gives to an extent; empty if it gives none.
std::string size_name(const onnx::ValueInfoProto& input, int axis) {
  const auto& name = input.type().tensor_type().shape().dim(axis).dim_param();
  return name == "?" ? "" : name;
}

/// True unless BERT's inputs are those of several encoders that differ along the axis.
bool bert_has_one_size(const Inputs& inputs, int axis) {
  std::set<std::string> bases, sizes;
  bool several = false;
  for (const auto* in : inputs) {
    if (!is_bert_input(*in)) continue;
    several |= !bases.insert(base_name(in->name())).second;
    if (const std::string size = size_name(*in, axis); !size.empty()) sizes.insert(size);
  }
  return !several || sizes.size() <= 1;
}

/// A symbol of its own for each name of an extent in the file; names that give the same symbol
/// ("n + 1", "n - 1") are numbered.
class SizeNames {
 public:
  void rename(const std::string& name, const std::string& symbol) {
    symbols_.emplace(name, symbol);
    taken_.insert(symbol);
  }
  std::string of(const std::string& name) {
    const auto it = symbols_.find(name);
    return it == symbols_.end() ? symbols_[name] = unused(symbol_name(name)) : it->second;
  }
  std::string unused(const std::string& wanted) {
    std::string symbol = wanted;
    for (int n = 2; !taken_.insert(symbol).second; ++n) symbol = fmt::format("{}_{}", wanted, n);
    return symbol;
  }

 private:
  std::map<std::string, std::string> symbols_;
  std::set<std::string> taken_;
};

constexpr const char* kBertSymbols[] = {"batch", "seq"};

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
  const bool one_size[] = {bert_has_one_size(inputs, 0), bert_has_one_size(inputs, 1)};
  SizeNames symbols;
  for (const auto* in : inputs)
    for (int d = 0; d < 2 && is_bert_input(*in); ++d)
      if (const std::string name = size_name(*in, d); one_size[d] && !name.empty())
        symbols.rename(name, kBertSymbols[d]);
  std::vector<std::pair<std::string, ir::Type>> types;
  for (const auto* in : inputs) {
    const std::string where = fmt::format("{}: input '{}'", file, in->name());
    if (in->name().empty()) throw Error(fmt::format("{}: an input has no name", file));
    if (!in->type().has_tensor_type())
      throw Error(fmt::format("{} is not a tensor; only tensors are supported", where));
    const auto& tensor = in->type().tensor_type();
    if (!tensor.has_shape()) throw Error(fmt::format("{} declares no shape", where));
    ir::Type type{element_type(tensor.elem_type(), where), {}};
    const bool bert = is_bert_input(*in);
    for (int d = 0; d < tensor.shape().dim_size(); ++d) {
      const auto& dim = tensor.shape().dim(d);
      const std::string name = size_name(*in, d);
      if (dim.has_dim_value() && dim.dim_value() >= 0) {
        type.shape.push_back(dim.dim_value());
      } else if (bert && one_size[d]) {
        type.shape.push_back(ir::Dim::symbol(kBertSymbols[d]));
      } else if (name.empty()) {
        type.shape.push_back(
            ir::Dim::symbol(symbols.unused(symbol_name(fmt::format("{}_dim{}", in->name(), d)))));
      } else {
        type.shape.push_back(ir::Dim::symbol(symbols.of(name)));
      }
    }
    types.emplace_back(in->name(), std::move(type));
  }
  return types;
}

}  // namespace bertcl::onnx_io
