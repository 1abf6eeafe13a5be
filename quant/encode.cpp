// SPDX-License-Identifier: Apache-2.0
// Gives each tensor of a placement its scale, zero point and, where constant, its integers.
#include "quant/encode.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bertcl/error.hpp"

namespace bertcl::quant {
namespace {

/// An operand that cannot be quantized, and why: its site stays in float.
struct Refusal {
  std::string reason;
};

Encoding encode_constant(Constants& constants, const Operand& operand, Scheme activations) {
  ir::Tensor value;
  try {
    value = constants.value(operand.tensor);
  } catch (const Error& e) {
    throw Refusal{e.what()};
  }
  if (value.dtype() != ir::DType::f32)
    throw Refusal{fmt::format("constant '{}' is {}; models that compute in f32 are quantized",
                              operand.tensor, ir::name_of(value.dtype()))};
  Encoding e;
  e.role = operand.role;
  try {
    e.range = range_of(value, operand.tensor);
    const auto rank = static_cast<int>(value.shape().size());
    e.constant =
        operand.role == Role::weight && rank >= 2
            ? quantize_per_channel(value, rank - 1, operand.tensor)
            : quantize_per_tensor(
                  value, operand.role == Role::weight ? Scheme{ir::DType::i8, true} : activations,
                  operand.tensor);
  } catch (const Error& error) {
    throw Refusal{error.what()};
  }
  if (!e.constant.scales.empty())
    e.parameters = {e.constant.scales.front(), e.constant.zero_points.front()};
  return e;
}

Encoding encode_activation(const Operand& operand, const std::string& node, const Ranges& ranges,
                           Scheme activations) {
  const auto it = ranges.find(operand.tensor);
  if (it == ranges.end())
    throw Error(
        fmt::format("tensor '{}', read by node '{}', has no range: calibration did not "
                    "observe it, or the table does not name it; exclude the node to leave it in "
                    "float",
                    operand.tensor, node));
  Encoding e;
  e.range = it->second;
  e.parameters = parameters_of(e.range, activations);
  return e;
}

/// The encodings of a site's operands that are not in `all` yet.
Encodings encode_site(const Site& site, const std::string& node, const Encodings& all,
                      Constants& constants, const Ranges& ranges, Scheme activations) {
  Encodings added;
  for (const Operand& operand : site.operands) {
    const auto key = std::pair(operand.tensor, operand.role);
    if (added.contains(key)) continue;
    const auto known = all.find(key);
    const Encoding e = known != all.end() ? known->second
                       : operand.role == Role::activation
                           ? encode_activation(operand, node, ranges, activations)
                           : encode_constant(constants, operand, activations);
    if (std::max(-e.range.low, e.range.high) > kLargestQuantized)
      throw Refusal{
          fmt::format("tensor '{}' takes values from {} to {}, as masks do; the scale "
                      "would leave nothing for the others",
                      operand.tensor, e.range.low, e.range.high)};
    if (known == all.end()) added.emplace(key, e);
  }
  return added;
}

}  // namespace

Encodings encode(Placement& placement, const GraphIndex& index, Constants& constants,
                 const Ranges& ranges, Scheme activations) {
  Encodings all;
  std::vector<Site> sites;
  for (Site& site : placement.sites) {
    const auto& node = index.node(site.node);
    try {
      all.merge(encode_site(site, label_of(node), all, constants, ranges, activations));
    } catch (const Refusal& refusal) {
      placement.left.push_back({label_of(node), node.op_type(), refusal.reason});
      continue;
    }
    for (const Operand& operand : site.operands) {
      auto& readers = all.at({operand.tensor, operand.role}).nodes;
      if (readers.empty() || readers.back() != label_of(node)) readers.push_back(label_of(node));
    }
    sites.push_back(std::move(site));
  }
  placement.sites = std::move(sites);
  if (placement.sites.empty())
    throw Error(fmt::format("nothing to quantize; for example node '{}' ({}): {}",
                            placement.left.front().node, placement.left.front().op,
                            placement.left.front().reason));
  return all;
}

}  // namespace bertcl::quant
