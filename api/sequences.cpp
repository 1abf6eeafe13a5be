// SPDX-License-Identifier: Apache-2.0
// Packed sequences as the padded tensors of an ONNX graph, and padded results as packed ones.
#include "api/sequences.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "bertcl/error.hpp"
#include "ir/input_role.hpp"

namespace bertcl {
namespace {

std::int64_t length(const Sequences& s, std::size_t i) { return s.offsets[i + 1] - s.offsets[i]; }

std::int64_t longest(const Sequences& s) {
  std::int64_t most = 0;
  for (std::size_t i = 0; i + 1 < s.offsets.size(); ++i) most = std::max(most, length(s, i));
  return most;
}

/// [batch, seq]: `at(token, place)` for each token, `padding` after them.
template <class At>
ir::Tensor pad(const Sequences& s, std::int64_t seq, std::int64_t padding, const At& at) {
  std::vector<std::int64_t> values(static_cast<std::size_t>(s.count() * seq), padding);
  for (std::size_t i = 0; i + 1 < s.offsets.size(); ++i)
    for (std::int64_t place = 0; place < length(s, i); ++place)
      values[i * static_cast<std::size_t>(seq) + static_cast<std::size_t>(place)] =
          at(static_cast<std::size_t>(s.offsets[i] + place), place);
  return ir::Tensor::of<std::int64_t>({s.count(), seq}, std::move(values));
}

const plan::Port* ids_of(const std::vector<plan::Port>& inputs) {
  const auto found = std::find_if(inputs.begin(), inputs.end(), [](const plan::Port& port) {
    return ir::role_of_input(port.name) == ir::InputRole::ids && port.type.shape.size() == 2 &&
           !ir::is_float(port.type.dtype);
  });
  return found == inputs.end() ? nullptr : &*found;
}

}  // namespace

void check(const Sequences& s) {
  if (s.offsets.size() < 2 || s.offsets.front() != 0 ||
      s.offsets.back() != static_cast<std::int64_t>(s.ids.size()))
    throw Error(
        fmt::format("sequence offsets must run from 0 to the number of ids, {}", s.ids.size()));
  for (std::size_t i = 0; i + 1 < s.offsets.size(); ++i)
    if (length(s, i) <= 0)
      throw Error(
          fmt::format("sequence {} ends at {} but begins at {}; it needs at least one token", i,
                      s.offsets[i + 1], s.offsets[i]));
  if (!s.types.empty() && s.types.size() != s.ids.size())
    throw Error(fmt::format("got {} segments for {} ids", s.types.size(), s.ids.size()));
}

runtime::Tensors padded(const Sequences& s, const std::vector<plan::Port>& inputs) {
  const plan::Port* ids = ids_of(inputs);
  if (!ids) throw Error("the model has no input of token ids [batch, seq]");
  std::int64_t seq = longest(s);
  if (const ir::Dim& fixed = ids->type.shape[1]; fixed.is_constant())
    seq = std::max(seq, fixed.constant());
  const auto value = [&](ir::InputRole role) {
    switch (role) {
      case ir::InputRole::mask:
        return pad(s, seq, 0, [](std::size_t, std::int64_t) { return std::int64_t{1}; });
      case ir::InputRole::token_types:
        return pad(s, seq, 0, [&](std::size_t token, std::int64_t) {
          return s.types.empty() ? std::int64_t{0} : s.types[token];
        });
      case ir::InputRole::positions:
        return pad(s, seq, 0, [](std::size_t, std::int64_t place) { return place; });
      case ir::InputRole::example_ids:
        return ir::Tensor::zeros(ir::DType::i64, {s.count()});
      case ir::InputRole::ids:
        break;
    }
    return pad(s, seq, 0, [&](std::size_t token, std::int64_t) { return s.ids[token]; });
  };
  runtime::Tensors tensors;
  for (const plan::Port& port : inputs) {
    const ir::InputRole role = ir::role_of_input(port.name);
    if (role == ir::InputRole::ids && &port != ids)
      throw Error(fmt::format(
          "input '{}' {} is not token ids, mask, segments or positions; run the model on tensors",
          port.name, ir::str(port.type)));
    tensors.emplace(port.name, value(role));
  }
  return tensors;
}

runtime::Tensors packed(runtime::Tensors outputs, const Sequences& s,
                        const std::vector<plan::Port>& inputs,
                        const std::vector<plan::Port>& outputs_of_model) {
  const ir::Shape& batch = ids_of(inputs)->type.shape;
  for (const plan::Port& port : outputs_of_model) {
    const ir::Shape& shape = port.type.shape;
    if (shape.size() < 2 || shape[0] != batch[0] || shape[1] != batch[1]) continue;
    ir::Tensor& output = outputs.at(port.name);
    const std::int64_t seq = output.shape()[1];
    ir::Sizes sizes(output.shape().begin() + 1, output.shape().end());
    sizes[0] = s.offsets.back();
    ir::Tensor result = ir::Tensor::zeros(output.dtype(), sizes);
    const auto row = static_cast<std::size_t>(
        seq == 0 ? 0 : ir::element_count(output.shape()) / (s.count() * seq));
    const std::size_t bytes = row * ir::size_of(output.dtype());
    const auto from = output.bytes();
    const auto to = result.mutable_bytes();
    for (std::size_t i = 0; i + 1 < s.offsets.size(); ++i)
      std::ranges::copy(
          from.subspan(i * static_cast<std::size_t>(seq) * bytes,
                       static_cast<std::size_t>(length(s, i)) * bytes),
          to.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(s.offsets[i]) * bytes));
    output = std::move(result);
  }
  return outputs;
}

}  // namespace bertcl
