// SPDX-License-Identifier: Apache-2.0
// A small encoder as text: one attention over rows that the caller gives, with a mask.
#pragma once
#include <fmt/format.h>

#include <string>

#include "runtime/session.hpp"
#include "tests/support/parse_graph.hpp"

namespace bertcl::runtime {

/// y[batch, seq, 4] = attention(x, x, x) of two heads, under a mask[batch, seq] that the graph
/// casts or, `mask_is_length`, replaces by the number of its ones. The type of the mask and the
/// names of the two axes are free.
inline ir::Graph masked_encoder(const std::string& mask_type, const std::string& batch = "batch",
                                const std::string& seq = "seq", bool mask_is_length = false) {
  const std::string cast = fmt::format(R"(
  %2: {2}[{0}, 1, 1, {1}] = Unsqueeze(%mask) {{axes = [1, 2]}}
  %3: f32[{0}, 1, 1, {1}] = Cast(%2) {{to = "f32"}}
  const %one: f32[] = 1
  %4: f32[{0}, 1, 1, {1}] = Sub(%one, %3)
  %5: f32[{0}, 1, 1, {1}] = Mul(%4, %low))",
                                       batch, seq, mask_type);
  const std::string count = fmt::format(R"(
  %2: {2}[{0}] = ReduceSum(%mask) {{axes = [1], keepdims = 0}}
  %3: {2}[{0}, 1, 1, 1] = Reshape(%2)
  %range: {2}[{1}] = Range() {{start = 0, step = 1}}
  %4: bool[{0}, 1, 1, {1}] = Less(%range, %3)
  const %zero: f32[] = 0
  %5: f32[{0}, 1, 1, {1}] = Where(%4, %zero, %low))",
                                        batch, seq, mask_type);
  return ir::parse(fmt::format(R"(graph g(%x: f32[{0}, {1}, 4], %mask: {2}[{0}, {1}]) {{
  %0: f32[{0}, {1}, 2, 2] = Reshape(%x)
  %q: f32[{0}, 2, {1}, 2] = Transpose(%0) {{perm = [0, 2, 1, 3]}}
  %k: f32[{0}, 2, 2, {1}] = Transpose(%0) {{perm = [0, 2, 3, 1]}}
  %v: f32[{0}, 2, {1}, 2] = Transpose(%0) {{perm = [0, 2, 1, 3]}}
  %1: f32[{0}, 2, {1}, {1}] = MatMul(%q, %k)
  const %low: f32[] = -10000{3}
  %6: f32[{0}, 2, {1}, {1}] = Add(%1, %5)
  %p: f32[{0}, 2, {1}, {1}] = Softmax(%6) {{axis = -1}}
  %7: f32[{0}, 2, {1}, 2] = MatMul(%p, %v)
  %8: f32[{0}, {1}, 2, 2] = Transpose(%7) {{perm = [0, 2, 1, 3]}}
  %y: f32[{0}, {1}, 4] = Reshape(%8)
  return %y as y
}})",
                               batch, seq, mask_type, mask_is_length ? count : cast));
}

}  // namespace bertcl::runtime
