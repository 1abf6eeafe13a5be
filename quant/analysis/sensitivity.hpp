// SPDX-License-Identifier: Apache-2.0
// The cost of each quantized op, as the error of the model's outputs.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "quant/calibrated_model.hpp"
#include "quant/calibration/samples.hpp"

namespace bertcl::quant {

/// Errors of the outputs, as OutputError, with and without a set of ops in int8.
///
/// Ops are ranked by `alone`: no other error disturbs it, and since the errors of different ops are
/// nearly independent, their squares add up to about that of the whole model. `without` shows the
/// benefit of leaving the op in float, but as a small difference of two large errors it is noisy.
struct SensitivityErrors {
  double alone = 0.0;    ///< with nothing else quantized
  double without = 0.0;  ///< with everything else quantized
};

/// A set of ops: a layer, or those of a kind.
struct OpGroup {
  std::string name;
  std::vector<std::size_t> ops;  ///< indices into CalibratedModel::ops()
  SensitivityErrors errors;
};

struct Sensitivity {
  double all = 0.0;             ///< error with every op quantized
  std::vector<OpGroup> ops;     ///< each alone, named by its node; the most sensitive first
  std::vector<OpGroup> kinds;   ///< likewise
  std::vector<OpGroup> layers;  ///< by number; ops of no layer are in none
  /// Errors with unnormalized Softmax in place of the plain one of the options, where it can be.
  struct Unnormalized {
    double all = 0.0;
    std::map<std::size_t, double> alone;  ///< by op, of those after a Softmax
  };
  std::optional<Unnormalized> unnormalized;
  std::int64_t samples = 0, tokens = 0;

  /// The error of one op alone.
  double alone(std::size_t op, bool unnormalize) const;
  /// All ops, the most sensitive first.
  std::vector<std::size_t> order(bool unnormalize) const;
};

/// Called with the numbers of measured models and of all.
using ModelProgress = std::function<void(std::size_t done, std::size_t total)>;

/// Runs the models one after the other: two for each op, kind and layer, and one for each op after
/// a Softmax that can be unnormalized. No recalibration.
Sensitivity measure_sensitivity(const CalibratedModel& model, std::span<const Sample> samples,
                                const ModelProgress& progress = {});

}  // namespace bertcl::quant
