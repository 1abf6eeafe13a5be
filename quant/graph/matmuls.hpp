// SPDX-License-Identifier: Apache-2.0
// MatMuls in a graph, and what comes before and after them.
#pragma once
#include <map>
#include <string>

#include "quant/graph/graph_index.hpp"

namespace bertcl::quant {

/// Multiplies matrices, with weights or without: MatMul, Gemm, Conv, and operators with such
/// inside.
bool is_matmul(const onnx::NodeProto& node);

/// The nearest MatMul towards the inputs, the tensor's own producer first; -1 if there is none.
int matmul_before(const GraphIndex& index, const std::string& tensor);

/// Whether another MatMul lies on a way from the node to an output.
class MatMuls {
 public:
  explicit MatMuls(const GraphIndex& index) : index_(index) {}

  bool is_followed(int node);

 private:
  const GraphIndex& index_;
  std::map<int, bool> followed_;
};

}  // namespace bertcl::quant
