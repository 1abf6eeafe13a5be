// SPDX-License-Identifier: Apache-2.0
// Quantization that is written out as arithmetic becomes QuantizeLinear and DequantizeLinear.
//
//   Min(Max(Round(x / s) + z, low), high)   becomes   QuantizeLinear(x, s, z)
//   (q - z) * s, q of 8 bits                becomes   DequantizeLinear(q, s, z)
//
// x / s may be x * (1 / s), and z absent; Casts between floats and integers stand where they like
// after Round. So torch's exporters write hand-written fake quantization and the decompositions of
// quantize_per_tensor. Bounds within the 8 bits (-127 .. 127, 0 .. 15), also those after a
// QuantizeLinear (Brevitas' QCDQ), become bounds of x, which is exact. x * (1 / s) differs from
// x / s next to a rounding tie.
#include <algorithm>
#include <cmath>

#include "passes/node_queries.hpp"
#include "passes/pass.hpp"
#include "passes/rewrite.hpp"

namespace bertcl::passes {
namespace {

struct Clipped {
  ir::Value* x = nullptr;
  double low = -INFINITY, high = INFINITY;
};

/// The bounds of a Min and a Max in either order.
std::optional<Clipped> clipped(const ir::Node& outer) {
  Clipped c;
  const auto take = [&](const ir::Node* node) {
    if (!node || (node->op != "Min" && node->op != "Max") || node->inputs.size() != 2) return false;
    double& limit = node->op == "Min" ? c.high : c.low;
    if (std::isfinite(limit)) return false;
    for (const std::size_t i : {0u, 1u})
      if (const auto bound = scalar_value(node->inputs[i])) {
        c.x = node->inputs[1 - i];
        limit = *bound;
        return true;
      }
    return false;
  };
  if (!take(&outer) || !take(c.x->producer) || !(c.low < c.high)) return std::nullopt;
  return c;
}

/// What a value is a Cast of, through types that hold every integer of 8 bits and its sums.
ir::Value* uncast(ir::Value* v) {
  const auto holds = [](ir::DType t) {
    return t == ir::DType::f32 || t == ir::DType::i32 || t == ir::DType::i64;
  };
  while (v->producer && v->producer->op == "Cast" && holds(v->type.dtype))
    v = v->producer->inputs[0];
  return v;
}

/// The constant operand of a node of two, and the other one.
bool with_constant(const ir::Node& node, bool either_order, ir::Value*& x, ir::Value*& constant) {
  if (node.inputs.size() != 2) return false;
  for (const std::size_t i : {1u, 0u}) {
    if (i == 0 && !either_order) return false;
    if (!node.inputs[i]->is_constant()) continue;
    constant = node.inputs[i];
    x = node.inputs[1 - i];
    return true;
  }
  return false;
}

/// Scale and zero point of a tensor: one of each, or one for each index of `axis`.
struct Parameters {
  std::vector<double> scale, zero;
  std::int64_t axis = -1;

