// SPDX-License-Identifier: Apache-2.0
// The inputs of a run, checked against the plan.
#include "runtime/inputs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "bertcl/error.hpp"
#include "ir/input_role.hpp"
#include "ir/port.hpp"
#include "kernels/shared_numbers.hpp"
#include "runtime/sequences.hpp"

namespace bertcl::runtime {
namespace {

const ir::Port* find_port(const plan::Plan& plan, const std::string& name) {
  const auto found = std::ranges::find_if(plan.model_inputs,
                                          [&](const ir::Port& port) { return port.name == name; });
  return found == plan.model_inputs.end() ? nullptr : &*found;
}

/// Token types and the mask have defaults. Where no packing knows them, or the shape of the batch
/// is read off them, their names and the shape of the ids tell them.
bool may_be_absent(const plan::Plan& plan, const ir::Port& port) {
  const std::string& name = port.name;
  const ir::InputRole role = ir::role_of_input(name);
  const ir::Port* ids = find_ids(plan);
  const bool is_like_ids = (role == ir::InputRole::mask || role == ir::InputRole::token_types) &&
                           ids && port.type.shape == ids->type.shape;
  bool has_default = is_like_ids;
  for (const plan::Input& in : plan.inputs) {
    if (in.source != name) continue;
    if (in.kind == plan::InputKind::packed_ids) return is_like_ids;
    has_default |=
        in.kind == plan::InputKind::packed_token_types || in.kind == plan::InputKind::key_mask;
  }
  return has_default;
}

/// Sizes of symbols, and which input gave each.
struct GivenSizes {
  ir::Bindings sizes;
  std::map<std::string, std::string, std::less<>> given_by;

  void add(const std::string& symbol, std::int64_t size, const std::string& input) {
    const auto [it, added] = sizes.emplace(symbol, size);
    if (added)
      given_by[symbol] = input;
    else if (it->second != size)
      throw Error(fmt::format("input '{}' has {} = {} but input '{}' has {}", input, symbol, size,
                              given_by[symbol], it->second));
  }
};

void bind_shape(const ir::Port& port, const ir::Sizes& given, GivenSizes& sizes) {
  const ir::Shape& shape = port.type.shape;
  bool fits = given.size() == shape.size();
  for (std::size_t i = 0; fits && i < shape.size(); ++i)
    fits = !shape[i].is_constant() || shape[i].constant() == given[i];
  if (!fits)
    throw Error(fmt::format("input '{}' has shape [{}], expected {}", port.name,
                            fmt::join(given, ", "), ir::str(shape)));
  if (std::ranges::any_of(given, [](std::int64_t n) { return n > kernels::kMaxElements; }))
    throw Error(
        fmt::format("input '{}' has shape [{}]; extents are limited to {}; use a smaller batch",
                    port.name, fmt::join(given, ", "), kernels::kMaxElements),
        ErrorCode::out_of_memory);
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i].is_constant()) continue;
    const auto symbols = shape[i].symbols();
    if (symbols.size() == 1 && shape[i] == ir::Dim::symbol(symbols[0]))
      sizes.add(symbols[0], given[i], port.name);
  }
}

void check_at_most(const ir::Dim& size, const ir::Dim& limit, const ir::Bindings& sizes) {
  const std::int64_t a = size.evaluate(sizes), b = limit.evaluate(sizes);
  if (a <= b) return;
  constexpr std::string_view kRequires = "the model requires {} to be at {} {}, the inputs give {}";
  if (size.is_constant()) throw Error(fmt::format(kRequires, limit.str(), "least", a, b));
  throw Error(fmt::format(kRequires, size.str(), "most", limit.str(), a) +
              (limit.is_constant() ? "" : fmt::format(" and {}", b)));
}

}  // namespace

void check_names(const plan::Plan& plan, const Tensors& inputs) {
  std::vector<std::string> known;
  for (const ir::Port& port : plan.model_inputs) {
    known.push_back(port.name);
    if (!inputs.contains(port.name) && !may_be_absent(plan, port))
      throw Error(fmt::format("input '{}' ({}) is missing", port.name, ir::str(port.type)));
  }
  for (const auto& [name, tensor] : inputs)
    if (!find_port(plan, name))
      throw Error(fmt::format("the model has no input '{}'; its inputs are {}", name,
                              fmt::join(known, ", ")));
}

void check_outputs(const plan::Plan& plan, const OutputNames& names) {
  for (const std::string& name : names) {
    if (std::ranges::find(plan.outputs, name, &plan::Output::name) != plan.outputs.end()) continue;
    std::vector<std::string> known;
    for (const plan::Output& out : plan.outputs) known.push_back(out.name);
    throw Error(fmt::format("the model has no output '{}'; its outputs are {}", name,
                            fmt::join(known, ", ")));
  }
}

