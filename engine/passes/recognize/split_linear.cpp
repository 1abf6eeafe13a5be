// SPDX-License-Identifier: Apache-2.0
// A linear whose columns are taken apart becomes one for each part.
//
//   x -> linear(w[K, 2*N]) -> Slice(0, N) -> a;  -> Slice(N, 2*N) -> b
//   becomes
//   x -> linear(w[:, :N]) -> a;  x -> linear(w[:, N:]) -> b
//
// and of queries, keys and values in one, as ModernBERT has them,
//
//   x -> linear(w[K, 3*H*D]) -> Reshape[.., 3, H, D] -> Split -> Squeeze -> q[.., H, D], k, v
//   becomes
//   x -> linear(w[:, :H*D]) -> Reshape[.., H, D] -> q;  k, v alike
//
// A Transpose before the Split, or after it, goes to each part, without the axis of the parts.
// Then no launch only copies, an activation of one part goes into its GEMM, and find_attention sees
// the spelling of BERT. A Split into three along the columns is left to fuse_qkv. Linears whose
// result is quantized stay whole, and so do those of a few columns, as heads for the start and the
// end of an answer.
#include <algorithm>

#include "ops/op.hpp"
#include "ops/operands.hpp"
#include "passes/node_queries.hpp"
#include "passes/pass.hpp"
#include "passes/recognize/attention_heads.hpp"
#include "passes/rewrite.hpp"

