// SPDX-License-Identifier: Apache-2.0
// Contracts of the kernels that observe values: calibration and the weight check.
#pragma once
#include <array>

#include "kernels/contract.hpp"

namespace bertcl::kernels {

/// partials[items][4] = least, largest, least magnitude and NaN of x[first .. end).
BERTCL_CONTRACT(ObserveRange, (x, "f32"), (partials, "f32"), (first, "int"), (end, "int"),
                (chunk, "int"));

/// states[place][4] = partials together; with `keep` also with what was there.
BERTCL_CONTRACT(ObserveMerge, (partials, "f32"), (states, "f32"), (items, "int"), (place, "int"),
                (keep, "int"));

/// counts[copies][bins] += the histogram of x[first .. end).
BERTCL_CONTRACT(ObserveHistogram, (x, "f32"), (edges, "f32"), (counts, "size4"), (first, "int"),
                (end, "int"), (chunk, "int"), (bins, "int"), (absolute, "int"),
                (bins_per_unit, "float"));

/// y[target ..] = runs of x from `first` on, one for each row of each plane.
BERTCL_CONTRACT(ObserveGather, (x, "f32"), (y, "f32"), (first, "int"), (target, "int"),
                (plane_stride, "int"), (row_stride, "int"), (run, "int"), (rows, "int"),
                (planes, "int"));

/// state[3][channels] = least, largest and sum of squares of the columns of x[rows][channels].
BERTCL_CONTRACT(ObserveChannels, (x, "f32"), (state, "f32"), (rows, "int"), (channels, "int"),
                (keep, "int"));

/// state[2][channels] += sums of the columns of x, and of what quantization adds to them.
BERTCL_CONTRACT(ObserveShift, (x, "f32"), (state, "f32"), (rows, "int"), (channels, "int"),
                (scale, "float"), (zero_point, "int"), (lowest, "float"), (highest, "float"));

/// gram[channels][channels] += x^T x, on and above the diagonal.
BERTCL_CONTRACT(ObserveGram, (x, "f32"), (gram, "f32"), (rows, "int"), (channels, "int"));

/// found[number] = an element of `words` whose bits say that it is not finite, if there is one.
BERTCL_CONTRACT(FindNonfinite, (words, "any"), (wide, "int"), (count, "int"), (least, "int"),
                (found, "i32"), (number, "int"), (chunk, "int"));

consteval auto observe_contracts() {
  return std::array{
      contract_for<FindNonfinite>("find_nonfinite"),
      contract_for<ObserveChannels>("observe_channels"),
      contract_for<ObserveGather>("observe_gather"),
      contract_for<ObserveGram>("observe_gram"),
      contract_for<ObserveHistogram>("observe_histogram"),
      contract_for<ObserveMerge>("observe_merge"),
      contract_for<ObserveRange>("observe_range"),
      contract_for<ObserveShift>("observe_shift"),
  };
}

}  // namespace bertcl::kernels
