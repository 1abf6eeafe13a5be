// SPDX-License-Identifier: Apache-2.0
// A histogram that is counted on the device.
#pragma once
#include <cstddef>
#include <span>
#include <string>

#include "opencl/context.hpp"
#include "quant/calibration/device_min_max.hpp"
#include "quant/calibration/histogram.hpp"

namespace bertcl::quant {

/// Counts a tensor sample by sample. The host reads the extent of each sample (16 bytes) to decide
/// whether the bins must grow, and the counts only if they do. `tensor` is named in messages.
class DeviceHistogram {
 public:
  DeviceHistogram(opencl::Context& context, const std::string& tensor, int bins, Binning binning);

  /// Waits for the extents of the samples, then queues the counting. Throws Error if a value is NaN
  /// or infinite.
  void observe(const opencl::Buffer& values, std::span<const ElementRange> samples);
  /// Waits. All that was counted. Throws Error if nothing was.
  const Histogram& read();

 private:
  void make_room(const ValueBounds& sample, std::size_t count);
  void count(const opencl::Buffer& values, const ElementRange& sample);
  void collect();

  opencl::Context& context_;
  std::string tensor_;
  DeviceMinMax bounds_;
  Histogram host_;
  std::size_t copies_ = 1;  // of the counts on the device
  opencl::Buffer edges_, counts_;
  std::size_t pending_ = 0;  // values counted on the device alone
};

}  // namespace bertcl::quant
