// SPDX-License-Identifier: Apache-2.0
// Runs the float model over samples and gathers the ranges of its tensors on the device.
#pragma once
#include <cstdint>
#include <functional>
#include <set>
#include <string>

#include "quant/encode.hpp"
#include "quant/observer.hpp"
#include "quant/samples.hpp"
#include "runtime/session.hpp"

namespace bertcl::quant {

struct Calibration {
  Ranges ranges;  ///< by tensor
  std::int64_t samples = 0;
  std::int64_t tokens = 0;
  std::string data_sha256;  ///< over ids and types of all samples in order
};

/// Called after each sample.
using CalibrationProgress = std::function<void(std::int64_t samples, std::int64_t tokens)>;

/// Ranges of `tensors`, which `session` was loaded to observe. Samples run one by one at their own
/// length; memory does not grow with their number. Throws Error that names the tensor if one was
/// not reached, is not f32, or held NaN or an infinite value; or if there are no samples.
Calibration calibrate(runtime::Session& session, const std::set<std::string>& tensors,
                      const Method& method, const MethodOptions& options,
                      const SampleSource& samples, const CalibrationProgress& progress = {});

/// The inputs of a model for one sample [1, tokens], matched by name: masks are ones, types and
/// segments the sample's, positions count from 0, and what is left takes the ids. Throws Error
/// naming an input that is none of these.
runtime::Tensors inputs_of(const std::vector<std::string>& names, const Sample& sample);

}  // namespace bertcl::quant
