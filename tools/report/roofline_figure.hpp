// SPDX-License-Identifier: Apache-2.0
// The roofline of a model's kernels as SVG.
#pragma once
#include <string>
#include <vector>

#include "tools/measure/roofline.hpp"

namespace bertcl::tools {

/// A logarithmic axis over whole decades.
class LogAxis {
 public:
  /// Decades that hold `min` and `max`, both above 0, laid over `from` .. `to` in pixels.
  LogAxis(double min, double max, double from, double to);
  double at(double value) const;
  int first_exponent() const { return first_; }  ///< of 10
  int last_exponent() const { return last_; }

 private:
  int first_, last_;
  double from_, to_;
};

/// Throughput over operations per byte, both axes logarithmic; the roofs of memory, of cache and of
/// the types that occur. A kernel has the number of its row, from 1; those that count no
/// operations are left out, and without any other the text is empty. The colors are those of the
/// page's style.
std::string roofline_svg(const std::vector<RooflineRow>& rows, const Peaks& peaks);

}  // namespace bertcl::tools
