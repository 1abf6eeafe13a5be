// SPDX-License-Identifier: Apache-2.0
// The sizes that packing adds to a graph; the one place where they are named.
//
// They start with '$', which the importer removes from the symbols of a file (onnx/inputs.hpp): a
// model may call an axis `tokens` or `batch` and mean another size.
#pragma once
#include "ir/dim.hpp"

namespace bertcl::ops::symbols {

inline constexpr const char* tokens = "$tokens";    // rows that are computed
inline constexpr const char* batch = "$batch";      // sequences
inline constexpr const char* offsets = "$offsets";  // $batch + 1
inline constexpr const char* longest = "$longest";  // rows of the longest sequence
/// Query rows that one work-item of attention takes: as many as leave work for every compute unit.
inline constexpr const char* attention_rows = "$attention_rows";

inline ir::Dim dim(const char* symbol) { return ir::Dim::symbol(symbol); }

}  // namespace bertcl::ops::symbols
