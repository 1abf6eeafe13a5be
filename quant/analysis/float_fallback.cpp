// SPDX-License-Identifier: Apache-2.0
// Leaves as few ops in float as keep the quality loss within a bound.
#include "quant/analysis/float_fallback.hpp"

#include "support/fail.hpp"

namespace bertcl::quant {

FloatFallback find_float_fallback(const CalibratedModel& model, const RankOps& rank_ops,
                                  double max_drop, const MeasureDrop& measure_drop,
                                  const std::function<void(const FallbackTrial&)>& progress) {
  FloatFallback result;
  bool unnormalize = false;
  std::vector<std::size_t> order = rank_ops(unnormalize);
  // Measures with the first `left` ops in float; keeps what holds.
  const auto holds = [&](std::size_t left) {
    const auto first_quantized = order.begin() + static_cast<std::ptrdiff_t>(left);
    const double drop = measure_drop(model.part({first_quantized, order.end()}, unnormalize));
    result.steps.push_back({left, unnormalize, drop});
    if (progress) progress(result.steps.back());
    if (!(drop <= max_drop)) return false;
    result.float_ops.assign(order.begin(), first_quantized);
    result.unnormalized = unnormalize;
    result.drop = drop;
    return true;
  };
  if (holds(0)) return result;
  if (model.can_unnormalize()) {
    unnormalize = true;
    if (holds(0)) return result;
    unnormalize = result.steps[1].drop < result.steps[0].drop;
    order = rank_ops(unnormalize);
  }
  if (!holds(order.size()))
    fail("the drop cannot be kept within {}: with all {} ops in float it is already {}", max_drop,
         order.size(), result.steps.back().drop);
  std::size_t fails = 0, works = order.size();
  while (works - fails > 1) {
    const std::size_t middle = fails + (works - fails) / 2;
    (holds(middle) ? works : fails) = middle;
  }
  return result;
}

}  // namespace bertcl::quant
