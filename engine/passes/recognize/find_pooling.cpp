// SPDX-License-Identifier: Apache-2.0
// Mean or largest vector of the tokens that the mask keeps, normalized or not, becomes pool.
//
//   mask -> Unsqueeze -> Expand -> Cast -> m
//   Div(ReduceSum(Mul(x, m)), Clip(ReduceSum(m), 1e-9)) -> v -> Div(v, Clip(ReduceL2(v), 1e-12))
//   becomes pool(x, mask) {kind = "mean", normalize = 1}
//
// Exporters spell it in many ways, so what lies between x, the mask and an output [batch, hidden]
// is run with small inputs and compared. Numbers change by the order of sums. Only where the mask
// is that of the encoder, so that pack_tokens packs it.
#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "bertcl/error.hpp"
#include "ops/interpret.hpp"
#include "ops/op.hpp"
#include "ops/operands.hpp"
#include "ops/recognize_by_value.hpp"
#include "passes/match.hpp"
#include "passes/pass.hpp"

namespace bertcl::passes {
namespace {

constexpr std::size_t most_nodes = 40;  // twelve are usual; an encoder has more
constexpr std::int64_t most_columns = 1 << 14;
constexpr std::int64_t trial_batch = 2, short_seq = 4;
constexpr std::int64_t most_elements = 1 << 20;  // of a trial

/// What lies between the hidden states and an output.
struct Slice {
  ir::Value *x = nullptr, *mask = nullptr;
  std::vector<ir::Node*> nodes;
};

bool is_norm(const ir::Node* n) {
  return n && (n->op == "add_norm" || n->op == "LayerNormalization" || n->op == "RMSNormalization");
}

/// Empty unless `v` is made of one result of a norm and one graph input alone.
std::optional<Slice> slice_of(ir::Value* v) {
  Slice slice;
  std::set<const ir::Value*> seen;
  std::vector<ir::Value*> open{v};
  const auto meets = [](ir::Value*& known, ir::Value* found) {
    if (known && known != found) return false;
    known = found;
    return true;
  };
  while (!open.empty()) {
    ir::Value* at = open.back();
    open.pop_back();
    if (at->is_constant() || !seen.insert(at).second) continue;
    if (!at->producer || is_norm(at->producer)) {
      if (!meets(at->producer ? slice.x : slice.mask, at)) return std::nullopt;
      continue;
    }
    if (std::ranges::find(slice.nodes, at->producer) == slice.nodes.end())
      slice.nodes.push_back(at->producer);
    if (slice.nodes.size() > most_nodes) return std::nullopt;
    for (ir::Value* in : at->producer->inputs)
      if (in) open.push_back(in);
  }
  if (!slice.x || !slice.mask || slice.nodes.empty()) return std::nullopt;
  return slice;
}

bool has_shapes(const ir::Value* v, const Slice& slice) {
  const ir::Shape &x = slice.x->type.shape, &mask = slice.mask->type.shape;
  return x.size() == 3 && mask.size() == 2 && slice.x->type.dtype == ir::DType::f32 &&
         v->type.dtype == ir::DType::f32 && x[0] == mask[0] && x[1] == mask[1] &&
         x[2].is_constant() && x[2].constant() <= most_columns &&
         v->type.shape == ir::Shape{x[0], x[2]} && !x[0].is_constant() && !x[1].is_constant();
}

/// As pack_tokens needs it: one encoder, all of whose attention reads that mask.
bool is_mask_of_encoder(const ir::Graph& g, const ir::Value* mask) {
  int embeddings = 0, attentions = 0;
  for (const auto& n : g.nodes()) {
    embeddings += n->op == "embed_norm";
    if (!ops::traits(*n).mixes_tokens) continue;
    ++attentions;
    if (n->input(ops::operands::attention::mask) != mask) return false;
  }
  return embeddings <= 1 && attentions > 0;
}

/// Numbers up to `magnitude` and their negatives, the same in every run.
std::vector<float> trial_values(std::size_t count, float magnitude) {
  std::vector<float> values(count);
  std::uint32_t state = 1;
  for (float& value : values) {
    state = state * 1664525u + 1013904223u;
    value = magnitude * (static_cast<float>(state >> 8) / static_cast<float>(1 << 23) - 1.0f);
  }
  return values;
}

/// True up to rounding, which grows with the numbers.
bool is_near(const ir::Tensor& a, const ir::Tensor& b) {
  if (a.shape() != b.shape()) return false;
  const auto x = a.to_doubles(), y = b.to_doubles();
  double largest = 0.0;
  for (const double value : x) largest = std::max(largest, std::abs(value));
  for (std::size_t i = 0; i < x.size(); ++i)
    if (!(std::abs(x[i] - y[i]) <= 1e-5 * largest)) return false;
  return true;
}

/// Masks [trial_batch, seq]: full rows, a single token, holes, a first token that does not count.
std::vector<ir::Tensor> trial_masks(std::int64_t seq, ir::DType dtype) {
  std::vector<ir::Tensor> masks;
  for (const unsigned bits : {0xffffffffu, 0x1u, 0x5u, 0x6u}) {
    std::vector<std::int64_t> mask;
    for (std::int64_t b = 0; b < trial_batch; ++b)
      for (std::int64_t s = 0; s < seq; ++s)
        mask.push_back((b == 0 ? bits : 0x3u) >> (s % 32) & 1u);
    masks.push_back(ir::Tensor::of({trial_batch, seq}, mask).converted(dtype));
  }
  return masks;
}

/// pool of such hidden states and mask.
ir::Tensor pooled(const Slice& slice, const ir::Type& type, const ir::Attributes& attributes,
                  const ir::Tensor& x, const ir::Tensor& mask) {
  ir::Graph g;
  ir::Value* in = g.add_input("x", {ir::DType::f32, slice.x->type.shape});
  ir::Value* m = g.add_input("mask", slice.mask->type);
  g.add_output("y", g.add("pool", {in, m}, attributes, type));
  return ops::interpret(g, {{"x", x}, {"mask", mask}})[0];
}

/// The attributes of pool with which it gives what `v` gives, under masks of all kinds, for all
/// sequences that `v` may treat otherwise, and for numbers of all sizes: a bound, or a small number
/// that stands for minus infinity, shows by large ones.
std::optional<ir::Attributes> attributes_of(ir::Value* v, const Slice& slice) {
  const std::int64_t hidden = slice.x->type.shape[2].constant();
  const auto seqs = ops::seqs_to_try({slice.nodes.begin(), slice.nodes.end()},
                                     std::max(most_elements / (trial_batch * hidden), short_seq));
  if (!seqs) return std::nullopt;
  std::vector<ir::Attributes> left;
  for (const char* kind : {"mean", "max"})
    for (const bool normalize : {false, true}) {
      left.push_back({{"kind", std::string(kind)}});
      if (normalize) left.back()["normalize"] = std::int64_t{1};
    }
  for (const std::int64_t seq : *seqs)
    for (const float magnitude : {1.0f, 1e2f, 1e4f, 1e6f}) {
      if (seq > short_seq && magnitude > 1.0f) break;  // of places, not of numbers
      const ir::Tensor x = ir::Tensor::of(
          {trial_batch, seq, hidden},
          trial_values(static_cast<std::size_t>(trial_batch * seq * hidden), magnitude));
      for (const ir::Tensor& mask : trial_masks(seq, slice.mask->type.dtype)) {
        const ir::Tensor found = ops::evaluate_slice(v, {{slice.x, x}, {slice.mask, mask}});
        std::erase_if(left, [&](const ir::Attributes& attributes) {
          return !is_near(pooled(slice, v->type, attributes, x, mask), found);
        });
        if (left.empty()) return std::nullopt;
      }
    }
  return left.size() == 1 ? std::optional(left[0]) : std::nullopt;
}

bool find_pooling_of(ir::Graph& g, ir::Value* v) {
  if (!v->producer || v->producer->op == "pool" || v->type.shape.size() != 2) return false;
  if (v != v->producer->output()) return false;
  const auto slice = slice_of(v);
  if (!slice || !has_shapes(v, *slice) || !is_mask_of_encoder(g, slice->mask)) return false;
  std::optional<ir::Attributes> attributes;
  try {
    attributes = attributes_of(v, *slice);
  } catch (const Error&) {  // an operator without a value on the host
    return false;
  }
  if (!attributes) return false;
  replace(g, v->producer, slice->nodes, "pool", {slice->x, slice->mask}, *attributes);
  return true;
}

}  // namespace

Pass find_pooling() {
  return {"find_pooling", [](ir::Graph& g) {
            bool changed = false;
            for (std::size_t i = 0; i < g.outputs().size(); ++i)
              changed = find_pooling_of(g, g.outputs()[i].value) || changed;
            return changed;
          }};
}

}  // namespace bertcl::passes
