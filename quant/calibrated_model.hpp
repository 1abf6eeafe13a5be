// SPDX-License-Identifier: Apache-2.0
// A model between calibration and the file, from which files with any part of it in float are made.
#pragma once
#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "quant/graph/model.hpp"
#include "quant/placement/quantized_op.hpp"
#include "quant/quantizer.hpp"

namespace bertcl::quant {

/// Has ranges, smoothing and rounded weights; only Q/DQ have to be placed. An op that stays in
/// float changes nothing of what the others were given, so a file with some of the ops costs no
/// samples.
class CalibratedModel {
 public:
  /// Does what quantize() does up to the file.
  CalibratedModel(const Options& options, const SampleSource& samples,
                  const Progress& progress = {});
  CalibratedModel(const CalibratedModel&) = delete;
  CalibratedModel& operator=(const CalibratedModel&) = delete;
  ~CalibratedModel();

  const Options& options() const;  ///< as they were given
  const opencl::ContextFuture& device() const;
  /// What is quantized; indices in this list stand for ops below.
  const std::vector<QuantizedOp>& ops() const;

  /// True if the options leave Softmax plain where it could be unnormalized.
  bool can_defer() const;

  /// A model in which these ops alone are quantized; `defer`: with unnormalized Softmax in front of
  /// them also where the options leave it plain. That takes no calibration.
  Model part(const std::set<std::size_t>& quantized, bool defer = false) const;

  /// Writes the options' output. `skipped` stays in float; the report says so with these reasons.
  Report write(const std::map<std::size_t, std::string>& skipped = {}, bool defer = false);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace bertcl::quant
