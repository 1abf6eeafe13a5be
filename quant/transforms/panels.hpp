// SPDX-License-Identifier: Apache-2.0
// Matrices of doubles in panels of eight columns: the GEMM and the Cholesky factorization of GPTQ.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace bertcl::quant {

/// A row of a panel.
struct alignas(64) Eight {
  double at[8] = {};
};

/// [rows][columns] of zeros. Eight columns make a panel, in which they are stored row after row;
/// the last one is padded.
class Panels {
 public:
  Panels(std::int64_t rows, std::int64_t columns)
      : rows_(rows), columns_(columns), eights_(static_cast<std::size_t>(rows * count())) {}
  /// An upper triangle, whose panels end with the last row of their diagonal.
  static Panels upper(std::int64_t rows) { return Panels(rows); }

  std::int64_t rows() const { return rows_; }
  std::int64_t count() const { return (columns_ + 7) / 8; }
  /// Rows that this panel stores, a multiple of 8 in triangles.
  std::int64_t stored_rows(std::int64_t panel) const { return upper_ ? 8 * (panel + 1) : rows_; }
  Eight* panel(std::int64_t p) { return eights_.data() + (upper_ ? 4 * p * (p + 1) : p * rows_); }
  const Eight* panel(std::int64_t p) const { return const_cast<Panels*>(this)->panel(p); }
  double at(std::int64_t row, std::int64_t column) const {
    return panel(column / 8)[row].at[column % 8];
  }

 private:
  explicit Panels(std::int64_t rows)
      : rows_(rows),
        columns_(rows),
        upper_(true),
        eights_(static_cast<std::size_t>(4 * count() * (count() + 1))) {}

  std::int64_t rows_, columns_;
  bool upper_ = false;
  std::vector<Eight> eights_;
};

/// c [M][N] += a [depth][M]^T b [depth][N], of the first `depth` rows of a and b. Each element adds
/// its terms one after the other, so the bits are the same on every CPU. c has a multiple of 8
/// rows.
void add_transposed_product(Panels& c, const Panels& a, const Panels& b, std::int64_t depth);

/// H = U^T U, in place, with terms subtracted one after the other. False where H is not positive
/// definite. What is below the diagonal is left undefined.
bool factor_upper(Panels& h);

/// Both, compiled for one width of vector registers.
struct PanelFunctions {
  void (*add_transposed_product)(Panels& c, const Panels& a, const Panels& b, std::int64_t depth);
  bool (*factor_upper)(Panels& h);
};
/// The functions for each width that this CPU has, the widest first; all give the same bits.
std::span<const PanelFunctions> panel_functions();

}  // namespace bertcl::quant
