// SPDX-License-Identifier: Apache-2.0
// Each kernel of a model compared with what the device could do: where time is lost, and how much.
#pragma once
#include <vector>

#include "tools/measure/kernel_profile.hpp"
#include "tools/measure/peaks.hpp"

namespace bertcl::tools {

/// The launches of a kernel on one op and type; of linears, on weights of one size.
struct RooflineRow {
  KernelTime time;      ///< N x K stands after the name of a linear's kernel
  double min_ms = 0.0;  ///< that the device needs at least

  double lost_ms() const { return time.ms - min_ms; }
};

/// The peak of a type of arithmetic.
double peak_gops_of(const Peaks& peaks, plan::Arithmetic type);

/// The least time of a step is the larger of its operations at their peak and its bytes at theirs:
/// weights come from memory where all of them together are larger than 16 MiB, activations where
/// one step's are; the rest comes from cache. The rows that lose most come first.
std::vector<RooflineRow> roofline(const std::vector<StepTime>& steps, const Peaks& peaks);

/// The total of all rows, with an empty name.
RooflineRow sum_of(const std::vector<RooflineRow>& rows);

}  // namespace bertcl::tools
