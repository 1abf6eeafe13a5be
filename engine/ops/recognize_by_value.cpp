// SPDX-License-Identifier: Apache-2.0
// Recognizes subgraphs by running them on the host with small inputs.
#include "ops/recognize_by_value.hpp"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <optional>
#include <set>

#include "bertcl/error.hpp"
#include "ops/interpret.hpp"

namespace bertcl::ops {
namespace {

constexpr std::size_t max_nodes = 400;  // no mask is longer; an encoder is
constexpr std::int64_t trial_batch = 2;
constexpr std::int64_t trial_seqs[] = {3, 4};
constexpr std::int64_t max_window = 1024;  // longer ones would make trials slow
// A file may fix the batch and the sequence; beyond these, trials would cost more than they gain.
constexpr std::int64_t max_inputs = 1 << 20, max_results = 1 << 24;  // elements

/// Graph inputs whose elements `value` depends on; empty if the slice is too long to be a mask.
std::optional<std::set<ir::Value*>> inputs_of(ir::Value* value) {
  std::set<ir::Value*> inputs;
  std::set<const ir::Node*> seen;
  std::vector<ir::Value*> open{value};
  while (!open.empty()) {
    ir::Value* v = open.back();
    open.pop_back();
    if (v->is_constant()) continue;
    if (!v->producer) {
      inputs.insert(v);
      continue;
    }
    if (!seen.insert(v->producer).second) continue;
    if (seen.size() > max_nodes) return std::nullopt;
    for (ir::Value* in : v->producer->inputs)
      if (in) open.push_back(in);
  }
  return inputs;
}

/// Sizes for the symbols of the graph's inputs: the first axis is the batch, the second the
/// sequence.
ir::Bindings sizes_of(const ir::Graph& graph, std::int64_t seq) {
  ir::Bindings sizes;
  for (const ir::Value* in : graph.inputs())
    for (std::size_t axis = 0; axis < 2 && axis < in->type.shape.size(); ++axis) {
      const ir::Dim& d = in->type.shape[axis];
      if (d.symbols().size() == 1) sizes.emplace(d.symbols()[0], axis == 0 ? trial_batch : seq);
    }
  return sizes;
}

/// True if a tensor of that shape has more elements; false where its size is not known.
bool is_larger(const ir::Shape& shape, const ir::Bindings& sizes, std::int64_t most) {
  try {
    double elements = 1.0;
    for (const ir::Dim& d : shape) elements *= static_cast<double>(d.evaluate(sizes));
    return elements > static_cast<double>(most);
  } catch (const Error&) {
    return false;
  }
}

/// The value for given inputs; empty if the slice cannot be evaluated.
std::optional<ir::Tensor> run(ir::Value* value, Known known, const ir::Bindings& sizes) {
  try {
    return evaluate_slice(value, std::move(known), sizes);
  } catch (const Error&) {
    return std::nullopt;
  }
}

using Mask = std::vector<std::int64_t>;  // [batch, seq]

/// Mask patterns: full rows, prefixes, holes, a first key that does not count. Rows without any key
/// are left out: exporters differ in what they do there.
std::vector<Mask> patterns(std::int64_t batch, std::int64_t seq) {
  std::vector<Mask> all;
  for (const unsigned bits : {0xffffffffu, 0x1u, 0x5u, 0xau, 0x3u, 0xeu}) {
    Mask m;
    for (std::int64_t b = 0; b < batch; ++b) {
      const unsigned row = b % 2 == 0 ? bits : (bits << 1) | 1u;
      for (std::int64_t s = 0; s < seq; ++s) m.push_back((row >> (s % 32)) & 1u);
    }
    all.push_back(std::move(m));
  }
  return all;
}

/// The largest number with which the slice compares something, or where Trilu cuts: a window may be
/// as wide. 0 if there is none; empty if no trial can be so long, but a sequence could.
std::optional<std::int64_t> largest_compared(ir::Value* value) {
  std::int64_t largest = 0;
  std::set<const ir::Node*> seen;
  std::vector<ir::Value*> open{value};
  while (!open.empty()) {
    const ir::Node* n = open.back()->producer;
    open.pop_back();
    if (!n || !seen.insert(n).second) continue;
    const bool compares = n->op == "Less" || n->op == "LessOrEqual" || n->op == "Greater" ||
                          n->op == "GreaterOrEqual";
    for (std::size_t i = 0; i < n->inputs.size(); ++i) {
      ir::Value* in = n->inputs[i];
      if (!in) continue;
      open.push_back(in);
      const bool counts = compares || (n->op == "Trilu" && i == 1);
      if (!counts || !in->is_constant() || in->constant->size() != 1) continue;
      const double number = std::abs(in->constant->to_doubles()[0]);
      if (number > max_window && number <= max_inputs) return std::nullopt;
      if (number <= max_window) largest = std::max(largest, static_cast<std::int64_t>(number));
    }
  }
  return largest;
}

/// How far from its row the first key counts, of a mask whose keys all do; 0 if all of them count.
std::int64_t window_of(const ir::Tensor& tensor, std::int64_t seq,
                       const std::function<bool(double, bool)>& element_fits) {
  const ir::Sizes& shape = tensor.shape();
  if (shape.size() != 4 || shape[2] != seq || shape[3] != seq) return 0;
  const auto values = tensor.to_doubles();
  std::int64_t first = 0;  // keys of row 0 that count
  while (first < seq && element_fits(values[static_cast<std::size_t>(first)], true)) ++first;
  return first == seq || first == 0 ? 0 : first - 1;
}

/// True if the mask tensor [batch, heads, rows, seq] says for every key what `mask` and the window
/// say; with `masks_rows`, that no key counts in rows that `mask` hides.
bool agrees(const ir::Tensor& tensor, const Mask& mask, std::int64_t window, std::int64_t batch,
            std::int64_t seq, const std::function<bool(double, bool)>& element_fits,
            bool masks_rows = false) {
  const ir::Sizes& shape = tensor.shape();
  if (shape.size() != 4 || shape[0] != batch || shape[3] != seq) return false;
  if (shape[2] != 1 && shape[2] != seq) return false;
  const auto values = tensor.to_doubles();
  const std::int64_t per_sequence = shape[1] * shape[2] * shape[3];
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::int64_t b = static_cast<std::int64_t>(i) / per_sequence;
    const std::int64_t key = static_cast<std::int64_t>(i) % seq;
    const std::int64_t row = shape[2] == 1 ? key : static_cast<std::int64_t>(i) / seq % seq;
    const auto keeps = [&](std::int64_t at) {
      return mask[static_cast<std::size_t>(b * seq + at)] != 0;
    };
    const bool inside = window == 0 || std::abs(row - key) <= window;
    if (!element_fits(values[i], inside && keeps(key) && (!masks_rows || keeps(row)))) return false;
  }
  return true;
}

/// The ones of each row in front.
Mask ones_first(Mask mask, std::int64_t seq) {
  for (auto row = mask.begin(); row != mask.end(); row += seq)
    std::sort(row, row + seq, std::greater<>());
  return mask;
}

/// True if every pair of tokens counts where some of the mask's ones are twos: a mask that compares
/// rows with keys, as one of several documents does, tells them apart.
bool takes_twos_for_ones(ir::Value* value, ir::Value* input, const ir::Bindings& sizes,
                         std::int64_t window,
                         const std::function<bool(double, bool)>& element_fits) {
  const auto shape = ir::evaluate(input->type.shape, sizes);
  for (Mask mask : patterns(shape[0], shape[1])) {
    for (std::size_t i = 0; i < mask.size(); i += 2) mask[i] *= 2;
    const ir::Tensor given = ir::Tensor::of<std::int64_t>(shape, mask).converted(input->type.dtype);
    const auto result = run(value, {{input, given}}, sizes);
    if (!result ||
        !agrees(*result, mask, window, shape[0], shape[1], element_fits, /*masks_rows=*/true))
      return false;
  }
  return true;
}

std::optional<KeyMask> key_mask(const ir::Graph& graph, ir::Value* value,
                                const std::function<bool(double, bool)>& element_fits) {
  const auto inputs = inputs_of(value);
  if (!inputs || inputs->size() != 1) return std::nullopt;
  ir::Value* input = *inputs->begin();
  if (input->type.shape.size() != 2) return std::nullopt;
  bool as_given = true, mask_is_length = true, in_rows_as_given = true;
  // The longest trial comes first: it shows a window, which shorter ones may be within.
  std::vector<std::int64_t> seqs(std::begin(trial_seqs), std::end(trial_seqs));
  const auto compared = largest_compared(value);
  if (!compared && !input->type.shape[1].is_constant()) return std::nullopt;
  if (compared.value_or(0) > 1) seqs.insert(seqs.begin(), *compared + 3);
  std::optional<std::int64_t> window;
  for (const std::int64_t wanted : seqs) {
    const ir::Bindings sizes = sizes_of(graph, wanted);
    const auto shape = ir::evaluate(input->type.shape, sizes);
    if (is_larger(input->type.shape, sizes, max_inputs) ||
        is_larger(value->type.shape, sizes, max_results))
      return std::nullopt;
    std::vector<Mask> masks = patterns(shape[0], shape[1]);
    if (seqs.size() > std::size(trial_seqs) && wanted == seqs[0]) masks.resize(3);
    for (const Mask& mask : masks) {
      const ir::Tensor given =
          ir::Tensor::of<std::int64_t>(shape, mask).converted(input->type.dtype);
      const auto result = run(value, {{input, given}}, sizes);
      if (!result) return std::nullopt;
      if (!window) window = window_of(*result, shape[1], element_fits);  // all ones come first
      as_given = as_given && agrees(*result, mask, *window, shape[0], shape[1], element_fits);
      mask_is_length = mask_is_length && agrees(*result, ones_first(mask, shape[1]), *window,
                                                shape[0], shape[1], element_fits);
      in_rows_as_given = in_rows_as_given && agrees(*result, mask, *window, shape[0], shape[1],
                                                    element_fits, /*masks_rows=*/true);
      if (!as_given && !mask_is_length && !in_rows_as_given) return std::nullopt;
    }
  }
  const bool masks_rows = !as_given && !mask_is_length;
  if (masks_rows)
    for (const std::int64_t seq : trial_seqs)
      if (!takes_twos_for_ones(value, input, sizes_of(graph, seq), *window, element_fits))
        return std::nullopt;
  return KeyMask{input, !as_given && !masks_rows, window.value_or(0), masks_rows};
}

/// The value for both test lengths, if it depends on no input.
bool always(const ir::Graph& graph, ir::Value* value,
            const std::function<bool(const ir::Tensor&)>& holds) {
  const auto inputs = inputs_of(value);
  if (!inputs || !inputs->empty()) return false;
  for (const std::int64_t seq : trial_seqs) {
    const auto result = run(value, {}, sizes_of(graph, seq));
    if (!result || !holds(*result)) return false;
  }
  return true;
}

}  // namespace

