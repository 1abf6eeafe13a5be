// SPDX-License-Identifier: Apache-2.0
// Leaves as few ops in float as keep the quality loss within a bound.
#pragma once
#include <cstddef>
#include <functional>
#include <vector>

#include "quant/calibrated_model.hpp"

namespace bertcl::quant {

/// The loss of a model against the float model, in any unit; lower is better.
using MeasureDrop = std::function<double(const Model& model)>;

/// A measured model.
struct FallbackTrial {
  std::size_t float_ops = 0;  ///< ops in float, from the front of the order
  bool unnormalized = false;  ///< Softmax, in place of the options' plain one
  double drop = 0.0;
};

struct FloatFallback {
  std::vector<std::size_t> float_ops;  ///< ops that stay in float, of CalibratedModel::ops()
  bool unnormalized = false;           ///< Softmax, as FallbackTrial
  double drop = 0.0;                   ///< what is lost then
  std::vector<FallbackTrial> steps;    ///< in the order in which they were measured
};

/// All ops, the most sensitive first, where Softmax is unnormalized or as the options say.
using RankOps = std::function<std::vector<std::size_t>(bool unnormalized)>;

/// Leaves ops in float from the front of the order, as few as keep the drop at most `max_drop`.
/// First Softmax is unnormalized, if possible: that may be enough, and is kept if it reduces the
/// drop. The number is found by bisection, assuming that each op in float helps; the chosen model
/// was measured, so the bound holds even if one does not. Throws Error if even all ops in float
/// drop more.
FloatFallback find_float_fallback(const CalibratedModel& model, const RankOps& rank_ops,
                                  double max_drop, const MeasureDrop& measure_drop,
                                  const std::function<void(const FallbackTrial&)>& progress = {});

}  // namespace bertcl::quant
