// SPDX-License-Identifier: Apache-2.0
// Contracts of the kernels that observe values: calibration and the weight check.
#pragma once
#include "kernels/contract.hpp"

namespace bertcl::kernels {

/// partials[items][4] = least, largest, least magnitude and NaN of x[first .. end).
template <class A>
struct ObserveRange {
  A x{}, partials{}, first{}, end{}, chunk{};
  static constexpr Field<ObserveRange, A> fields[] = {
      {&ObserveRange::x, "x", "f32"},         {&ObserveRange::partials, "partials", "f32"},
      {&ObserveRange::first, "first", "int"}, {&ObserveRange::end, "end", "int"},
      {&ObserveRange::chunk, "chunk", "int"},
  };
};

/// states[place][4] = partials together; with `join` also with what was there.
template <class A>
struct ObserveMerge {
  A partials{}, states{}, items{}, place{}, join{};
  static constexpr Field<ObserveMerge, A> fields[] = {
      {&ObserveMerge::partials, "partials", "f32"}, {&ObserveMerge::states, "states", "f32"},
      {&ObserveMerge::items, "items", "int"},       {&ObserveMerge::place, "place", "int"},
      {&ObserveMerge::join, "join", "int"},
  };
};

/// counts[copies][bins] += the histogram of x[first .. end).
template <class A>
struct ObserveHistogram {
  A x{}, edges{}, counts{}, first{}, end{}, chunk{}, bins{}, absolute{}, bins_per_unit{};
  static constexpr Field<ObserveHistogram, A> fields[] = {
      {&ObserveHistogram::x, "x", "f32"},
      {&ObserveHistogram::edges, "edges", "f32"},
      {&ObserveHistogram::counts, "counts", "size4"},
      {&ObserveHistogram::first, "first", "int"},
      {&ObserveHistogram::end, "end", "int"},
      {&ObserveHistogram::chunk, "chunk", "int"},
      {&ObserveHistogram::bins, "bins", "int"},
      {&ObserveHistogram::absolute, "absolute", "int"},
      {&ObserveHistogram::bins_per_unit, "bins_per_unit", "float"},
  };
};

/// y[target ..] = runs of x from `first` on, one for each row of each plane.
template <class A>
struct ObserveGather {
  A x{}, y{}, first{}, target{}, plane_stride{}, row_stride{}, run{}, rows{}, planes{};
  static constexpr Field<ObserveGather, A> fields[] = {
      {&ObserveGather::x, "x", "f32"},
      {&ObserveGather::y, "y", "f32"},
      {&ObserveGather::first, "first", "int"},
      {&ObserveGather::target, "target", "int"},
      {&ObserveGather::plane_stride, "plane_stride", "int"},
      {&ObserveGather::row_stride, "row_stride", "int"},
      {&ObserveGather::run, "run", "int"},
      {&ObserveGather::rows, "rows", "int"},
      {&ObserveGather::planes, "planes", "int"},
  };
};

/// state[3][channels] = least, largest and sum of squares of the columns of x[rows][channels].
template <class A>
struct ObserveChannels {
  A x{}, state{}, rows{}, channels{}, join{};
  static constexpr Field<ObserveChannels, A> fields[] = {
      {&ObserveChannels::x, "x", "f32"},       {&ObserveChannels::state, "state", "f32"},
      {&ObserveChannels::rows, "rows", "int"}, {&ObserveChannels::channels, "channels", "int"},
      {&ObserveChannels::join, "join", "int"},
  };
};

/// state[2][channels] += sums of the columns of x, and of what quantization adds to them.
template <class A>
struct ObserveShift {
  A x{}, state{}, rows{}, channels{}, scale{}, zero_point{}, lowest{}, highest{};
  static constexpr Field<ObserveShift, A> fields[] = {
      {&ObserveShift::x, "x", "f32"},
      {&ObserveShift::state, "state", "f32"},
      {&ObserveShift::rows, "rows", "int"},
      {&ObserveShift::channels, "channels", "int"},
      {&ObserveShift::scale, "scale", "float"},
      {&ObserveShift::zero_point, "zero_point", "int"},
      {&ObserveShift::lowest, "lowest", "float"},
      {&ObserveShift::highest, "highest", "float"},
  };
};

/// gram[channels][channels] += x^T x, on and above the diagonal.
template <class A>
struct ObserveGram {
  A x{}, gram{}, rows{}, channels{};
  static constexpr Field<ObserveGram, A> fields[] = {
      {&ObserveGram::x, "x", "f32"},
      {&ObserveGram::gram, "gram", "f32"},
      {&ObserveGram::rows, "rows", "int"},
      {&ObserveGram::channels, "channels", "int"},
  };
};

/// found[number] = an element of `words` whose bits say that it is not finite, if there is one.
template <class A>
struct FindNonfinite {
  A words{}, wide{}, count{}, least{}, found{}, number{}, chunk{};
  static constexpr Field<FindNonfinite, A> fields[] = {
      {&FindNonfinite::words, "words", "any"}, {&FindNonfinite::wide, "wide", "int"},
      {&FindNonfinite::count, "count", "int"}, {&FindNonfinite::least, "least", "int"},
      {&FindNonfinite::found, "found", "i32"}, {&FindNonfinite::number, "number", "int"},
      {&FindNonfinite::chunk, "chunk", "int"},
  };
};

/// The kernels of these contracts.
inline constexpr KernelContract observe_contracts[] = {
    row<FindNonfinite>("find_nonfinite"),       row<ObserveChannels>("observe_channels"),
    row<ObserveGather>("observe_gather"),       row<ObserveGram>("observe_gram"),
    row<ObserveHistogram>("observe_histogram"), row<ObserveMerge>("observe_merge"),
    row<ObserveRange>("observe_range"),         row<ObserveShift>("observe_shift"),
};

}  // namespace bertcl::kernels
