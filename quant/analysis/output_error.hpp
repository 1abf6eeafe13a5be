// SPDX-License-Identifier: Apache-2.0
// The error of a model's outputs relative to the float model's.
#pragma once
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "opencl/context.hpp"
#include "quant/calibration/samples.hpp"
#include "quant/graph/model.hpp"
#include "runtime/session.hpp"

namespace bertcl::quant {

/// Runs a float model over samples, one by one, and keeps its outputs to compare models with.
class OutputError {
 public:
  /// Throws Error if there are no samples, no output is float, or one holds NaN.
  OutputError(const std::filesystem::path& model, const opencl::ContextFuture& device,
              std::span<const Sample> samples);

  /// The relative root mean square error of a model's float outputs y against those of the float
  /// model, f: sqrt(sum (y - f)^2 / sum f^2) over all samples; of several outputs the root of the
  /// mean square. Infinities that both have, as of a mask, are not an error; where only one value
  /// is finite, or the infinities differ, the error is infinite. Throws Error if the model has
  /// other outputs.
  double operator()(const Model& model) const;

 private:
  std::span<const Sample> samples_;
  std::shared_ptr<opencl::Context> context_;
  std::map<std::string, std::vector<std::vector<float>>> expected_;  // by output and sample
};

}  // namespace bertcl::quant
