// SPDX-License-Identifier: Apache-2.0
// Blocked for the caches, with tiles of sums in eight registers; the order of sums is that of plain
// loops.
#include "quant/transforms/panels.hpp"

#include <algorithm>
#include <cmath>

namespace bertcl::quant {
namespace {

using Index = std::int64_t;

constexpr Index kDepth = 128;  // these rows of two panels, 16 KiB, stay in the L1 cache
constexpr Index kRows = 64;    // of the triangle, factored together; a multiple of 8

/// `lanes` neighbors of a row: those of a vector register.
template <int lanes>
struct Part {
  using Vector __attribute__((vector_size(8 * lanes), may_alias)) = double;
};
template <int lanes>
[[gnu::always_inline]] inline auto& part_of(Eight& row, Index part) {
  return *reinterpret_cast<typename Part<lanes>::Vector*>(row.at + lanes * part);
}
template <int lanes>
[[gnu::always_inline]] inline const auto& part_of(const Eight& row, Index part) {
  return *reinterpret_cast<const typename Part<lanes>::Vector*>(row.at + lanes * part);
}

/// `lanes` rows of c, and what is added to them: as many columns of a, beginning with `from`, times
/// b. Eight registers hold the sums.
template <int lanes, bool subtract>
[[gnu::always_inline]] inline void tile(Eight* c, const Eight* a, Index from, const Eight* b,
                                        Index depth) {
  constexpr Index parts = 8 / lanes;
  typename Part<lanes>::Vector sums[lanes][parts];
  for (Index r = 0; r < lanes; ++r)
    for (Index part = 0; part < parts; ++part) sums[r][part] = part_of<lanes>(c[r], part);
  for (Index d = 0; d < depth; ++d)
    for (Index r = 0; r < lanes; ++r)
      for (Index part = 0; part < parts; ++part) {
        const auto term = part_of<lanes>(b[d], part) * a[d].at[from + r];
        sums[r][part] = subtract ? sums[r][part] - term : sums[r][part] + term;
      }
  for (Index r = 0; r < lanes; ++r)
    for (Index part = 0; part < parts; ++part) part_of<lanes>(c[r], part) = sums[r][part];
}

/// The rows `begin` to `end` of panel p, of which all terms of the rows before `begin` are
/// subtracted.
template <int lanes>
[[gnu::always_inline]] inline bool finish_panel(Panels& u, Index p, Index begin, Index end) {
  constexpr Index parts = 8 / lanes;
  Eight* const rows = u.panel(p);
  for (Index i = begin; i < std::min(end, u.stored_rows(p)); ++i) {
    const Eight* const column = u.panel(i / 8);
    typename Part<lanes>::Vector left[parts];
    for (Index part = 0; part < parts; ++part) left[part] = part_of<lanes>(rows[i], part);
    for (Index d = begin; d < i; ++d)
      for (Index part = 0; part < parts; ++part)
        left[part] -= part_of<lanes>(rows[d], part) * column[d].at[i % 8];
    for (Index part = 0; part < parts; ++part) part_of<lanes>(rows[i], part) = left[part];
    double diagonal = column[i].at[i % 8];
    if (i / 8 == p) {
      if (!(diagonal > 0.0)) return false;
      diagonal = std::sqrt(diagonal);
    }
    for (Index part = 0; part < parts; ++part) part_of<lanes>(rows[i], part) /= diagonal;
    if (i / 8 == p) rows[i].at[i % 8] = diagonal;
  }
  return true;
}

template <int lanes>
[[gnu::always_inline]] inline void add_product(Panels& c, const Panels& a, const Panels& b,
                                               Index depth) {
  for (Index first = 0; first < depth; first += kDepth)
    for (Index p = 0; p < c.count(); ++p)
      for (Index row = 0; row < c.rows(); row += lanes)
        tile<lanes, false>(c.panel(p) + row, a.panel(row / 8) + first, row % 8, b.panel(p) + first,
                           std::min(kDepth, depth - first));
}

template <int lanes>
[[gnu::always_inline]] inline bool factor(Panels& h) {
  for (Index begin = 0; begin < h.rows(); begin += kRows) {
    const Index end = std::min(begin + kRows, h.rows());
    for (Index first = 0; first < begin; first += kDepth)
      for (Index p = begin / 8; p < h.count(); ++p)
        for (Index row = begin; row < std::min(end, h.stored_rows(p)); row += lanes)
          tile<lanes, true>(h.panel(p) + row, h.panel(row / 8) + first, row % 8, h.panel(p) + first,
                            std::min(kDepth, begin - first));
    for (Index p = begin / 8; p < h.count(); ++p)
      if (!finish_panel<lanes>(h, p, begin, end)) return false;
  }
  return true;
}

// Compiled for each width of vector registers. No FMA: it would round other bits than CPUs without
// it.
#define BERTCL_PANELS(width, isa, lanes)                                                     \
  [[gnu::target(isa)]] void add_product_##width(Panels& c, const Panels& a, const Panels& b, \
                                                Index depth) {                               \
    add_product<lanes>(c, a, b, depth);                                                      \
  }                                                                                          \
  [[gnu::target(isa)]] bool factor_##width(Panels& h) { return factor<lanes>(h); }

#ifdef __x86_64__
BERTCL_PANELS(512, "avx512f", 8)
BERTCL_PANELS(256, "avx2", 4)
#endif

std::vector<PanelFunctions> supported_widths() {
  std::vector<PanelFunctions> widths;
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx512f")) widths.push_back({add_product_512, factor_512});
  if (__builtin_cpu_supports("avx2")) widths.push_back({add_product_256, factor_256});
#endif
  widths.push_back({add_product<2>, factor<2>});
  return widths;
}

}  // namespace

std::span<const PanelFunctions> panel_functions() {
  static const auto widths = supported_widths();
  return widths;
}

void add_transposed_product(Panels& c, const Panels& a, const Panels& b, Index depth) {
  panel_functions().front().add_transposed_product(c, a, b, depth);
}

bool factor_upper(Panels& h) { return panel_functions().front().factor_upper(h); }

}  // namespace bertcl::quant