std::optional<KeyMask> additive_key_mask(const ir::Graph& graph, ir::Value* value) {
  return key_mask(graph, value,
                  [](double v, bool counts) { return counts ? v == 0.0 : v <= -9999.0; });
}

std::optional<KeyMask> boolean_key_mask(const ir::Graph& graph, ir::Value* value, bool keeps) {
  if (value->type.dtype != ir::DType::boolean) return std::nullopt;
  return key_mask(graph, value,
                  [keeps](double v, bool counts) { return (v != 0.0) == (counts == keeps); });
}

ir::Value* mask_of_rows(const ir::Graph& graph, ir::Value* value) {
  const ir::Shape& shape = value->type.shape;
  const auto inputs = inputs_of(value);
  if (shape.size() != 3 || shape[2] != ir::Dim(1) || !inputs || inputs->size() != 1) return nullptr;
  ir::Value* input = *inputs->begin();
  if (input->type.shape != ir::Shape{shape[0], shape[1]}) return nullptr;
  if (largest_compared(value).value_or(max_window) > 1) return nullptr;  // perhaps with a place
  for (const std::int64_t seq : trial_seqs) {
    const ir::Bindings sizes = sizes_of(graph, seq);
    if (is_larger(input->type.shape, sizes, max_inputs)) return nullptr;
    const auto extents = ir::evaluate(input->type.shape, sizes);
    for (const Mask& mask : patterns(extents[0], extents[1])) {
      const ir::Tensor given =
          ir::Tensor::of<std::int64_t>(extents, mask).converted(input->type.dtype);
      const auto result = run(value, {{input, given}}, sizes);
      if (!result || result->to_doubles() != given.to_doubles()) return nullptr;
    }
  }
  return input;
}

bool depends_on_sizes_only(ir::Value* value) {
  const auto inputs = inputs_of(value);
  return inputs && inputs->empty();
}

bool is_position_ids(const ir::Graph& graph, ir::Value* value) {
  return always(graph, value, [](const ir::Tensor& t) {
    if (t.shape().empty() || ir::is_float(t.dtype())) return false;
    const auto ids = t.to_ints();
    for (std::size_t i = 0; i < ids.size(); ++i)
      if (ids[i] != static_cast<std::int64_t>(i) % t.shape().back()) return false;
    return !ids.empty();
  });
}

bool is_all_zero(const ir::Graph& graph, ir::Value* value) {
  return always(graph, value, [](const ir::Tensor& t) {
    for (const double v : t.to_doubles())
      if (v != 0.0) return false;
    return true;
  });
}

}  // namespace bertcl::ops
