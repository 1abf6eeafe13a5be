// SPDX-License-Identifier: Apache-2.0
// Runs what makes a value with small masks.
#include "passes/padding_values.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>

#include "bertcl/error.hpp"
#include "ops/interpret.hpp"
#include "ops/recognize_by_value.hpp"

namespace bertcl::passes {
namespace {

constexpr std::int64_t kMaxTrialElements = 1 << 22;  // elements
constexpr double kMaskLow = -9999.0, kMaskHigh = 9999.0;

/// The token at place 0 of an axis in that order; empty if they do not follow one another.
std::optional<std::int64_t> first_token(const std::string& order) {
  if (order.empty()) return 0;
  long long first = 0;
  int read = 0;
  if (std::sscanf(order.c_str(), "[%lld::1]%n", &first, &read) != 1 || first < 0) return {};
  return read == static_cast<int>(order.size()) ? std::optional(std::int64_t{first}) : std::nullopt;
}

void narrow(PaddingValue& found, double value) {
  found.zero = found.zero && value == 0.0;
  found.nonzero = found.nonzero && !std::isnan(value) && value != 0.0;
  found.low = found.low && value <= kMaskLow;
  found.high = found.high && value >= kMaskHigh;
  found.finite = found.finite && std::isfinite(value);
}

}  // namespace

const std::vector<PaddingValues::Trial>& PaddingValues::trials_of(ir::Value* v) {
  const auto [it, is_new] = trials_.try_emplace(v);
  std::vector<Trial>& trials = it->second;
  if (!is_new) return trials;
  const auto slice = ops::subgraph_of(v);
  const auto seqs = slice ? ops::seqs_to_try(slice->nodes, ops::kMaxMaskSeq) : std::nullopt;
  if (!seqs) return trials;
  for (const std::int64_t seq : *seqs) {
    const ir::Bindings sizes = ops::trial_sizes(graph_, seq);
    try {
      if (ir::element_count(ir::evaluate(v->type.shape, sizes)) > kMaxTrialElements)
        throw Error("too large a trial");
      std::vector<ir::Tensor> masks(1);
      if (mask_) {
        const ir::Sizes shape = ir::evaluate(mask_->type.shape, sizes);
        masks = ops::trial_masks(shape, mask_->type.dtype, std::max(seq, shape[1]));
      }
      for (const ir::Tensor& mask : masks) {
        ops::Known known;
        if (mask_) known.emplace(mask_, mask);
        trials.push_back({mask, ops::evaluate_subgraph(v, std::move(known), sizes), sizes});
      }
    } catch (const Error&) {  // too long for the graph, or without a value on the host
      if (seq > ops::kShortSeq) continue;
      trials.clear();
      break;
    }
  }
  return trials;
}

PaddingValue PaddingValues::of(ir::Value* v, const TokenAxis* axis) {
  PaddingValue found{true, true, true, true, true};
  bool is_seen = false;
  if (!axis) {
    for (const Trial& trial : trials_of(v))
      for (const double value : trial.result.to_doubles()) is_seen = true, narrow(found, value);
    return is_seen ? found : PaddingValue{};
  }
  const auto first = first_token(axis->order);
  const ir::Shape& shape = v->type.shape;
  if (!mask_ || !first || shape.empty()) return {};
  const bool batch_first = ir::Dim::divide(shape[0], mask_->type.shape[0]).has_value();
  const bool batch_second = shape.size() > 1 && shape[1] == mask_->type.shape[0];
  if (!batch_first && !batch_second) return {};
  for (const Trial& trial : trials_of(v)) {
    const auto values = trial.result.to_doubles(), mask = trial.mask.to_doubles();
    const std::int64_t batch = trial.mask.shape()[0], seq = trial.mask.shape()[1];
    const std::int64_t stride = axis->stride.evaluate(trial.sizes),
                       extent = axis->extent.evaluate(trial.sizes);
    const std::int64_t of_sequence =
        std::ssize(values) / batch / (batch_first ? 1 : trial.result.shape()[0]);
    if (batch_first && stride * extent > of_sequence) return {};
    for (std::int64_t e = 0; e < std::ssize(values); ++e) {
      const std::int64_t b = e / of_sequence % batch, token = e / stride % extent + *first;
      if (token >= seq) return {};
      if (mask[b * seq + token] != 0.0) continue;
      is_seen = true;
      narrow(found, values[e]);
    }
  }
  return is_seen ? found : PaddingValue{};
}

}  // namespace bertcl::passes
