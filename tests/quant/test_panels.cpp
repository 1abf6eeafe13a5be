// SPDX-License-Identifier: Apache-2.0
// Panels of doubles: every width of vector registers gives the bits of plain loops.
#include "quant/transforms/panels.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace bertcl::quant {
namespace {

using Rows = std::vector<std::vector<double>>;

Rows random_rows(std::mt19937& random, std::int64_t rows, std::int64_t columns) {
  std::uniform_real_distribution<double> values(-1.0, 1.0);
  Rows x(rows, std::vector<double>(columns));
  for (auto& row : x)
    for (double& value : row) value = values(random);
  return x;
}

Panels panels_of(const Rows& x, std::int64_t columns) {
  Panels panels(std::ssize(x), columns);
  for (std::int64_t r = 0; r < std::ssize(x); ++r)
    for (std::int64_t c = 0; c < columns; ++c) panels.panel(c / 8)[r].at[c % 8] = x[r][c];
  return panels;
}

TEST(Panels, ProductsHaveTheBitsOfPlainLoops) {
  RecordProperty("widths", static_cast<int>(panel_functions().size()));  // as the CPU has
  std::mt19937 random(11);
  for (const std::int64_t depth : {0, 1, 127, 128, 129, 300})
    for (const std::int64_t m : {8, 64})
      for (const std::int64_t n : {1, 7, 8, 9, 31}) {
        const Rows a = random_rows(random, depth, m), b = random_rows(random, depth, n);
        Rows expected = random_rows(random, m, n);
        const Panels before = panels_of(expected, n);
        for (std::int64_t d = 0; d < depth; ++d)
          for (std::int64_t r = 0; r < m; ++r)
            for (std::int64_t c = 0; c < n; ++c) {
              const double term = a[d][r] * b[d][c];
              expected[r][c] += term;
            }
        for (const PanelFunctions& f : panel_functions()) {
          Panels c = before;
          f.add_transposed_product(c, panels_of(a, m), panels_of(b, n), depth);
          for (std::int64_t r = 0; r < m; ++r)
            for (std::int64_t k = 0; k < n; ++k)
              ASSERT_EQ(c.at(r, k), expected[r][k]) << depth << " " << m << "x" << n;
        }
      }
}

/// x^T x + 1 on the diagonal, so positive definite.
Rows gram_of(const Rows& x, std::int64_t n) {
  Rows h(n, std::vector<double>(n));
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      h[i][j] = i == j ? 1.0 : 0.0;
      for (const auto& row : x) h[i][j] += row[i] * row[j];
    }
  return h;
}

Panels upper_of(const Rows& h) {
  Panels upper = Panels::upper(std::ssize(h));
  for (std::int64_t j = 0; j < std::ssize(h); ++j)
    for (std::int64_t i = 0; i <= j; ++i) upper.panel(j / 8)[i].at[j % 8] = h[i][j];
  return upper;
}

TEST(Panels, FactorsHaveTheBitsOfPlainLoops) {
  std::mt19937 random(13);
  for (const std::int64_t n : {1, 7, 8, 9, 63, 64, 65, 193}) {
    const Rows h = gram_of(random_rows(random, 5, n), n);
    Rows expected = h;
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = i; j < n; ++j) {
        double& u = expected[i][j];
        for (std::int64_t d = 0; d < i; ++d) {
          const double term = expected[d][i] * expected[d][j];
          u -= term;
        }
        u = i == j ? std::sqrt(u) : u / expected[i][i];
      }
    for (const PanelFunctions& f : panel_functions()) {
      Panels u = upper_of(h);
      ASSERT_TRUE(f.factor_upper(u)) << n;
      for (std::int64_t i = 0; i < n; ++i)
        for (std::int64_t j = i; j < n; ++j) ASSERT_EQ(u.at(i, j), expected[i][j]) << n;
    }
  }
}

TEST(Panels, NoFactorWhereNotPositiveDefinite) {
  std::mt19937 random(17);
  for (const std::int64_t n : {1, 8, 100})
    for (const PanelFunctions& f : panel_functions()) {
      Rows h = gram_of(random_rows(random, 5, n), n);
      h[n - 1][n - 1] = -1.0;
      Panels u = upper_of(h);
      EXPECT_FALSE(f.factor_upper(u)) << n;
    }
}

}  // namespace
}  // namespace bertcl::quant
