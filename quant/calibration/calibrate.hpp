// SPDX-License-Identifier: Apache-2.0
// Runs the float model over samples and collects the ranges of its tensors on the device.
#pragma once
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "ir/port.hpp"
#include "quant/calibration/observer.hpp"
#include "quant/calibration/parameters.hpp"
#include "quant/calibration/samples.hpp"
#include "runtime/session.hpp"

namespace bertcl::quant {

struct Calibration {
  Ranges ranges;                    ///< by tensor
  std::vector<std::string> coarse;  ///< tensors whose range is_coarse()
  std::int64_t samples = 0;
  std::int64_t tokens = 0;
  std::string data_sha256;  ///< over ids and types of all samples in order
};

/// Ranges of `tensors`, which `session` was loaded to observe. `batch` samples run together, padded
/// to the longest of them; the observers see their real values one after the other, so the ranges
/// equal those of a batch of 1. Memory does not grow with the number of samples. Throws Error that
/// names the tensor if one was not reached, is not f32, or held NaN or an infinite value; or if
/// there are no samples.
Calibration calibrate(runtime::Session& session, const std::set<std::string>& tensors,
                      const Method& method, const MethodOptions& options,
                      const SampleSource& samples, int batch = 1,
                      const PassProgress& progress = {});

/// The inputs of a model for samples that run together, matched by name: masks are ones over the
/// tokens, token types are the sample's, positions count from 0, ids that number examples
/// ("unique_ids") are 0, and what is left takes the token ids. Free extents become
/// [samples, longest]; after a shorter sample are zeros, of ids `pad_token_id`. Where the file
/// fixes them, the samples stand in the rows in turn, padded likewise. Throws Error naming an input
/// that is none of these, or one that is too short for a sample.
runtime::Tensors inputs_of(const std::vector<ir::Port>& ports, std::span<const Sample> samples,
                           std::int64_t pad_token_id = 0);
inline runtime::Tensors inputs_of(const std::vector<ir::Port>& ports, const Sample& sample,
                                  std::int64_t pad_token_id = 0) {
  return inputs_of(ports, std::span(&sample, 1), pad_token_id);
}

}  // namespace bertcl::quant
