// SPDX-License-Identifier: Apache-2.0
// MatMuls whose activations are quantized by each run, without calibration.
#pragma once
#include <string>
#include <vector>

#include "quant/graph/graph_index.hpp"
#include "quant/graph/model.hpp"
#include "quant/placement/placement.hpp"

namespace bertcl::quant {

/// The source of activation scales.
enum class ActivationScales {
  calibrated,  ///< samples or a table
  per_tensor,  ///< each run: DynamicQuantizeLinear, u8, one for all of the tensor
  per_token,   ///< each run: one for each row, i8, symmetric
};

/// Leaves in `placement` the MatMuls of an activation and a weight, whose activation is no longer
/// an operand since it has no scale beforehand, and what reads constants alone (the tables of
/// Gather). All others are moved to Placement::skipped.
void keep_dynamic(Placement& placement, const GraphIndex& index);

/// The results of these MatMuls, in the order of the nodes.
std::vector<std::string> matmul_results(const Placement& placement, const GraphIndex& index);

/// In a model whose weights stand after DequantizeLinear, rewrites the MatMul that makes each of
/// `results` as onnxruntime's quantize_dynamic does, with its names:
///
///   x, Wq -> DQ(w_scale, w_zero_point) -> MatMul -> y
///   becomes
///   x -> DynamicQuantizeLinear -> xq, x_scale, x_zero_point
///   MatMulInteger(xq, Wq, x_zero_point, w_zero_point) -> Cast -> Mul(x_scale * w_scale) -> y
///
/// or, by `per_token`, in plain operators that onnxruntime runs and bertcl reads as one,
///
///   x -> Abs -> ReduceMax(last axis) -> Max(1e-30) -> Div(127) -> x_scale[.., 1]
///   x -> Div(x_scale) -> Round -> Cast(i8) -> xq
///   MatMulInteger(xq, Wq, _, w_zero_point) -> Cast -> Mul(w_scale) -> Mul(x_scale) -> y
///
/// A tensor that several MatMuls read is quantized once. `results` are in the order of the nodes;
/// `scales` is not `calibrated`.
void quantize_dynamically(Model& model, const std::vector<std::string>& results,
                          ActivationScales scales);

}  // namespace bertcl::quant
