// SPDX-License-Identifier: Apache-2.0
// Leaves as few ops in float as keep the quality loss within a bound.
#include "quant/analysis/float_fallback.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "support/fail.hpp"

namespace bertcl::quant {

namespace {

/// `found` leaves all ops in float.
[[noreturn]] void refuse_float_model(const FloatFallback& found, const DropBound& bound) {
  const std::size_t ops = found.float_ops.size();
  const auto quantizes = [&](const FallbackTrial& step) { return step.float_ops < ops; };
  auto least = std::ranges::find_if(found.steps, quantizes);
  for (auto step = least; step != found.steps.end(); ++step)
    if (quantizes(*step) && !(step->drop >= least->drop)) least = step;
  fail(
      "nothing to quantize with the {} within {}: the least is {} with {} of {} ops in float; "
      "allow more, or use the float model",
      bound.name, bound.text(bound.most), bound.text(least->drop), least->float_ops, ops);
}

}  // namespace

std::string DropBound::text(double value) const {
  return unit.empty() ? fmt::format("{:.4g}", value) : fmt::format("{:.4g} {}", value, unit);
}

FloatFallback find_float_fallback(const CalibratedModel& model, const RankOps& rank_ops,
                                  const DropBound& bound, const MeasureDrop& measure_drop,
                                  const std::function<void(const FallbackTrial&)>& progress) {
  FloatFallback result;
  bool unnormalize = false;
  std::vector<std::size_t> order(model.ops().size());
  std::iota(order.begin(), order.end(), 0);  // any will do while no op is in float
  // Measures with the first `left` ops in float; keeps what holds.
  const auto holds = [&](std::size_t left) {
    const auto first_quantized = order.begin() + static_cast<std::ptrdiff_t>(left);
    const double drop = measure_drop(model.part({first_quantized, order.end()}, unnormalize));
    result.steps.push_back({left, unnormalize, drop});
    if (progress) progress(result.steps.back());
    if (!(drop <= bound.most)) return false;
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
  }
  order = rank_ops(unnormalize);
  if (!holds(order.size()))
    fail("the {} cannot be kept within {}: with all {} ops in float it is already {}", bound.name,
         bound.text(bound.most), order.size(), bound.text(result.steps.back().drop));
  std::size_t fails = 0, works = order.size();
  while (works - fails > 1) {
    const std::size_t middle = fails + (works - fails) / 2;
    (holds(middle) ? works : fails) = middle;
  }
  if (result.float_ops.size() == order.size()) refuse_float_model(result, bound);
  return result;
}

}  // namespace bertcl::quant
