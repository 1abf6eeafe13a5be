// SPDX-License-Identifier: Apache-2.0
// Moves the normalization of a quantized Softmax after the MatMul that reads it.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "quant/calibration/parameters.hpp"
#include "quant/graph/graph_index.hpp"
#include "quant/graph/model.hpp"
#include "quant/placement/placement.hpp"

namespace bertcl::quant {

/// What is quantized for a Softmax.
enum class Softmax {
  plain,         ///< its result
  unnormalized,  ///< exponentials relative to the largest, exp(s - max(s)): unnormalize_softmax()
};

/// The range of the exponentials: the largest is always 1.
inline constexpr Range kExponentials{0.0f, 1.0f};

/// The results of Softmax nodes over the last axis, or of Where(IsNaN(p), 0, p) after them, whose
/// only reader is a MatMul of `placement`, as its quantized first input.
std::set<std::string> unnormalizable_softmaxes(const Placement& placement, const GraphIndex& index,
                                               const Structure& structure, const TypeOf& type_of);

/// The Softmax nodes whose results are not among `unnormalized`, and why; the model where it has
/// none.
std::vector<SkippedNode> normalized_softmaxes(const std::set<std::string>& unnormalized,
                                              const GraphIndex& index, const Structure& structure,
                                              const TypeOf& type_of);

/// In a model with Q/DQ, rewrites for each of these results p
///
///   s -> Softmax -> p -> Q -> DQ -> pd; MatMul(pd, v) -> y
///   becomes
///   s -> ReduceMax -> m; Exp(s - m) -> Q -> DQ -> pd; MatMul(pd, v) / ReduceSum(pd) -> y
///
/// which is the same except for rounding: with many keys most probabilities are below one step,
/// while the largest exponential is always 1. The parameters of Q and DQ must be those of
/// kExponentials. All other names stay.
///
/// Where(IsNaN(p), 0, p) between Softmax and Q stays, of the exponentials; ReduceSum then has
/// Max(.., 1e-30) after it, so that rows without any key give 0 as before.
void unnormalize_softmax(Model& model, const std::set<std::string>& results,
                         const Structure& structure);

}  // namespace bertcl::quant
