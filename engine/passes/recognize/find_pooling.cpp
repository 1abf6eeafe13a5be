// SPDX-License-Identifier: Apache-2.0
// Mean or largest vector of the tokens that the mask keeps, normalized or not, becomes pool.
//
//   mask -> Unsqueeze -> Expand -> Cast -> m
//   Div(ReduceSum(Mul(x, m)), Clip(ReduceSum(m), 1e-9)) -> v -> Div(v, Clip(ReduceL2(v), 1e-12))
//   becomes
//   pool(x, mask) {kind = "mean", normalize = 1}
//
// Exporters spell it in many ways, so what lies between x, the mask and an output [batch, hidden]
// is run with small inputs and compared. Numbers change by the order of sums. Only where the mask
// is that of the encoder, so that pack_tokens packs it.
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "bertcl/error.hpp"
#include "ops/interpret.hpp"
#include "ops/op.hpp"
#include "ops/operands.hpp"
#include "ops/recognize_by_value.hpp"
#include "passes/pass.hpp"
#include "passes/rewrite.hpp"

namespace bertcl::passes {

using namespace ops::operands;

namespace {

constexpr std::size_t kMaxNodes = 40;  // twelve are usual; an encoder has more
constexpr std::int64_t kMaxColumns = 1 << 14;
constexpr std::int64_t kMaxElements = 1 << 20;  // of a trial

/// What lies between the hidden states and an output.
struct Pooling {
  ir::Value *x = nullptr, *mask = nullptr;
  std::vector<ir::Node*> nodes;
};

bool is_norm(const ir::Node& n) {
  return ops::traits(n).is_norm && n.op != embed_norm::op;  // a layer's, not that of the embeddings
}

/// Empty unless `v` is made of one result of a norm and one graph input alone.
std::optional<Pooling> pooling_of(ir::Value* v) {
  const auto slice = ops::subgraph_of(v, kMaxNodes, is_norm);
  if (!slice || slice->inputs.size() != 2) return std::nullopt;
  Pooling found{nullptr, nullptr, slice->nodes};
  for (ir::Value* in : slice->inputs) (in->producer ? found.x : found.mask) = in;
  return found.x && found.mask ? std::optional(found) : std::nullopt;
}

bool has_shapes(const ir::Value* v, const Pooling& pooling) {
  const ir::Shape &x = pooling.x->type.shape, &mask = pooling.mask->type.shape;
  return x.size() == 3 && mask.size() == 2 && pooling.x->type.dtype == ir::DType::f32 &&
         v->type.dtype == ir::DType::f32 && x[0] == mask[0] && x[1] == mask[1] &&
         x[2].is_constant() && x[2].constant() <= kMaxColumns &&
         v->type.shape == ir::Shape{x[0], x[2]} && !x[0].is_constant() && !x[1].is_constant();
}

/// As pack_tokens needs it: one encoder, all of whose attention reads that mask.
bool is_mask_of_encoder(const ir::Graph& g, const ir::Value* mask) {
  int embeddings = 0, attentions = 0;
  for (const auto& n : g.nodes()) {
    embeddings += n->op == embed_norm::op;
    if (!ops::traits(*n).is_attention) continue;
    ++attentions;
    if (n->input(attention::mask) != mask) return false;
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

/// pool of such hidden states and mask.
ir::Tensor pooled(const Pooling& pooling, const ir::Type& type, const ir::Attributes& attributes,
                  const ir::Tensor& x, const ir::Tensor& mask) {
  ir::Graph g;
  ir::Value* in = g.add_input("x", {ir::DType::f32, pooling.x->type.shape});
  ir::Value* m = g.add_input("mask", pooling.mask->type);
  g.add_output("y", g.add(pool::op, {in, m}, attributes, type));
  return ops::interpret(g, {{"x", x}, {"mask", mask}})[0];
}

/// The attributes of pool with which it gives what `v` gives, under masks of all kinds, for all
/// sequences that `v` may treat otherwise, and for numbers of all sizes: a bound, or a small number
/// that stands for minus infinity, shows by large ones.
std::optional<ir::Attributes> attributes_of(ir::Value* v, const Pooling& pooling) {
  const std::int64_t hidden = pooling.x->type.shape[2].constant();
  const auto seqs = ops::seqs_to_try(
      pooling.nodes, std::max(kMaxElements / (ops::kTrialBatch * hidden), ops::kShortSeq));
  if (!seqs) return std::nullopt;
  std::vector<ir::Attributes> left;
  for (const char* kind : {"mean", "max"})
    for (const bool normalize : {false, true}) {
      left.push_back({{"kind", std::string(kind)}});
      if (normalize) left.back()["normalize"] = std::int64_t{1};
    }
  for (const std::int64_t seq : *seqs)
    for (const float magnitude : {1.0f, 1e2f, 1e4f, 1e6f}) {
      if (seq > ops::kShortSeq && magnitude > 1.0f) break;  // of places, not of numbers
      const ir::Tensor x = ir::Tensor::of(
          {ops::kTrialBatch, seq, hidden},
          trial_values(static_cast<std::size_t>(ops::kTrialBatch * seq * hidden), magnitude));
      for (const ir::Tensor& mask :
           ops::trial_masks({ops::kTrialBatch, seq}, pooling.mask->type.dtype, seq)) {
        const ir::Tensor found = ops::evaluate_subgraph(v, {{pooling.x, x}, {pooling.mask, mask}});
        std::erase_if(left, [&](const ir::Attributes& attributes) {
          return !is_near(pooled(pooling, v->type, attributes, x, mask), found);
        });
        if (left.empty()) return std::nullopt;
      }
    }
  return left.size() == 1 ? std::optional(left[0]) : std::nullopt;
}

bool find_pooling_of(ir::Graph& g, ir::Value* v) {
  if (!v->producer || v->producer->op == pool::op || v->type.shape.size() != 2) return false;
  if (v != v->producer->output()) return false;
  const auto pooling = pooling_of(v);
  if (!pooling || !has_shapes(v, *pooling) || !is_mask_of_encoder(g, pooling->mask)) return false;
  std::optional<ir::Attributes> attributes;
  try {
    attributes = attributes_of(v, *pooling);
  } catch (const Error&) {  // an operator without a value on the host
    return false;
  }
  if (!attributes) return false;
  replace(g, v->producer, pooling->nodes, pool::op, {pooling->x, pooling->mask}, *attributes);
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