Shapes shapes_of(const Tensors& inputs) {
  Shapes shapes;
  for (const auto& [name, tensor] : inputs) shapes.emplace(name, tensor.shape());
  return shapes;
}

const ir::Sizes& batch_shape(const plan::Plan& plan, const Shapes& inputs,
                             const std::string& source) {
  auto given = inputs.find(source);
  const ir::Port* ids = find_ids(plan);
  if (given == inputs.end() && ids) given = inputs.find(ids->name);
  if (given == inputs.end()) throw Error(fmt::format("input '{}' is missing", source));
  return given->second;
}

ir::Bindings bind_shapes(const plan::Plan& plan, const Shapes& inputs) {
  GivenSizes given;
  for (const auto& [name, shape] : inputs) bind_shape(*find_port(plan, name), shape, given);
  for (const auto& [a, b] : plan.equal_sizes)
    if (a.evaluate(given.sizes) != b.evaluate(given.sizes))
      throw Error(fmt::format("the model requires {} and {} to be equal, the inputs give {} and {}",
                              a.str(), b.str(), a.evaluate(given.sizes), b.evaluate(given.sizes)));
  for (const auto& [size, limit] : plan.at_most) check_at_most(size, limit, given.sizes);
  return std::move(given.sizes);
}

ir::Sizes synthetic_extents(const ir::Shape& shape, std::int64_t tokens, ir::Bindings& sizes) {
  for (std::size_t axis = 0; axis < shape.size(); ++axis)
    for (const std::string& symbol : shape[axis].symbols())
      sizes.emplace(symbol, axis == 0 ? 1 : tokens);
  return ir::evaluate(shape, sizes);
}

ir::Tensor without_loss(const ir::Tensor& given, ir::DType wanted, const std::string& name) {
  if (ir::is_float(given.dtype()) && !ir::is_float(wanted))
    throw Error(fmt::format("input '{}' is {}, expected {}", name, ir::name_of(given.dtype()),
                            ir::name_of(wanted)));
  ir::Tensor result = given.converted(wanted);
  if (given.dtype() == wanted || ir::is_float(wanted)) return result;
  // Changes of sign show in doubles, others beyond 53 bits in integers.
  const auto doubles = given.to_doubles(), made_doubles = result.to_doubles();
  const auto ints = given.to_ints(), made_ints = result.to_ints();
  for (std::size_t i = 0; i < ints.size(); ++i)
    if (ints[i] != made_ints[i] || doubles[i] != made_doubles[i])
      throw Error(fmt::format("input '{}' holds {} at element {}, which {} cannot hold", name,
                              ints[i], i, ir::name_of(wanted)));
  return result;
}

std::vector<std::int64_t> integers_of(const plan::Plan& plan, const Tensors& inputs,
                                      const std::string& name) {
  const auto input = inputs.find(name);
  if (input == inputs.end()) return {};
  const ir::Tensor& tensor = input->second;
  if (!ir::is_float(tensor.dtype())) return tensor.to_ints();
  if (!ir::is_float(find_port(plan, name)->type.dtype))
    throw Error(
        fmt::format("input '{}' is {}, expected integers", name, ir::name_of(tensor.dtype())));
  std::vector<std::int64_t> integers;
  for (const double v : tensor.to_doubles()) {
    if (v != std::trunc(v) || std::abs(v) > std::numeric_limits<std::int32_t>::max())
      throw Error(
          fmt::format("input '{}' holds {} at element {}; ids and masks must be integers, a "
                      "mask is 1 for tokens and 0 for padding",
                      name, v, integers.size()));
    integers.push_back(static_cast<std::int64_t>(v));
  }
  return integers;
}

std::vector<std::int64_t> mask_of(const plan::Plan& plan, const Tensors& inputs) {
  std::vector<std::int64_t> values = integers_of(plan, inputs, plan.mask_input);
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values[i] != 0 && values[i] != 1)
      throw Error(
          fmt::format("input '{}' holds {} at element {}; a mask is 1 for tokens and 0 for "
                      "padding",
                      plan.mask_input, values[i], i));
  return values;
}

void check_length(const plan::Plan& plan, const ops::Packing& packing) {
  if (plan.max_positions > 0 && packing.longest > plan.max_positions)
    throw Error(fmt::format("got a sequence of {} tokens, the model's position table ends at {}",
                            packing.longest, plan.max_positions));
  if (plan.max_keys > 0 && packing.longest > plan.max_keys)
    throw Error(
        fmt::format("got a sequence of {} tokens, int8 attention sums at most {} in int32 without "
                    "overflow; use shorter sequences",
                    packing.longest, plan.max_keys));
}

}  // namespace bertcl::runtime
