// SPDX-License-Identifier: Apache-2.0
// Blocked for the caches, with tiles of 4 x 8 sums in registers; the order of sums is that of plain
// loops.
#include "quant/transforms/panels.hpp"

#include <algorithm>
#include <cmath>

namespace bertcl::quant {
namespace {

using Index = std::int64_t;

constexpr Index kDepth = 128;  // these rows of two panels, 16 KiB, stay in the L1 cache
constexpr Index kRows = 64;    // of the triangle, factored together; a multiple of 8

using Four __attribute__((vector_size(32), may_alias)) = double;

[[gnu::always_inline]] inline Four& half_of(Eight& row, Index half) {
  return *reinterpret_cast<Four*>(row.at + 4 * half);
}
[[gnu::always_inline]] inline const Four& half_of(const Eight& row, Index half) {
  return *reinterpret_cast<const Four*>(row.at + 4 * half);
}

/// Four rows of c, and what is added to them: a's columns `from` to `from` + 3 times b.
template <bool subtract>
[[gnu::always_inline]] inline void tile(Eight* c, const Eight* a, Index from, const Eight* b,
                                        Index depth) {
  Four sums[4][2];
  for (Index r = 0; r < 4; ++r)
    for (Index half = 0; half < 2; ++half) sums[r][half] = half_of(c[r], half);
  for (Index d = 0; d < depth; ++d)
    for (Index r = 0; r < 4; ++r)
      for (Index half = 0; half < 2; ++half) {
        const Four term = half_of(b[d], half) * a[d].at[from + r];
        sums[r][half] = subtract ? sums[r][half] - term : sums[r][half] + term;
      }
  for (Index r = 0; r < 4; ++r)
    for (Index half = 0; half < 2; ++half) half_of(c[r], half) = sums[r][half];
}

/// The rows `begin` to `end` of panel p, of which all terms of the rows before `begin` are
/// subtracted.
[[gnu::always_inline]] inline bool finish_panel(Panels& u, Index p, Index begin, Index end) {
  Eight* const rows = u.panel(p);
  for (Index i = begin; i < std::min(end, u.stored_rows(p)); ++i) {
    const Eight* const column = u.panel(i / 8);
    Four left = half_of(rows[i], 0), right = half_of(rows[i], 1);
    for (Index d = begin; d < i; ++d) {
      left -= half_of(rows[d], 0) * column[d].at[i % 8];
      right -= half_of(rows[d], 1) * column[d].at[i % 8];
    }
    half_of(rows[i], 0) = left;
    half_of(rows[i], 1) = right;
    double diagonal = column[i].at[i % 8];
    if (i / 8 == p) {
      if (!(diagonal > 0.0)) return false;
      diagonal = std::sqrt(diagonal);
    }
    half_of(rows[i], 0) /= diagonal;
    half_of(rows[i], 1) /= diagonal;
    if (i / 8 == p) rows[i].at[i % 8] = diagonal;
  }
  return true;
}

}  // namespace

BERTCL_CLONES void add_transposed_product(Panels& c, const Panels& a, const Panels& b,
                                          Index depth) {
  for (Index first = 0; first < depth; first += kDepth)
    for (Index p = 0; p < c.count(); ++p)
      for (Index row = 0; row < c.rows(); row += 4)
        tile<false>(c.panel(p) + row, a.panel(row / 8) + first, row % 8, b.panel(p) + first,
                    std::min(kDepth, depth - first));
}

BERTCL_CLONES bool factor_upper(Panels& h) {
  for (Index begin = 0; begin < h.rows(); begin += kRows) {
    const Index end = std::min(begin + kRows, h.rows());
    for (Index first = 0; first < begin; first += kDepth)
      for (Index p = begin / 8; p < h.count(); ++p)
        for (Index row = begin; row < std::min(end, h.stored_rows(p)); row += 4)
          tile<true>(h.panel(p) + row, h.panel(row / 8) + first, row % 8, h.panel(p) + first,
                     std::min(kDepth, begin - first));
    for (Index p = begin / 8; p < h.count(); ++p)
      if (!finish_panel(h, p, begin, end)) return false;
  }
  return true;
}

}  // namespace bertcl::quant
