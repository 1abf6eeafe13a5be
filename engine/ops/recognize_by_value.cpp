// SPDX-License-Identifier: Apache-2.0
// Recognizes subgraphs by running them on the host with small inputs.
#include "ops/recognize_by_value.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <ranges>

#include "bertcl/error.hpp"
#include "ops/interpret.hpp"

namespace bertcl::ops {
namespace {

constexpr std::int64_t kShortSeqs[] = {kShortSeq, 3};
constexpr std::int64_t kMaxVectorSeq = 1 << 16;  // longer trials would be slow
// A file may fix the batch and the sequence; beyond these, trials would cost more than they gain.
constexpr std::int64_t kMaxInputs = 1 << 20, kMaxResults = 1 << 24;  // elements

/// Input [batch, seq] that the slice depends on, alone. Null too if it holds indices: a token id is
/// no mask, though both are zero for padding.
ir::Value* only_mask(const std::optional<Subgraph>& slice) {
  if (!slice || slice->inputs.size() != 1) return nullptr;
  ir::Value* input = *slice->inputs.begin();
  std::vector<const ir::Value*> open{input};
  while (!open.empty()) {
    const ir::Value* v = open.back();
    open.pop_back();
    for (const ir::Node* n : v->users) {
      if (n->op == "Gather" && n->input(1) == v) return nullptr;
      if (n->op == "Cast" || n->op == "Reshape") open.push_back(n->output());
    }
  }
  return input->type.shape.size() == 2 ? input : nullptr;
}

bool compares(const ir::Node& n) {
  return n.op == "Equal" || n.op.starts_with("Less") || n.op.starts_with("Greater");
}

/// True if what is shifted or divided is compared.
bool is_compared(const ir::Node& n) {
  return (n.op == "Add" || n.op == "Sub" || n.op == "Div") &&
         std::ranges::any_of(n.output()->users,
                             [](const ir::Node* user) { return compares(*user); });
}

/// The place, or the number of places, from which the operator may behave otherwise, where it takes
/// the constant `number` for an operand.
double place_in(const ir::Node& n, std::size_t operand, double number) {
  const double size = std::abs(number);
  if (n.op == "Mul") return size > 0.0 && size < 1.0 ? std::round(1.0 / size) : 0.0;
  if (n.op == "Trilu" && operand == 0) return 0.0;
  const bool cuts = compares(n) || n.op == "Trilu" || n.op == "Slice" || n.op == "Add" ||
                    n.op == "Sub" || n.op == "Div" || n.op == "Mod" || n.op == "Min" ||
                    n.op == "Max" || n.op == "Clip";
  return cuts ? size : 0.0;
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

/// True if any of its results is too large to be tried.
bool is_larger(const Subgraph& slice, const ir::Bindings& sizes) {
  return std::ranges::any_of(slice.nodes, [&](const ir::Node* n) {
    return std::ranges::any_of(n->outputs, [&](const ir::Value* out) {
      return is_larger(out->type.shape, sizes, kMaxResults);
    });
  });
}

/// The value for given inputs; empty if the slice cannot be evaluated.
std::optional<ir::Tensor> run(ir::Value* value, Known known, const ir::Bindings& sizes) {
  try {
    return evaluate_subgraph(value, std::move(known), sizes);
  } catch (const Error&) {
    return std::nullopt;
  }
}

using Mask = std::vector<std::int64_t>;  // [batch, seq]
using ElementFits = std::function<bool(double element, bool counts)>;

bool added_for(double element, bool counts) { return counts ? element == 0.0 : element <= -9999.0; }
ElementFits true_for(bool keeps) {
  return [keeps](double element, bool counts) { return (element != 0.0) == (counts == keeps); };
}

/// That of a mask [.., seq, seq] whose keys all count, by its first row and its last.
AttentionSpan span_of(const ir::Tensor& tensor, const ElementFits& element_fits) {
  const ir::Sizes& shape = tensor.shape();
  if (shape.size() < 2 || shape.back() != shape[shape.size() - 2]) return {};
  const std::int64_t seq = shape.back();
  const auto values = tensor.to_doubles();
  const auto counts = [&](std::int64_t row, std::int64_t key) {
    return element_fits(values[row * seq + key], true);
  };
  std::int64_t first = 0, last = 0;  // keys of these rows that count, from the row on
  while (first < seq && counts(0, first)) ++first;
  while (last < seq && counts(seq - 1, seq - 1 - last)) ++last;
  if (first == 0 || last == 0 || seq == 1) return {};
  return {last == seq ? 0 : last - 1, first == 1};
}

/// True if the mask tensor [batch, heads, rows, seq] says for every key what `mask` and the reach
/// say; with `masks_rows`, that no key counts in rows that `mask` hides.
bool agrees(const ir::Tensor& tensor, const Mask& mask, AttentionSpan span, std::int64_t batch,
            std::int64_t seq, const ElementFits& element_fits, bool masks_rows = false) {
  const ir::Sizes& shape = tensor.shape();
  if (shape.size() != 4 || shape[0] != batch || shape[3] != seq) return false;
  if (shape[2] != 1 && shape[2] != seq) return false;
  const auto values = tensor.to_doubles();
  const std::int64_t per_sequence = shape[1] * shape[2] * shape[3];
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::int64_t b = static_cast<std::int64_t>(i) / per_sequence;
    const std::int64_t key = static_cast<std::int64_t>(i) % seq;
    const std::int64_t row = shape[2] == 1 ? key : static_cast<std::int64_t>(i) / seq % seq;
    const auto keeps = [&](std::int64_t at) { return mask[b * seq + at] != 0; };
    if (!element_fits(values[i],
                      span.contains(row, key) && keeps(key) && (!masks_rows || keeps(row))))
      return false;
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
                         AttentionSpan span, const ElementFits& element_fits) {
  const auto shape = ir::evaluate(input->type.shape, sizes);
  for (const ir::Tensor& ones : trial_masks(shape, input->type.dtype, kShortSeq)) {
    Mask mask = ones.to_ints();
    for (std::size_t i = 0; i < mask.size(); i += 2) mask[i] *= 2;
    const ir::Tensor given = ir::Tensor::of<std::int64_t>(shape, mask).converted(input->type.dtype);
    const auto result = run(value, {{input, given}}, sizes);
    if (!result ||
        !agrees(*result, mask, span, shape[0], shape[1], element_fits, /*masks_rows=*/true))
      return false;
  }
  return true;
}

std::optional<KeyMask> key_mask(const ir::Graph& graph, ir::Value* value,
                                const ElementFits& element_fits) {
  const auto slice = subgraph_of(value);
  ir::Value* input = only_mask(slice);
  if (!input) return std::nullopt;
  bool as_given = true, mask_is_length = true, in_rows_as_given = true;
  auto seqs = seqs_to_try(slice->nodes, kMaxMaskSeq);
  if (input->type.shape[1].is_constant()) seqs = std::vector{kShortSeq};
  if (!seqs) return std::nullopt;
  // The longest trial comes first: it shows a window, which shorter ones may be within.
  std::optional<AttentionSpan> span;
  for (const std::int64_t wanted : *seqs) {
    const ir::Bindings sizes = trial_sizes(graph, wanted);
    const auto shape = ir::evaluate(input->type.shape, sizes);
    if (is_larger(input->type.shape, sizes, kMaxInputs) || is_larger(*slice, sizes))
      return std::nullopt;
    for (const ir::Tensor& given : trial_masks(shape, input->type.dtype, wanted)) {
      const Mask mask = given.to_ints();
      const auto result = run(value, {{input, given}}, sizes);
      if (!result && wanted > kShortSeq) break;
      if (!result) return std::nullopt;
      if (!span) span = span_of(*result, element_fits);  // all ones come first
      as_given = as_given && agrees(*result, mask, *span, shape[0], shape[1], element_fits);
      mask_is_length = mask_is_length && agrees(*result, ones_first(mask, shape[1]), *span,
                                                shape[0], shape[1], element_fits);
      in_rows_as_given = in_rows_as_given && agrees(*result, mask, *span, shape[0], shape[1],
                                                    element_fits, /*masks_rows=*/true);
      if (!as_given && !mask_is_length && !in_rows_as_given) return std::nullopt;
    }
  }
  const bool masks_rows = !as_given && !mask_is_length;
  if (masks_rows)
    for (const std::int64_t seq : kShortSeqs)
      if (!takes_twos_for_ones(value, input, trial_sizes(graph, seq), *span, element_fits))
        return std::nullopt;
  return KeyMask{input, !as_given && !masks_rows, masks_rows, span.value_or(AttentionSpan{})};
}

/// True if the value depends on no input, and `holds` of it in each trial.
bool always(const ir::Graph& graph, ir::Value* value,
            const std::function<bool(const ir::Tensor&)>& holds,
            std::int64_t longest = kMaxVectorSeq) {
  const auto slice = subgraph_of(value);
  if (!slice || !slice->inputs.empty()) return false;
  const auto seqs = seqs_to_try(slice->nodes, longest);
  if (!seqs) return false;
  for (const std::int64_t seq : std::views::reverse(*seqs)) {  // short ones refuse most
    const ir::Bindings sizes = trial_sizes(graph, seq);
    if (is_larger(*slice, sizes)) return false;
    const auto result = run(value, {}, sizes);
    if (!result && seq > kShortSeq) continue;
    if (!result || !holds(*result)) return false;
  }
  return true;
}

std::optional<AttentionSpan> span_of_sizes(const ir::Graph& graph, ir::Value* value,
                                           const ElementFits& element_fits) {
  const ir::Shape& shape = value->type.shape;
  if (shape.size() < 2 || shape.back() != shape[shape.size() - 2]) return std::nullopt;
  const auto has_span = [&](const ir::Tensor& t, AttentionSpan span) {
    const std::int64_t seq = t.shape().back();
    const auto values = t.to_doubles();
    for (std::int64_t i = 0; i < std::ssize(values); ++i)
      if (!element_fits(values[i], span.contains(i / seq % seq, i % seq))) return false;
    return !values.empty();
  };
  std::vector<ir::Tensor> trials;
  const auto holds = [&](const ir::Tensor& t) {
    trials.push_back(t);
    return has_span(t, span_of(t, element_fits));
  };
  if (!always(graph, value, holds, kMaxMaskSeq)) return std::nullopt;
  // The longest shows it.
  const AttentionSpan span = span_of(trials.back(), element_fits);
  for (const ir::Tensor& trial : trials)
    if (!has_span(trial, span)) return std::nullopt;
  return span;
}

}  // namespace

std::optional<Subgraph> subgraph_of(ir::Value* value, std::size_t most,
                                    const std::function<bool(const ir::Node&)>& is_border) {
  Subgraph slice;
  std::set<const ir::Node*> seen;
  std::vector<ir::Value*> open{value};
  while (!open.empty()) {
    ir::Value* v = open.back();
    open.pop_back();
    if (v->is_constant()) continue;
    if (!v->producer || (is_border && is_border(*v->producer))) {
      slice.inputs.insert(v);
      continue;
    }
    if (!seen.insert(v->producer).second) continue;
    slice.nodes.push_back(v->producer);
    if (slice.nodes.size() > most) return std::nullopt;
    for (ir::Value* in : v->producer->inputs)
      if (in) open.push_back(in);
  }
  return slice;
}

ir::Bindings trial_sizes(const ir::Graph& graph, std::int64_t seq) {
  ir::Bindings sizes;
  for (const ir::Value* in : graph.inputs())
    for (std::size_t axis = 0; axis < 2 && axis < in->type.shape.size(); ++axis) {
      const ir::Dim& d = in->type.shape[axis];
      if (d.symbols().size() == 1) sizes.emplace(d.symbols()[0], axis == 0 ? kTrialBatch : seq);
    }
  return sizes;
}

std::vector<ir::Tensor> trial_masks(const ir::Sizes& shape, ir::DType dtype, std::int64_t seq) {
  std::vector<ir::Tensor> all;
  for (const unsigned bits : {0xffffffffu, 0x1u, 0xau, 0x5u, 0x3u, 0xeu}) {
    if (seq > kShortSeq && all.size() == 3) break;
    Mask mask;
    for (unsigned b = 0; b < shape[0]; ++b) {
      const unsigned own = b < 2 || all.empty() ? bits : b >> 2 * (all.size() - 1) & 3u;
      const unsigned row = b == 0 ? bits : own << 1 | 1u;
      for (std::int64_t s = 0; s < shape[1]; ++s) mask.push_back((row >> (s % 32)) & 1u);
    }
    all.push_back(ir::Tensor::of(shape, mask).converted(dtype));
  }
  return all;
}

std::optional<std::vector<std::int64_t>> seqs_to_try(const std::vector<ir::Node*>& nodes,
                                                     std::int64_t longest) {
  std::int64_t place = 0;
  std::set<std::int64_t, std::greater<>> seqs(std::begin(kShortSeqs), std::end(kShortSeqs));
  for (const ir::Node* n : nodes)
    for (std::size_t i = 0; i < n->inputs.size(); ++i) {
      const ir::Value* in = n->inputs[i];
      if (!in || !in->is_constant()) continue;
      const ir::Sizes& extents = in->constant->shape();
      // Other vectors say how to reshape or to slice.
      if (i == 0 || extents.size() > 1) seqs.insert(extents.begin(), extents.end());
      if (in->constant->size() > 4) continue;
      // A float beyond all places is what a mask adds, an integer may be the end of all axes.
      const bool counts = compares(*n) || is_compared(*n) || !ir::is_float(in->type.dtype);
      for (const double number : in->constant->to_doubles()) {
        const double at = place_in(*n, i, number);
        if (at + 3.0 <= static_cast<double>(longest))
          place = std::max(place, static_cast<std::int64_t>(at));
        else if (counts && at <= kMaxInputs)
          return std::nullopt;
      }
    }
  std::erase_if(seqs, [](std::int64_t seq) { return seq < kShortSeqs[1]; });
  if (*seqs.begin() > longest) return std::nullopt;
  const std::int64_t table = *seqs.begin();
  if (table == kShortSeq) {
    if (place > 1) seqs.insert(place + 3);
  } else if (place > 0) {  // no sequence is longer than a table, or than what is left of it
    seqs.insert(std::min(place + 3, table));
    if (table - place > kShortSeq) seqs.insert(table - place);
  }
  return std::vector<std::int64_t>(seqs.begin(), seqs.end());
}

std::optional<KeyMask> additive_key_mask(const ir::Graph& graph, ir::Value* value) {
  return key_mask(graph, value, added_for);
}

std::optional<KeyMask> boolean_key_mask(const ir::Graph& graph, ir::Value* value, bool keeps) {
  if (value->type.dtype != ir::DType::boolean) return std::nullopt;
  return key_mask(graph, value, true_for(keeps));
}

std::optional<AttentionSpan> additive_span(const ir::Graph& graph, ir::Value* value) {
  return ir::is_float(value->type.dtype) ? span_of_sizes(graph, value, added_for) : std::nullopt;
}

std::optional<AttentionSpan> boolean_span(const ir::Graph& graph, ir::Value* value, bool keeps) {
  if (value->type.dtype != ir::DType::boolean) return std::nullopt;
  return span_of_sizes(graph, value, true_for(keeps));
}

ir::Value* mask_of_rows(const ir::Graph& graph, ir::Value* value) {
  const ir::Shape& shape = value->type.shape;
  const auto slice = subgraph_of(value);
  ir::Value* input = only_mask(slice);
  if (shape.size() != 3 || shape[2] != ir::Dim(1) || !input) return nullptr;
  if (input->type.shape != ir::Shape{shape[0], shape[1]}) return nullptr;
  const auto seqs = seqs_to_try(slice->nodes, kShortSeq);
  if (!seqs) return nullptr;
  for (const std::int64_t seq : *seqs) {
    const ir::Bindings sizes = trial_sizes(graph, seq);
    if (is_larger(input->type.shape, sizes, kMaxInputs)) return nullptr;
    const auto extents = ir::evaluate(input->type.shape, sizes);
    for (const ir::Tensor& given : trial_masks(extents, input->type.dtype, seq)) {
      const auto result = run(value, {{input, given}}, sizes);
      if (!result || result->to_doubles() != given.to_doubles()) return nullptr;
    }
  }
  return input;
}

bool depends_on_sizes_only(ir::Value* value) {
  const auto slice = subgraph_of(value);
  return slice && slice->inputs.empty();
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
    return std::ranges::all_of(t.to_doubles(), [](double v) { return v == 0.0; });
  });
}

}  // namespace bertcl::ops
