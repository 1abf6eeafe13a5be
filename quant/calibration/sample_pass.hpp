// SPDX-License-Identifier: Apache-2.0
// One pass of the calibration samples through a model, observing its tensors.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <type_traits>

#include "opencl/context.hpp"
#include "quant/calibration/channel_statistics.hpp"
#include "quant/calibration/samples.hpp"
#include "quant/graph/workspace.hpp"

namespace bertcl::quant {

/// The device of a pass, and the memory of a tensor [rows][channels] there; queue what reads it.
using ChannelTapFunction =
    std::function<void(opencl::Context& context, const std::string& tensor,
                       const opencl::Buffer& values, std::int64_t rows, std::int64_t channels)>;

/// Runs the samples one by one, without padding. Throws Error naming a tensor that is not f32 with
/// a last axis, or if there are no samples.
void run_samples(const Workspace& workspace, const std::set<std::string>& tensors,
                 std::span<const Sample> samples, const ChannelTapFunction& tap,
                 const PassProgress& progress = {});

/// The same with an observer for each of `tensors` that the samples reach, made by
/// `make(context, tensor)`. Returns them; they are read while the workspace lives.
template <class Make>
auto observe_samples(const Workspace& workspace, const std::set<std::string>& tensors,
                     std::span<const Sample> samples, const Make& make,
                     const PassProgress& progress = {}) {
  std::map<std::string, std::invoke_result_t<Make, opencl::Context&, const std::string&>> observers;
  run_samples(
      workspace, tensors, samples,
      [&](opencl::Context& context, const std::string& tensor, const opencl::Buffer& values,
          std::int64_t rows, std::int64_t channels) {
        auto it = observers.find(tensor);
        if (it == observers.end()) it = observers.emplace(tensor, make(context, tensor)).first;
        it->second.observe(values, rows, channels);
      },
      progress);
  return observers;
}

/// Statistics of the tensors that the samples reach. Throws Error naming one that held NaN or
/// infinite values, or as run_samples().
ChannelRanges channel_statistics(const Workspace& workspace, const std::set<std::string>& tensors,
                                 std::span<const Sample> samples,
                                 const PassProgress& progress = {});

}  // namespace bertcl::quant
