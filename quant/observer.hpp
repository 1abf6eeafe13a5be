// SPDX-License-Identifier: Apache-2.0
// What a calibration method is: an observer that sees a tensor batch by batch and gives its range.
#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "opencl/context.hpp"
#include "quant/parameters.hpp"

namespace bertcl::quant {

/// Watches one tensor. What it keeps does not grow with the number of batches.
class Observer {
 public:
  virtual ~Observer() = default;
  /// Takes in `count` floats that lie in `values`; queued work may still read them on return.
  /// Batches may differ in size; an empty one changes nothing.
  virtual void observe(const opencl::Buffer& values, std::size_t count) = 0;
  /// The range of all batches. Throws Error that names the tensor if none was seen, or if a value
  /// was NaN or infinite.
  virtual Range range() = 0;
};

/// Settings of the methods; each method reads those that concern it.
struct MethodOptions {
  int bins = 2048;             ///< of a histogram, at first
  double percentile = 99.999;  ///< share of the values inside the range, in percent
  /// Percentile: histogram of absolute values, range -t .. t within what was seen. If false, of the
  /// values themselves, cutting half of the rest on each side.
  bool absolute = true;
};

/// A calibration method.
struct Method {
  std::string_view name;     ///< as on the command line
  std::string_view summary;  ///< one line
  /// `tensor` is named in messages. Throws Error on settings out of range.
  std::unique_ptr<Observer> (*observer)(opencl::Context&, const MethodOptions&,
                                        const std::string& tensor);
};

/// All methods, the default first.
std::span<const Method> methods();
/// The method of that name. Throws Error with the list of names if there is none.
const Method& method(std::string_view name);

// One file each.
extern const Method minmax;
extern const Method percentile;

}  // namespace bertcl::quant
