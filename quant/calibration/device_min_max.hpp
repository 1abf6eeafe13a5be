// SPDX-License-Identifier: Apache-2.0
// Smallest and largest value of tensors, reduced on the device.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "opencl/context.hpp"

namespace bertcl::quant {

/// The location of one sample's values in a buffer, in elements.
struct ElementRange {
  std::size_t first = 0;
  std::size_t count = 0;
  friend bool operator==(const ElementRange&, const ElementRange&) = default;
};

/// The observed bounds of a tensor's values.
struct ValueBounds {
  float low = 0.0f;      ///< smallest value
  float high = 0.0f;     ///< largest value
  float nearest = 0.0f;  ///< smallest absolute value
};

/// The division of a reduction over a range of elements: each work-item takes `chunk` elements.
struct Division {
  std::int32_t first = 0, end = 0;  // elements of the buffer
  std::int32_t chunk = 0;
  std::size_t items = 0;
};
/// Most items that divide() makes on the device.
std::size_t max_items(const opencl::Context& context);
/// Throws Error for more than kernels count.
void check_elements(std::size_t elements);
Division divide(const opencl::Context& context, const ElementRange& slice);

/// Minimum and maximum in device memory. `tensor` is named in messages.
class DeviceMinMax {
 public:
  DeviceMinMax(opencl::Context& context, std::string tensor);

  /// Queues adding the samples to the running bounds.
  void add(const opencl::Buffer& values, std::span<const ElementRange> samples);
  /// Waits and reads the running bounds. Throws Error if nothing was added, or if a value was NaN
  /// or infinite.
  ValueBounds read() const;

  /// Waits. The bounds of each sample (empty ones: zeros), apart from the running one. Throws Error
  /// as read().
  std::vector<ValueBounds> measure(const opencl::Buffer& values,
                                   std::span<const ElementRange> samples);

 private:
  void queue(const opencl::Buffer& values, const ElementRange& sample, std::int32_t place,
             bool keep);
  ValueBounds checked(std::span<const float, 4> state) const;

  opencl::Context& context_;
  std::string tensor_;
  opencl::Buffer states_, partials_;  // states_: the running one, then one for each sample
  bool seen_ = false;
};

}  // namespace bertcl::quant
