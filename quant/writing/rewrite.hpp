// SPDX-License-Identifier: Apache-2.0
// Writes Q/DQ into an ONNX graph.
#pragma once
#include "quant/encoding/encode.hpp"
#include "quant/graph/model.hpp"
#include "quant/placement/placement.hpp"

namespace bertcl::quant {

struct RewriteOptions {
  /// Weights as float constants before Q -> DQ, as TensorRT reads them, instead of integers before
  /// DQ.
  bool float_weights = false;
  /// Each operand has its own Q/DQ pair, all with the same scale and zero point.
  bool dedicated_pairs = false;
  /// All other readers of a shared pair's tensor also read it quantized.
  bool all_readers = false;
  /// Matrices as torch's exporter writes them: [out, in] -> [Q ->] DQ -> Transpose.
  bool transposed_weights = false;
};

/// Inserts Q/DQ before the operands of `placement` and after its outputs, with the names of
/// onnxruntime's quantizer (NAME_QuantizeLinear, NAME_scale, NAME_quantized, ...).
///
///   x -> MatMul              x -> QuantizeLinear -> DequantizeLinear -> MatMul
///   W (constant) -> MatMul   W_quantized (i8) -> DequantizeLinear(axis) -> MatMul
///
///   or, transposed: W^T (constant) -> [Q ->] DQ(axis) -> Transpose -> MatMul
///
/// By default a tensor has one pair, which all its sites share; readers outside the sites keep the
/// float tensor. The pair of an output is read by all. An output of the graph keeps its name:
/// NAME_QuantizeLinear_Input -> Q -> DQ -> NAME. Constants and the nodes that made them (Cast,
/// Transpose) go where nothing reads them any more; all else stays. `index` and `constants` are of
/// the graph before and not valid afterwards.
void rewrite(Model& model, const Placement& placement, const Encodings& encodings,
             const GraphIndex& index, Constants& constants, const RewriteOptions& options);

}  // namespace bertcl::quant
