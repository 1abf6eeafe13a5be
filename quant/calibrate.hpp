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

/// The inputs of a model for one sample, matched by name: masks are ones over the tokens, types and
/// segments the sample's, positions count from 0, ids that number examples ("unique_ids") are 0,
/// and what is left takes the token ids. Free extents become [1, tokens]. Where the file fixes
/// them, the sample stands in each row, cut or padded with zeros. Throws Error naming an input that
/// is none of these.
runtime::Tensors inputs_of(const std::vector<plan::Port>& ports, const Sample& sample);

}  // namespace bertcl::quant
