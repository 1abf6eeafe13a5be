// SPDX-License-Identifier: Apache-2.0
// Sequences without padding as what a plan takes, and outputs without padding.
#include "runtime/sequences.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "bertcl/error.hpp"
#include "ir/input_role.hpp"

namespace bertcl::runtime {
namespace {

using Offsets = std::span<const std::int64_t>;

std::int64_t length(Offsets offsets, std::size_t i) { return offsets[i + 1] - offsets[i]; }

bool has_mask(const plan::Plan& plan) {
  return std::ranges::any_of(plan.model_inputs, [](const ir::Port& port) {
    return ir::role_of_input(port.name) == ir::InputRole::mask;
  });
}

std::int64_t count(Offsets offsets) { return std::ssize(offsets) - 1; }

std::int64_t longest(Offsets offsets) {
  std::int64_t most = 0;
  for (std::size_t i = 0; i + 1 < offsets.size(); ++i) most = std::max(most, length(offsets, i));
  return most;
}

/// The second extent of padded inputs: that of the file where it is fixed.
std::int64_t columns(const plan::Plan& plan, Offsets offsets) {
  const ir::Shape& shape = ids_of(plan).type.shape;
  const std::int64_t seq = longest(offsets);
  if (shape[0].is_constant() && shape[0].constant() != count(offsets))
    throw Error(fmt::format("the model takes {} sequences at a time, {} were given",
                            shape[0].constant(), count(offsets)));
  if (!shape[1].is_constant()) return seq;
  if (seq > shape[1].constant())
    throw Error(fmt::format("got a sequence of {} tokens, the model takes at most {}", seq,
                            shape[1].constant()));
  return shape[1].constant();
}

/// [batch, seq]: `at(token, place)` for each token, `padding` after them.
template <class At>
ir::Tensor pad(Offsets offsets, std::int64_t seq, const At& at, std::int64_t padding = 0) {
  std::vector<std::int64_t> values(count(offsets) * seq, padding);
  for (std::size_t i = 0; i + 1 < offsets.size(); ++i)
    for (std::int64_t place = 0; place < length(offsets, i); ++place)
      values[i * static_cast<std::size_t>(seq) + static_cast<std::size_t>(place)] =
          at(static_cast<std::size_t>(offsets[i] + place), place);
  return ir::Tensor::of<std::int64_t>({count(offsets), seq}, std::move(values));
}

}  // namespace

const ir::Port* find_ids(const plan::Plan& plan) {
  const auto& inputs = plan.model_inputs;
  const auto found = std::ranges::find_if(
      inputs, [](const ir::Port& port) { return ir::is_token_ids(port.name, port.type); });
  return found == inputs.end() ? nullptr : &*found;
}

const ir::Port& ids_of(const plan::Plan& plan) {
  if (const ir::Port* ids = find_ids(plan)) return *ids;
  throw Error("the model has no input of token ids [batch, seq]; run it with tensors");
}

std::int64_t longest_sequence(const plan::Plan& plan) {
  const ir::Port* ids = find_ids(plan);
  const std::int64_t fixed =
      ids && ids->type.shape[1].is_constant() ? ids->type.shape[1].constant() : 0;
  return fixed == 0 || plan.max_positions == 0 ? std::max(fixed, plan.max_positions)
                                               : std::min(fixed, plan.max_positions);
}

bool ignores_padding(const plan::Plan& plan) {
  return has_mask(plan) &&
         (plan.compared_pad_ids.empty() ||
          std::ranges::count(plan.compared_pad_ids, plan.pad_token_id.value_or(0)) > 0);
}

void check_sequence_offsets(std::span<const std::int64_t> offsets, std::int64_t tokens) {
  if (offsets.size() == 1 && offsets.front() == 0 && tokens == 0)
    throw Error("no sequences were given");
  if (offsets.size() < 2 || offsets.front() != 0 || offsets.back() != tokens)
    throw Error(fmt::format(
        "the offsets of sequences must begin with 0 and end with the number of ids, {}", tokens));
  for (std::size_t i = 0; i + 1 < offsets.size(); ++i)
    if (length(offsets, i) <= 0)
      throw Error(fmt::format(
          "sequence {} has {} tokens: offsets must ascend, and each sequence needs a token", i,
          length(offsets, i)));
  ops::check_tokens(tokens);
}

void check(const Sequences& s) {
  check_sequence_offsets(s.offsets, std::ssize(s.ids));
  if (!s.token_type_ids.empty() && s.token_type_ids.size() != s.ids.size())
    throw Error(fmt::format("token_type_ids has {} elements, ids has {}", s.token_type_ids.size(),
                            s.ids.size()));
}

bool takes_packed(const plan::Plan& plan) {
  const auto has = [&](plan::InputKind kind) {
    return std::ranges::any_of(plan.inputs, [&](const auto& in) { return in.kind == kind; });
  };
  const ir::Port* ids = find_ids(plan);
  return ids && plan.padding_reader.empty() && !has(plan::InputKind::dense) &&
         std::ranges::any_of(plan.inputs, [&](const plan::Input& in) {
           return in.kind == plan::InputKind::packed_ids && in.source == ids->name;
         });
}

PackedShape packed_shape(const plan::Plan& plan, std::span<const std::int64_t> offsets) {
  PackedShape result;
  ops::Packing& packing = result.packing;
  packing.batch = count(offsets);
  packing.seq = columns(plan, offsets);
  packing.longest = longest(offsets);
  packing.seq_offsets.assign(offsets.begin(), offsets.end());  // check_sequence_offsets(): they fit
  const auto tokens = static_cast<std::size_t>(offsets.back());
  packing.key_mask.assign(tokens, 1);
  packing.positions.reserve(tokens);
  for (std::size_t i = 0; i + 1 < offsets.size(); ++i)
    for (std::int64_t place = 0; place < length(offsets, i); ++place)
      packing.positions.push_back(static_cast<std::int32_t>(place));
  for (const ir::Port& port : plan.model_inputs)
    result.inputs.emplace(port.name, ir::Sizes{packing.batch, packing.seq});
  check_length(plan, packing);
  return result;
}

void check_can_pad(const plan::Plan& plan, std::int64_t seq) {
  const char* length = ids_of(plan).type.shape[1].is_constant() ? "that" : "equal";
  if (!has_mask(plan))
    throw Error(
        fmt::format("the model has no attention mask, so sequences cannot be padded to {} tokens; "
                    "give sequences of {} length",
                    seq, length));
  if (!ignores_padding(plan) && !plan.pad_token_id)
    throw Error(fmt::format(
        "the model finds padding by token id {}, and no pad_token_id is known, so sequences cannot "
        "be padded to {} tokens; put the model's config.json beside it, or give sequences of {} "
        "length",
        fmt::join(plan.compared_pad_ids, ", "), seq, length));
}

Tensors padded(const plan::Plan& plan, const Sequences& s) {
  const ir::Port& ids = ids_of(plan);
  const std::int64_t seq = columns(plan, s.offsets);
  const auto value = [&](ir::InputRole role) {
    switch (role) {
      case ir::InputRole::mask:
        return pad(s.offsets, seq, [](std::size_t, std::int64_t) { return std::int64_t{1}; });
      case ir::InputRole::token_types:
        return pad(s.offsets, seq, [&](std::size_t token, std::int64_t) {
          return s.token_type_ids.empty() ? std::int64_t{0} : s.token_type_ids[token];
        });
      case ir::InputRole::positions:
        return pad(s.offsets, seq, [](std::size_t, std::int64_t place) { return place; });
      case ir::InputRole::example_ids:
        return ir::Tensor::zeros(ir::DType::i64, {count(s.offsets)});
      case ir::InputRole::ids:
        break;
    }
    return pad(
        s.offsets, seq, [&](std::size_t token, std::int64_t) { return s.ids[token]; },
        plan.pad_token_id.value_or(0));
  };
  Tensors tensors;
  for (const ir::Port& port : plan.model_inputs) {
    const ir::InputRole role = ir::role_of_input(port.name);
    if (role == ir::InputRole::ids && &port != &ids)
      throw Error(
          fmt::format("input '{}' {} is not token ids, token types, mask or positions; run the "
                      "model with tensors",
                      port.name, ir::str(port.type)));
    tensors.emplace(port.name, value(role));
  }
  if (s.offsets.back() != count(s.offsets) * seq) check_can_pad(plan, seq);
  return tensors;
}

bool has_padding(const plan::Plan& plan, std::size_t output) {
  const ir::Port* ids = find_ids(plan);
  const ir::Shape& shape = plan.model_outputs[output].type.shape;
  return ids && shape.size() >= 2 && shape[0] == ids->type.shape[0] &&
         shape[1] == ids->type.shape[1] &&
         (!shape[1].is_constant() || plan.outputs[output].of_tokens);
}

ir::Tensor without_padding(const ir::Tensor& padded, std::span<const std::int32_t> seq_offsets) {
  ir::Sizes sizes(padded.shape().begin() + 1, padded.shape().end());
  const auto seq = static_cast<std::size_t>(sizes[0]);
  sizes[0] = 1;
  const std::size_t row =
      static_cast<std::size_t>(ir::element_count(sizes)) * ir::size_of(padded.dtype());
  sizes[0] = seq_offsets.back();
  ir::Tensor result = ir::Tensor::zeros(padded.dtype(), sizes);
  const auto from = padded.bytes();
  auto to = result.mutable_bytes().begin();
  for (std::size_t i = 0; i + 1 < seq_offsets.size(); ++i)
    to = std::ranges::copy(
             from.subspan(i * seq * row,
                          static_cast<std::size_t>(seq_offsets[i + 1] - seq_offsets[i]) * row),
             to)
             .out;
  return result;
}

}  // namespace bertcl::runtime
