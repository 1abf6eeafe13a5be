// SPDX-License-Identifier: Apache-2.0
// The cost of each quantized op, as the error of the model's outputs.
#include "quant/analysis/sensitivity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "quant/analysis/output_error.hpp"

namespace bertcl::quant {
namespace {

using Ops = std::set<std::size_t>;

/// Errors of models with some of the ops, each measured once.
class PartErrors {
 public:
  PartErrors(const CalibratedModel& model, std::span<const Sample> samples)
      : model_(model), error_(model.options().model, model.device(), samples) {}

  double operator()(const Ops& quantized, bool unnormalize = false) {
    if (quantized.empty()) return 0.0;
    const auto known = known_.find({quantized, unnormalize});
    if (known != known_.end()) return known->second;
    return known_[{quantized, unnormalize}] = error_(model_.part(quantized, unnormalize));
  }

 private:
  const CalibratedModel& model_;
  OutputError error_;
  std::map<std::pair<Ops, bool>, double> known_;
};

std::vector<OpGroup> groups_of(const std::vector<QuantizedOp>& ops,
                               const std::function<std::string(const QuantizedOp&)>& name) {
  std::vector<OpGroup> groups;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const std::string wanted = name(ops[i]);
    if (wanted.empty()) continue;
    auto it =
        std::ranges::find_if(groups, [&](const OpGroup& group) { return group.name == wanted; });
    if (it == groups.end()) it = groups.insert(groups.end(), {wanted, {}, {}});
    it->ops.push_back(i);
  }
  return groups;
}

void sort_by_error(std::vector<OpGroup>& groups) {
  std::ranges::stable_sort(
      groups, [](const OpGroup& a, const OpGroup& b) { return a.errors.alone > b.errors.alone; });
}

}  // namespace

double Sensitivity::alone(std::size_t op, bool unnormalize) const {
  if (unnormalize && unnormalized)
    if (const auto it = unnormalized->alone.find(op); it != unnormalized->alone.end())
      return it->second;
  const auto it =
      std::ranges::find_if(ops, [&](const OpGroup& group) { return group.ops.front() == op; });
  return it->errors.alone;
}

std::vector<std::size_t> Sensitivity::order(bool unnormalize) const {
  std::vector<std::size_t> result;
  for (const OpGroup& group : ops) result.push_back(group.ops.front());
  std::ranges::stable_sort(result, [&](std::size_t a, std::size_t b) {
    return alone(a, unnormalize) > alone(b, unnormalize);
  });
  return result;
}

Sensitivity measure_sensitivity(const CalibratedModel& model, std::span<const Sample> samples,
                                const ModelProgress& progress) {
  const auto& ops = model.ops();
  Sensitivity result;
  result.samples = std::ssize(samples);
  for (const Sample& sample : samples) result.tokens += std::ssize(sample.ids);
  for (std::size_t i = 0; i < ops.size(); ++i) result.ops.push_back({ops[i].node, {i}, {}});
  result.kinds = groups_of(ops, [](const QuantizedOp& op) { return op.kind_name(); });
  result.layers = groups_of(ops, [](const QuantizedOp& op) {
    return op.layer ? fmt::format("layer {}", *op.layer) : "";
  });

  PartErrors error(model, samples);
  Ops all;
  for (std::size_t i = 0; i < ops.size(); ++i) all.insert(i);
  result.all = error(all);
  Ops after_softmax;
  if (model.can_unnormalize())
    for (std::size_t i = 0; i < ops.size(); ++i)
      if (ops[i].kind == OpKind::context) after_softmax.insert(i);
  const std::size_t total =
      2 * (ops.size() + result.kinds.size() + result.layers.size()) + 1 + after_softmax.size();
  std::size_t done = 1;
  const auto report = [&] {
    if (progress) progress(done++, total);
  };
  report();
  for (auto* groups : {&result.ops, &result.kinds, &result.layers})
    for (OpGroup& group : *groups) {
      const Ops alone(group.ops.begin(), group.ops.end());
      Ops rest = all;
      for (const std::size_t op : group.ops) rest.erase(op);
      group.errors.alone = error(alone);
      report();
      group.errors.without = error(rest);
      report();
    }
  if (!after_softmax.empty()) result.unnormalized.emplace().all = error(all, true);
  for (const std::size_t op : after_softmax) {
    result.unnormalized->alone[op] = error({op}, true);
    report();
  }
  sort_by_error(result.ops);
  sort_by_error(result.kinds);
  return result;
}

}  // namespace bertcl::quant
