// SPDX-License-Identifier: Apache-2.0
// A calibrated model, from which files with any part left in float are made.
#pragma once
#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "quant/graph/model.hpp"
#include "quant/graph/workspace.hpp"
#include "quant/placement/quantized_op.hpp"
#include "quant/quantizer.hpp"

namespace bertcl::quant {

/// Has ranges, smoothing and rounded weights; only Q/DQ placement remains. Leaving an op in float
/// does not change the others' parameters, so a file with some of the ops needs no samples.
class CalibratedModel {
 public:
  /// Does everything that quantize() does before writing the file.
  CalibratedModel(const Options& options, const SampleSource& samples,
                  const Progress& progress = {});
  /// The same; `workspace` already holds the options' model.
  CalibratedModel(const Options& options, Workspace workspace, const SampleSource& samples,
                  const Progress& progress = {});
  CalibratedModel(const CalibratedModel&) = delete;
  CalibratedModel& operator=(const CalibratedModel&) = delete;
  ~CalibratedModel();

  const Options& options() const;  ///< as they were given
  const opencl::ContextFuture& device() const;
  /// The quantized ops; indices below refer to this list.
  const std::vector<QuantizedOp>& ops() const;

  /// True if the options leave Softmax plain where it could be unnormalized.
  bool can_unnormalize() const;

  /// A model in which only these ops are quantized; `unnormalized`: with unnormalized Softmax
  /// before them even if the options leave it plain. This needs no calibration.
  Model part(const std::set<std::size_t>& quantized, bool unnormalize = false) const;

  /// Writes the options' output. `skipped` stays in float; the report says so with these reasons.
  Report write(const std::map<std::size_t, std::string>& skipped = {}, bool unnormalize = false);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace bertcl::quant
