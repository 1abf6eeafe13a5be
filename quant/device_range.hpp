// SPDX-License-Identifier: Apache-2.0
// Smallest and largest value of tensors, reduced on the device.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "opencl/context.hpp"

namespace bertcl::quant {

/// What was seen of a tensor.
struct Extent {
  float low = 0.0f;      ///< smallest value
  float high = 0.0f;     ///< largest value
  float nearest = 0.0f;  ///< smallest absolute value
};

/// How a reduction over `count` elements is divided: each work-item takes `chunk` of them in turn.
struct Division {
  std::int32_t chunk = 0;
  std::size_t items = 0;  // those that have work
  std::array<std::size_t, 3> global{}, local{};
};
/// Most items that divide() makes on the device.
std::size_t most_items(const opencl::Context& context);
Division divide(const opencl::Context& context, std::size_t count);

/// A running extent in device memory. `tensor` is named in messages.
class DeviceRange {
 public:
  DeviceRange(opencl::Context& context, std::string tensor);

  /// Queues joining `count` floats of `values`, or beginning anew with them.
  void join(const opencl::Buffer& values, std::size_t count);
  void restart(const opencl::Buffer& values, std::size_t count);
  /// Waits and reads. Throws Error if nothing was joined, or if a value was NaN or infinite.
  Extent read() const;

 private:
  void queue(const opencl::Buffer& values, std::size_t count, bool keep);

  opencl::Context& context_;
  std::string tensor_;
  opencl::Buffer state_, partials_;
  bool seen_ = false;
};

}  // namespace bertcl::quant
