// SPDX-License-Identifier: Apache-2.0
// The fewest ops in float that keep the loss of quality within a bound.
#pragma once
#include <cstddef>
#include <functional>
#include <vector>

#include "quant/calibrated_model.hpp"

namespace bertcl::quant {

/// What a model loses against the float model, in any unit; less is better.
using DropOf = std::function<double(const Model& model)>;

/// A model that was measured.
struct DropStep {
  std::size_t left = 0;       ///< ops in float, from the front of the order
  bool unnormalized = false;  ///< Softmax, in place of the options' plain one
  double drop = 0.0;
};

struct MaxDrop {
  std::vector<std::size_t> left;  ///< ops that stay in float, of CalibratedModel::ops()
  bool unnormalized = false;      ///< Softmax, as DropStep
  double drop = 0.0;              ///< what is lost then
  std::vector<DropStep> steps;    ///< in the order in which they were measured
};

/// All ops, the most costly first, where Softmax is unnormalized or as the options say.
using OrderOf = std::function<std::vector<std::size_t>(bool unnormalized)>;

/// Leaves ops in float from the front of the order, as few as keep the drop at `most`. Before the
/// first of them Softmax is unnormalized, if it can be: that may be enough, and where it drops less
/// it is kept. The number is found by bisection, as if each op in float could only help; the model
/// that is chosen was measured, so that the bound holds also where one does not. Throws Error if
/// even all ops in float drop more.
MaxDrop find_max_drop(const CalibratedModel& model, const OrderOf& order_of, double most,
                      const DropOf& drop_of,
                      const std::function<void(const DropStep&)>& progress = {});

}  // namespace bertcl::quant
