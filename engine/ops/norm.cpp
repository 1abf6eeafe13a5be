// SPDX-License-Identifier: Apache-2.0
// LayerNorm (Ba et al., 2016) and RMSNorm (Zhang and Sennrich, 2019) of rows. Sums are kept in
// double.
#include "ops/norm.hpp"

#include <cmath>
#include <numeric>

namespace bertcl::ops {

void normalize_rows(std::vector<double>& rows, std::span<const double> gamma,
                    std::span<const double> beta, double epsilon, bool rms) {
  const std::size_t n = gamma.size();
  for (std::size_t row = 0; n > 0 && row < rows.size(); row += n) {
    double* p = rows.data() + row;
    double mean = 0, squares = 0;
    if (!rms) mean = std::accumulate(p, p + n, 0.0) / static_cast<double>(n);
    for (std::size_t i = 0; i < n; ++i) squares += (p[i] - mean) * (p[i] - mean);
    const double inverse = 1.0 / std::sqrt(squares / static_cast<double>(n) + epsilon);
    for (std::size_t i = 0; i < n; ++i)
      p[i] = (p[i] - mean) * inverse * gamma[i] + (beta.empty() ? 0.0 : beta[i]);
  }
}

}  // namespace bertcl::ops
