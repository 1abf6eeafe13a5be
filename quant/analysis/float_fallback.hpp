// SPDX-License-Identifier: Apache-2.0
// Leaves as few ops in float as keep the quality loss within a bound.
#pragma once
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "quant/calibrated_model.hpp"

namespace bertcl::quant {

/// The loss of a model against the float model, in any unit; lower is better.
using MeasureDrop = std::function<double(const Model& model)>;

/// The largest loss that is allowed, with words for errors.
struct DropBound {
  double most;
  std::string name = "drop";
  std::string unit{};

  /// The value with its unit.
  std::string text(double value) const;
};

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

/// Leaves ops in float from the front of the order, as few as keep the drop within `bound`.
/// First Softmax is unnormalized, if possible: that may be enough, and is kept if it reduces the
/// drop. Ops are ranked, once, only if that is not enough. The number is found by bisection,
/// assuming that each op in float helps; the chosen model was measured, so the bound holds even if
/// one does not. Throws Error if even all ops in float drop more, or if nothing less than all of
/// them keeps the bound.
FloatFallback find_float_fallback(const CalibratedModel& model, const RankOps& rank_ops,
                                  const DropBound& bound, const MeasureDrop& measure_drop,
                                  const std::function<void(const FallbackTrial&)>& progress = {});

}  // namespace bertcl::quant