  std::vector<double> zeros() const {
    return zero.size() == scale.size() ? zero : std::vector<double>(scale.size(), zero.front());
  }
};

/// The axis of `shape` along which the elements of `constant` lie when it is broadcast; -1 for one
/// element; empty if there is none.
std::optional<std::int64_t> axis_of(const ir::Value& constant, const ir::Shape& shape) {
  const ir::Sizes& sizes = constant.constant->shape();
  if (constant.constant->size() == 1)
    return sizes.size() <= shape.size() ? std::optional(-1) : std::nullopt;
  if (sizes.size() > shape.size()) return std::nullopt;
  const std::size_t shift = shape.size() - sizes.size();
  for (std::size_t d = 0; d < sizes.size(); ++d)
    if (sizes[d] == constant.constant->size() && shape[shift + d] == ir::Dim(sizes[d]))
      return static_cast<std::int64_t>(shift + d);
  return std::nullopt;
}

/// Takes over a zero point of integers in the range of `type`, whose axis must be that of the
/// scale.
bool take_zero(Parameters& p, const ir::Value* zero, const ir::Shape& shape) {
  if (!zero) {
    p.zero = {0.0};
    return true;
  }
  const auto axis = axis_of(*zero, shape);
  if (!axis || (*axis != p.axis && *axis != -1)) return false;
  p.zero = zero->constant->to_doubles();
  return std::ranges::all_of(p.zero, [](double z) { return z == std::rint(z); });
}

double min_of(ir::DType type) { return type == ir::DType::u8 ? 0 : -128; }

bool in_range(const std::vector<double>& zeros, ir::DType type) {
  const double low = min_of(type);
  return std::ranges::all_of(zeros, [&](double z) { return z >= low && z <= low + 255; });
}

bool take_scale(Parameters& p, const ir::Value& scale, const ir::Shape& shape, bool inverse) {
  const auto axis = axis_of(scale, shape);
  if (!axis || scale.type.dtype != ir::DType::f32) return false;
  p.axis = *axis;
  p.scale = scale.constant->to_doubles();
  if (inverse)
    for (double& s : p.scale) s = static_cast<float>(1.0 / s);
  return std::ranges::all_of(p.scale, [](double s) { return s > 0 && std::isfinite(s); });
}

/// Operands of Q or DQ: `x`, scale, zero point.
std::vector<ir::Value*> operands(ir::Graph& g, ir::Value* x, const Parameters& p, ir::DType type) {
  const auto sizes = p.axis < 0 ? ir::Sizes{} : ir::Sizes{std::ssize(p.scale)};
  const auto constant = [&](const char* name, std::vector<double> values, ir::DType dtype) {
    return g.add_constant(x->name + name,
                          ir::Tensor::of(sizes, std::move(values)).converted(dtype));
  };
  return {x, constant("_scale", p.scale, ir::DType::f32), constant("_zero_point", p.zeros(), type)};
}
ir::Attributes attributes(const Parameters& p) {
  return p.axis < 0 ? ir::Attributes{} : ir::Attributes{{"axis", p.axis}};
}

/// x bounded so that round(x / s) + z is within low .. high, where the type is wider than these.
ir::Value* bounded(ir::Graph& g, ir::Value* x, const Parameters& p, ir::DType type, double low,
                   double high, ir::Node* before) {
  const double least = min_of(type);
  const auto bound = [&](const char* op, double limit) {
    ir::Sizes sizes(p.axis < 0 ? 0 : x->type.shape.size() - static_cast<std::size_t>(p.axis), 1);
    if (!sizes.empty()) sizes[0] = std::ssize(p.scale);
    std::vector<double> values = p.zeros();
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = (limit - values[i]) * p.scale[i];
    ir::Value* constant = g.add_constant(
        x->name + "_bound", ir::Tensor::of(sizes, std::move(values)).converted(ir::DType::f32));
    x = g.add(op, {x, constant}, {}, x->type, before);
  };
  if (low > least) bound("Max", low);
  if (high < least + 255) bound("Min", high);
  return x;
}

/// Puts QuantizeLinear, and a Cast where `clip` is of another type, in place of the value `clip`.
void quantize(ir::Graph& g, ir::Value* x, const Parameters& p, ir::DType type, const Clipped& c,
              ir::Value* clip, const std::vector<ir::Node*>& covered) {
  ir::Node* before = clip->producer;
  x = bounded(g, x, p, type, c.low, c.high, before);
  ir::Value* q = g.add("QuantizeLinear", operands(g, x, p, type), attributes(p),
                       {type, clip->type.shape}, before);
  q->producer->sources = sources_of(covered);
  if (clip->type.dtype != type) {
    q = g.add("Cast", {q}, {{"to", std::string(ir::name_of(clip->type.dtype))}}, clip->type,
              before);
  }
  g.replace_uses(clip, q);
}

/// Min(Max(QuantizeLinear(x, s, z), low), high)
bool rewrite_clipped_quantize(ir::Graph& g, ir::Value* clip, const Clipped& c) {
  ir::Node* q = uncast(c.x)->producer;
  if (!q || q->op != "QuantizeLinear" || !ir::is_int8(q->output()->type.dtype)) return false;
  const double least = min_of(q->output()->type.dtype);
  if (c.high < least || c.low > least + 255)
    return false;  // the result is not an integer of the type
  ir::Value *scale = q->inputs[1], *zero = q->input(2);
  if (!scale->is_constant() || (zero && !zero->is_constant())) return false;
  Parameters p;
  p.scale = scale->constant->to_doubles();
  p.zero = zero ? zero->constant->to_doubles() : std::vector<double>{0.0};
  if (p.scale.size() > 1) p.axis = q->int_attribute("axis");
  if (q->inputs[0]->type.dtype != ir::DType::f32) return false;
  quantize(g, q->inputs[0], p, q->output()->type.dtype, c, clip, {q, clip->producer});
  return true;
}

/// Min(Max(Round(x / s) + z, low), high)
bool rewrite_quantize(ir::Graph& g, ir::Node& node) {
  const auto found = clipped(node);
  if (!found) return false;
  const Clipped& c = *found;
  ir::Value* clip = node.output();
  if (c.low != std::rint(c.low) || c.high != std::rint(c.high)) return false;
  if (rewrite_clipped_quantize(g, clip, c)) return true;
  if (c.low < -128 || c.high > 255 || (c.low < 0 && c.high > 127)) return false;
  std::vector<ir::Node*> covered = {&node};
  ir::Value *sum = uncast(c.x), *zero = nullptr;
  if (ir::Node* add = sum->producer; add && add->op == "Add") {
    covered.push_back(add);
    if (!with_constant(*add, true, sum, zero)) return false;
    sum = uncast(sum);
  }
  ir::Node* round = sum->producer;
  if (!round || round->op != "Round" || round->inputs[0]->type.dtype != ir::DType::f32)
    return false;
  covered.push_back(round);
  ir::Value* x = round->inputs[0];
  Parameters p{{1.0}, {}, -1};
  if (ir::Node* steps = x->producer; steps && (steps->op == "Div" || steps->op == "Mul")) {
    ir::Value* scale = nullptr;
    const bool inverse = steps->op == "Mul";
    if (!with_constant(*steps, inverse, x, scale)) return false;
    if (!take_scale(p, *scale, x->type.shape, inverse)) return false;
    covered.push_back(steps);
  } else if (!x->is_constant()) {
    return false;
  }
  const ir::DType type = c.low < 0 ? ir::DType::i8 : ir::DType::u8;
  if (!take_zero(p, zero, x->type.shape) || !in_range(p.zero, type)) return false;
  if (x->type.shape != clip->type.shape) return false;
  quantize(g, x, p, type, c, clip, covered);
  return true;
}

/// (Cast(q) - z) * s
bool rewrite_dequantize(ir::Graph& g, ir::Node& node) {
  ir::Value *x = nullptr, *scale = nullptr, *zero = nullptr;
  if (node.op != "Mul" || !with_constant(node, true, x, scale)) return false;
  std::vector<ir::Node*> covered = {&node};
  ir::Value* q = uncast(x);
  if (ir::Node* sub = q->producer; sub && sub->op == "Sub") {
    if (!with_constant(*sub, false, q, zero)) return false;
    if (q == uncast(q)) return false;  // a difference in 8 bits wraps around
    q = uncast(q);
    covered.push_back(sub);
  }
  if (!ir::is_int8(q->type.dtype) || q->type.shape != node.output()->type.shape) return false;
  Parameters p;
  if (!take_scale(p, *scale, q->type.shape, false) || !take_zero(p, zero, q->type.shape) ||
      !in_range(p.zero, q->type.dtype))
    return false;
  replace(g, &node, covered, "DequantizeLinear", operands(g, q, p, q->type.dtype), attributes(p));
  return true;
}

/// Cast of an 8-bit value to a wider type and back
bool rewrite_casts(ir::Graph& g, ir::Node& node) {
  if (node.op != "Cast" || !ir::is_int8(node.output()->type.dtype)) return false;
  ir::Value* q = uncast(node.inputs[0]);
  if (q == node.inputs[0] || q->type != node.output()->type) return false;
  g.replace_uses(node.output(), q);
  g.erase(&node);
  return true;
}

}  // namespace

Pass find_quantize() {
  return rewriting("find_quantize", [](ir::Graph& g, ir::Node& node) {
    return rewrite_casts(g, node) || rewrite_quantize(g, node) || rewrite_dequantize(g, node);
  });
}

}  // namespace bertcl::passes