namespace bertcl::passes {

using namespace ops::operands;

namespace {

constexpr std::int64_t kMinColumns = 16;  // of a part: in fewer, a GEMM costs more than a copy

/// Columns `first` to `first + count` of a constant whose last axis has them, or of its
/// DequantizeLinear. Constants of one element stay.
ir::Value* columns_of(ir::Graph& g, ir::Value* v, std::int64_t first, std::int64_t count,
                      ir::Node* before) {
  if (!v) return nullptr;
  if (!v->is_constant()) {
    std::vector<ir::Value*> operands;
    for (ir::Value* in : v->producer->inputs)
      operands.push_back(columns_of(g, in, first, count, before));
    return add_like(g, *v->producer, operands, {v->type.dtype, operands[0]->type.shape}, before);
  }
  const ir::Tensor& all = *v->constant;
  ir::Sizes shape = all.shape();
  if (all.size() == 1) return v;
  const auto width = static_cast<std::size_t>(shape.back());
  shape.back() = count;
  ir::Tensor part = ir::Tensor::zeros(all.dtype(), shape);
  const std::size_t element = ir::size_of(all.dtype());
  const std::size_t row = width * element, bytes = static_cast<std::size_t>(count) * element;
  const auto from = all.bytes();
  const auto to = part.mutable_bytes();
  for (std::size_t r = 0; r * row < from.size(); ++r)
    std::ranges::copy(from.subspan(r * row + static_cast<std::size_t>(first) * element, bytes),
                      to.begin() + static_cast<std::ptrdiff_t>(r * bytes));
  return g.add_constant(v->name + ".columns", std::move(part));
}

/// The operands that have a column for each of the result's.
std::vector<std::size_t> column_operands(const ir::Node& n) {
  if (n.op == linear::op) return {linear::w, linear::bias};
  return {linear_q::w, linear_q::bias, linear_q::w_scale, linear_q::w_zero_point};
}

bool is_whole(const ir::Node* n) {
  if (!n || !ops::traits(*n).is_linear || n->has("activation")) return false;
  if (n->op == linear_q::op && n->input(linear_q::out_scale)) return false;
  const ir::Value* w = n->inputs[linear::w];
  if (w->is_constant()) return true;
  const ir::Node* dq = w->producer;
  if (!dq || dq->op != "DequantizeLinear") return false;
  return std::ranges::all_of(dq->inputs,
                             [](const ir::Value* v) { return !v || v->is_constant(); }) &&
         (ops::is_last_axis(*dq, 1, w->type.shape) || dq->inputs[1]->constant->size() == 1);
}

/// The linear of `count` columns from `first` on of another.
ir::Value* part_of(ir::Graph& g, const ir::Node& whole, std::int64_t first, std::int64_t count,
                   ir::Node* before) {
  std::vector<ir::Value*> operands = whole.inputs;
  for (const std::size_t i : column_operands(whole))
    if (i < operands.size()) operands[i] = columns_of(g, operands[i], first, count, before);
  ir::Type type = whole.output()->type;
  type.shape.back() = ir::Dim(count);
  return add_like(g, whole, operands, type, before);
}

struct Part {
  ir::Value* result;
  std::int64_t first, count;  // along the axis
};

/// What Slice and Split nodes, the only readers of `v`, take along `axis`; empty if others read it.
std::vector<Part> parts_along(const ir::Graph& g, const ir::Value* v, std::int64_t axis) {
  const auto rank = std::ssize(v->type.shape);
  const auto is_axis = [&](std::int64_t a) { return a == axis || a == axis - rank; };
  std::vector<Part> parts;
  if (g.is_output(v)) return {};
  for (const ir::Node* n : v->users) {
    if ((n->op != "Split" && n->op != "Slice") || n->inputs[0] != v) return {};
    const auto size = [&](const ir::Value* out) { return out->type.shape[axis]; };
    if (std::ranges::any_of(n->outputs,
                            [&](const ir::Value* out) { return !size(out).is_constant(); }))
      return {};
    if (n->op == "Split") {
      if (!is_axis(n->int_attribute("axis", 0))) return {};
      std::int64_t first = 0;
      for (ir::Value* out : n->outputs) {
        parts.push_back({out, first, size(out).constant()});
        first += parts.back().count;
      }
    } else {
      const auto a = only_integer(*n, "axes", 3), start = only_integer(*n, "starts", 1);
      if (!a || !start || !is_axis(*a) || *start < 0) return {};
      if ((n->has("steps") || n->input(4)) && only_integer(*n, "steps", 4) != 1) return {};
      parts.push_back({n->output(), *start, size(n->output()).constant()});
    }
  }
  return parts;
}

bool split_columns(ir::Graph& g, ir::Node& whole) {
  ir::Value* y = whole.output();
  const auto parts = parts_along(g, y, std::ssize(y->type.shape) - 1);
  if (parts.size() != 2 || std::min(parts[0].count, parts[1].count) < kMinColumns) return false;
  for (const Part& part : parts)
    g.replace_uses(part.result, part_of(g, whole, part.first, part.count, part.result->producer));
  return true;
}

/// The axes of v [batch, seq, parts, heads, size] in the order in which the Transpose that alone
/// reads it leaves them; v becomes its result. As they are if there is none.
void follow_transpose(const ir::Graph& g, ir::Value*& v, Permutation& axes) {
  const ir::Node* user = only_user(g, v);
  if (!user || user->op != "Transpose") return;
  const Permutation before = axes;
  const auto& perm = user->ints_attribute("perm");
  for (std::size_t i = 0; i < axes.size(); ++i) axes[i] = before[perm[i]];
  v = user->output();
}

/// The place of the parts among the axes.
std::int64_t axis_of_parts(const Permutation& axes) {
  return std::ranges::find(axes, 2) - axes.begin();
}

/// Queries, keys or values on an axis of their own, whose Squeeze removes that axis.
struct HeadsOfPart {
  std::int64_t place;  // among the parts
  Permutation perm;    // of [batch, seq, heads, size]
  ir::Node* squeeze;
};

std::optional<HeadsOfPart> heads_of(const ir::Graph& g, const Part& part, Permutation axes) {
  if (part.count != 1) return std::nullopt;
  ir::Value* v = part.result;
  follow_transpose(g, v, axes);
  ir::Node* squeeze = only_user(g, v);
  if (!squeeze || squeeze->op != "Squeeze") return std::nullopt;
  ir::Shape squeezed = v->type.shape;
  squeezed.erase(squeezed.begin() + axis_of_parts(axes));
  if (squeeze->output()->type.shape != squeezed) return std::nullopt;
  axes.erase(axes.begin() + axis_of_parts(axes));
  for (std::int64_t& axis : axes) axis -= axis > 2;
  return HeadsOfPart{part.first, axes, squeeze};
}

/// Queries, keys and values on an axis of their own.
bool split_heads_axis(ir::Graph& g, ir::Node& whole) {
  ir::Value* y = whole.output();
  const ir::Node* reshape = only_user(g, y);
  if (!reshape || reshape->op != "Reshape") return false;
  ir::Value* apart = reshape->output();
  const ir::Shape shape = apart->type.shape;
  if (shape.size() != 5 || y->type.shape.size() != 3) return false;
  if (shape[0] != y->type.shape[0] || shape[1] != y->type.shape[1]) return false;
  if (!shape[3].is_constant() || !shape[4].is_constant()) return false;
  const std::int64_t width = shape[3].constant() * shape[4].constant();

  Permutation axes{0, 1, 2, 3, 4};
  follow_transpose(g, apart, axes);
  std::vector<HeadsOfPart> all;
  for (const Part& part : parts_along(g, apart, axis_of_parts(axes))) {
    const auto heads = heads_of(g, part, axes);
    if (!heads) return false;
    all.push_back(*heads);
  }
  if (all.size() < 2) return false;
  const ir::Type rows_of_heads{y->type.dtype, {shape[0], shape[1], shape[3], shape[4]}};
  for (const HeadsOfPart& part : all) {
    ir::Value* columns = part_of(g, whole, part.place * width, width, part.squeeze);
    ir::Value* heads = g.add("Reshape", {columns}, {}, rows_of_heads, part.squeeze);
    heads->producer->sources = part.squeeze->sources;
    if (!std::ranges::is_sorted(part.perm)) {
      heads = g.add("Transpose", {heads}, {{"perm", part.perm}}, part.squeeze->output()->type,
                    part.squeeze);
      heads->producer->sources = part.squeeze->sources;
    }
    g.replace_uses(part.squeeze->output(), heads);
  }
  return true;
}

bool split_linear_at(ir::Graph& g, ir::Node& node) {
  return is_whole(&node) && !node.output()->users.empty() &&
         (split_columns(g, node) || split_heads_axis(g, node));
}

}  // namespace

Pass split_linear() { return rewriting("split_linear", split_linear_at); }

}  // namespace bertcl::passes
