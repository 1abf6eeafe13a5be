// SPDX-License-Identifier: Apache-2.0
// Which tensors of an ONNX graph are constants, and their values.
#pragma once
#include <map>
#include <set>
#include <string>

#include "quant/graph/graph_index.hpp"
#include "quant/graph/model.hpp"

namespace bertcl::quant {

/// The tensor with reversed axes.
ir::Tensor transposed(const ir::Tensor& from);

/// What constants come from.
struct Sources {
  std::set<std::string> results;  ///< of nodes
  std::set<std::string> initializers;
};

/// Tensors that depend on initializers and Constant nodes alone.
class Constants {
 public:
  Constants(Model& model, const GraphIndex& index) : model_(model), index_(index) {}

  bool contains(const std::string& tensor);
  /// Its value, through Identity, Cast, Transpose, Reshape, Squeeze, Unsqueeze, Mul and Div, as the
  /// engine computes them. Throws Error naming the operator where another one stands in the way.
  ir::Tensor value(const std::string& tensor);
  /// Adds what it comes from.
  void collect(const std::string& tensor, Sources& sources) const;

 private:
  ir::Tensor evaluate(const onnx::NodeProto& node);

  Model& model_;
  const GraphIndex& index_;
  std::map<std::string, bool> known_;
};

/// Columns `from` to `to` of a matrix, or elements of a vector.
ir::Tensor columns(const ir::Tensor& x, std::int64_t from, std::int64_t to);

}  // namespace bertcl::quant
