// SPDX-License-Identifier: Apache-2.0
// Convolutions, which some exporters write around or in place of linear layers, as a sum of
// MatMuls: one for each element of the kernel, over a strided slice of the padded input. Those that
// divide their input into equal parts, as the patches of an image, are one MatMul.
#include <algorithm>
#include <limits>

#include "onnx/importer.hpp"
#include "onnx/shift.hpp"
#include "support/ceil_div.hpp"

namespace bertcl::onnx_io {
namespace {

using Ints = std::vector<std::int64_t>;

/// The attributes of a convolution over `kernel.size()` spatial axes.
struct Window {
  Ints kernel, strides, dilations, pads;  // pads: before each axis, then after each
  std::int64_t groups;

  std::size_t rank() const { return kernel.size(); }
  std::int64_t reach(std::size_t axis) const { return (kernel[axis] - 1) * dilations[axis] + 1; }
};

/// Extents, strides and the like; products of two of them and sums of those fit into 64 bits.
constexpr std::int64_t kMaxInt32 = std::numeric_limits<std::int32_t>::max();

Ints spatial(NodeImport& node, const char* name, std::size_t count, std::int64_t default_value,
             std::int64_t least) {
  Ints list = node.ints_attribute(name).value_or(Ints(count, default_value));
  if (list.size() != count)
    node.fail("attribute '{}' has {} entries, expected {}", name, list.size(), count);
  for (const std::int64_t n : list)
    if (n < least || n > kMaxInt32)
      node.fail("attribute '{}' holds {} (supported: {} to {})", name, n, least, kMaxInt32);
  return list;
}

[[noreturn]] void fail_of_length(NodeImport& node, std::size_t axis) {
  node.fail(
      "axis {} has a dynamic length, which these strides and pads would change (export the model "
      "with a fixed length)",
      axis + 2);
}

Window window_of(NodeImport& node, const ir::Shape& x, const ir::Shape& weight) {
  if (x.size() < 3 || weight.size() != x.size())
    node.fail("input {} and weight {} do not match", ir::str(x), ir::str(weight));
  const std::size_t rank = x.size() - 2;
  Window w{{},
           spatial(node, "strides", rank, 1, 1),
           spatial(node, "dilations", rank, 1, 1),
           spatial(node, "pads", 2 * rank, 0, -kMaxInt32),
           node.int_attribute("group", 1)};
  if (w.groups < 1) node.fail("attribute 'group' is {}", w.groups);
  for (std::size_t i = 0; i < rank; ++i) {
    if (!weight[i + 2].is_constant()) node.fail("the extents of the weight must be constant");
    if (weight[i + 2].constant() < 1 || weight[i + 2].constant() > kMaxInt32 ||
        (x[i + 2].is_constant() && x[i + 2].constant() > kMaxInt32))
      node.fail("input {} or weight {} is too large, or the kernel is empty", ir::str(x),
                ir::str(weight));
    w.kernel.push_back(weight[i + 2].constant());
  }
  const std::string padding = node.string_attribute("auto_pad", "NOTSET");
  if (padding == "SAME_UPPER" || padding == "SAME_LOWER") {
    for (std::size_t i = 0; i < rank; ++i) {
      if (w.strides[i] > 1 && !x[i + 2].is_constant()) fail_of_length(node, i);
      const std::int64_t extent = w.strides[i] > 1 ? x[i + 2].constant() : 1;
      const std::int64_t out = ceil_div(extent, w.strides[i]);
      const std::int64_t all =
          std::max<std::int64_t>(0, (out - 1) * w.strides[i] + w.reach(i) - extent);
      const std::int64_t before = padding == "SAME_UPPER" ? all / 2 : all - all / 2;
      w.pads[i] = before;
      w.pads[rank + i] = all - before;
    }
  } else if (padding != "NOTSET" && padding != "VALID") {
    node.fail("auto_pad '{}' is not supported", padding);
  }
  return w;
}

ir::Value* ints(NodeImport& node, const Ints& list) {
  return node.constant(ir::Tensor::of<std::int64_t>({std::ssize(list)}, list), "slice");
}
/// x[.., starts[i] : ends[i] : steps[i], ..] over the spatial axes.
ir::Value* slice(NodeImport& node, ir::Value* x, const Ints& starts, const Ints& ends,
                 const Ints& steps) {
  Ints axes;
  for (std::size_t i = 0; i < starts.size(); ++i) axes.push_back(static_cast<std::int64_t>(i) + 2);
  return node.emit("Slice",
                   {x, ints(node, starts), ints(node, ends), ints(node, axes), ints(node, steps)});
}

/// Zero-padded along the axes of constant length.
ir::Value* padded(NodeImport& node, ir::Value* x, const Window& w) {
  Ints pads(2 * (w.rank() + 2), 0);
  for (std::size_t i = 0; i < w.rank(); ++i) {
    if (!x->type.shape[i + 2].is_constant()) continue;
    pads[i + 2] = w.pads[i];
    pads[w.rank() + 4 + i] = w.pads[w.rank() + i];
  }
  if (std::ranges::all_of(pads, [](std::int64_t p) { return p == 0; })) return x;
  return node.emit("Pad", {x}, {{"pads", pads}});
}

/// The sizes of a convolution.
struct Extents {
  Ints ends;  // of a slice of the input for the first tap; the largest integer for a whole axis
  ir::Shape result;
  ir::Dim points{1};
  std::int64_t taps = 1;
};

Extents extents_of(NodeImport& node, const ir::Shape& from, const ir::Shape& weight,
                   const Window& w) {
  Extents e{{}, {from[0], weight[0]}};
  std::int64_t points = 1;
  for (std::size_t i = 0; i < w.rank(); ++i) {
    const std::int64_t pads = w.pads[i] + w.pads[w.rank() + i];
    if (__builtin_mul_overflow(e.taps, w.kernel[i], &e.taps))
      node.fail("weight {} is too large", ir::str(weight));
    if (!from[i + 2].is_constant()) {
      if (w.strides[i] != 1 || pads != w.reach(i) - 1) fail_of_length(node, i);
      e.ends.push_back(std::numeric_limits<std::int64_t>::max());
      e.result.push_back(from[i + 2]);
      e.points = e.points * from[i + 2];
      continue;
    }
    const std::int64_t extent = from[i + 2].constant() + pads;
    const std::int64_t count = (extent - w.reach(i)) / w.strides[i] + 1;
    if (extent < w.reach(i))
      node.fail("the kernel with its dilation is larger than the padded input");
    e.ends.push_back((count - 1) * w.strides[i] + 1);
    e.result.emplace_back(count);
    if (__builtin_mul_overflow(points, count, &points))
      node.fail("input {} is too large", ir::str(from));
  }
  e.points = e.points * ir::Dim(points);
  return e;
}

/// x [batch, channels, spatial..] by weight [out, channels / groups, kernel..], plus a bias [out].
/// `flipped`: the elements of the kernel backwards.
ir::Value* convolved(NodeImport& node, ir::Value* x, ir::Value* weight, ir::Value* bias,
                     const Window& w, bool flipped = false) {
  const ir::Shape from = x->type.shape, shape = weight->type.shape;
  const auto outputs = ir::Dim::divide(shape[0], w.groups);
  if (!outputs || !(from[1] == shape[1] * ir::Dim(w.groups)))
    node.fail("input {} and weight {} do not match {} groups", ir::str(from), ir::str(shape),
              w.groups);
  const Extents e = extents_of(node, from, shape, w);
  x = padded(node, x, w);
  ir::Value* sum = nullptr;
  for (std::int64_t tap = 0; tap < e.taps; ++tap) {
    Ints at(w.rank()), end(w.rank()), first(w.rank()), last(w.rank());
    ir::Value* window = x;
    std::int64_t rest = tap;
    for (std::size_t i = w.rank(); i-- > 0; rest /= w.kernel[i]) {
      const std::int64_t tap_i = rest % w.kernel[i];
      at[i] = flipped ? w.kernel[i] - 1 - tap_i : tap_i;
      end[i] = at[i] + 1;
      const std::int64_t offset = tap_i * w.dilations[i];
      if (from[i + 2].is_constant())
        first[i] = offset;
      else
        window = emit_shift(node, window, i + 2, offset - w.pads[i], node.scalar(0, x->type.dtype));
      last[i] = first[i] + e.ends[i];
    }
    ir::Value* columns = node.reshape(slice(node, window, first, last, w.strides),
                                      {from[0], w.groups, shape[1], e.points});
    ir::Value* rows = node.reshape(slice(node, weight, at, end, Ints(w.rank(), 1)),
                                   {w.groups, *outputs, shape[1]});
    ir::Value* matmul = node.emit("MatMul", {rows, columns});
    sum = sum ? node.add(sum, matmul) : matmul;
  }
  if (bias) sum = node.add(sum, node.reshape(bias, {w.groups, *outputs, 1}));
  return node.reshape(sum, e.result);
}

/// True if the windows are the input divided into equal parts, such as the patches of an image.
bool is_divided(const Window& w, const ir::Shape& from) {
  for (std::size_t i = 0; i < w.rank(); ++i) {
    if (w.pads[i] != 0 || w.pads[w.rank() + i] != 0 || w.strides[i] != w.kernel[i] ||
        (w.dilations[i] != 1 && w.kernel[i] != 1))
      return false;
    if (w.kernel[i] != 1 && (!from[i + 2].is_constant() || from[i + 2].constant() < w.kernel[i]))
      return false;
  }
  return w.groups == 1;
}

/// Such a convolution is one linear layer over the parts, of all their elements: `op`, a MatMul of
/// them by the weight with further operands, and a bias.
ir::Value* convolved_parts(NodeImport& node, ir::Value* x, ir::Value* weight, ir::Value* bias,
                           const Window& w, const char* op = "MatMul",
                           std::vector<ir::Value*> further = {}) {
  const ir::Shape from = x->type.shape, shape = weight->type.shape;
  if (from[1] != shape[1])
    node.fail("input {} and weight {} do not match", ir::str(from), ir::str(shape));
  ir::Shape divided{from[0], from[1]}, result{from[0]};
  Ints ends, order{0}, inner{1}, channels_first{0, static_cast<std::int64_t>(w.rank()) + 1};
  ir::Dim count(1), depth = from[1];
  for (std::size_t i = 0; i < w.rank(); ++i) {
    const auto axis = static_cast<std::int64_t>(i);
    const ir::Dim n =
        w.kernel[i] == 1 ? from[i + 2] : ir::Dim(from[i + 2].constant() / w.kernel[i]);
    ends.push_back(w.kernel[i] == 1 ? std::numeric_limits<std::int64_t>::max()
                                    : n.constant() * w.kernel[i]);
    divided.insert(divided.end(), {n, ir::Dim(w.kernel[i])});
    order.push_back(2 + 2 * axis);
    inner.push_back(3 + 2 * axis);
    channels_first.push_back(axis + 1);
    result.push_back(n);
    count = count * n;
    depth = depth * ir::Dim(w.kernel[i]);
  }
  order.insert(order.end(), inner.begin(), inner.end());
  result.push_back(shape[0]);
  const Ints zeros(w.rank(), 0), ones(w.rank(), 1);
  ir::Value* rows =
      node.reshape(node.transpose(node.reshape(slice(node, x, zeros, ends, ones), divided), order),
                   {from[0], count, depth});
  ir::Value* matrix = node.transpose_last_two(node.reshape(weight, {shape[0], depth}));
  std::vector<ir::Value*> operands{rows, matrix};
  operands.insert(operands.end(), further.begin(), further.end());
  ir::Value* y = node.emit(op, std::move(operands));
  if (bias) y = node.add(y, bias);
  return node.transpose(node.reshape(y, result), channels_first);
}

ir::Value* convolution(NodeImport& node, ir::Value* x, ir::Value* weight, ir::Value* bias) {
  const Window w = window_of(node, x->type.shape, weight->type.shape);
  return is_divided(w, x->type.shape) ? convolved_parts(node, x, weight, bias, w)
                                      : convolved(node, x, weight, bias, w);
}

void import_conv(NodeImport& node) {
  node.set_output(
      0, convolution(node, node.input(0, kFloatTypes), node.input(1), node.optional_input(2)));
}

/// ConvInteger(x, weight, x_zero_point, weight_zero_point)
void import_conv_integer(NodeImport& node) {
  ir::Value *x = node.input(0), *weight = node.input(1);
  const Window w = window_of(node, x->type.shape, weight->type.shape);
  if (!is_divided(w, x->type.shape))
    node.fail(
        "integer convolution is supported only for group 1 and non-overlapping windows without "
        "padding, as in patch embeddings (quantize only MatMuls)");
  node.set_output(0, convolved_parts(node, x, weight, nullptr, w, "MatMulInteger",
                                     {node.optional_input(2), node.optional_input(3)}));
}

/// x with strides - 1 zeros after every element of the spatial axes.
ir::Value* stretched(NodeImport& node, ir::Value* x, const Ints& strides) {
  const ir::Shape& from = x->type.shape;
  ir::Shape apart{from[0], from[1]}, merged{from[0], from[1]};
  Ints pads(2 * (2 + 2 * strides.size()), 0);
  for (std::size_t i = 0; i < strides.size(); ++i) {
    apart.push_back(from[i + 2]);
    apart.emplace_back(1);
    merged.push_back(from[i + 2] * ir::Dim(strides[i]));
    pads[pads.size() / 2 + 3 + 2 * i] = strides[i] - 1;
  }
  return node.reshape(node.emit("Pad", {node.reshape(x, apart)}, {{"pads", pads}}), merged);
}

/// ConvTranspose(x, weight [channels, out / groups, kernel..], bias): a convolution of the
/// stretched input with the kernel backwards.
void import_conv_transpose(NodeImport& node) {
  ir::Value *x = node.input(0, kFloatTypes), *weight = node.input(1);
  if (node.attribute("output_shape")) node.fail("attribute 'output_shape' is not supported");
  if (const std::string padding = node.string_attribute("auto_pad", "NOTSET");
      padding.starts_with("SAME"))
    node.fail("auto_pad '{}' is not supported", padding);
  Window w = window_of(node, x->type.shape, weight->type.shape);
  const Ints end = spatial(node, "output_padding", w.rank(), 0, 0);
  const ir::Shape shape = weight->type.shape;
  const auto inputs = ir::Dim::divide(shape[0], w.groups);
  if (!inputs) node.fail("the number of channels is not a multiple of the number of groups");
  ir::Shape grouped{w.groups, *inputs, shape[1]}, turned{shape[1] * ir::Dim(w.groups), *inputs};
  Ints perm{0, 2, 1};
  for (std::size_t i = 0; i < w.rank(); ++i) {
    grouped.push_back(shape[i + 2]);
    turned.push_back(shape[i + 2]);
    perm.push_back(static_cast<std::int64_t>(i) + 3);
    w.pads[i] = w.reach(i) - 1 - w.pads[i];
    w.pads[w.rank() + i] = w.reach(i) - w.pads[w.rank() + i] + end[i] - w.strides[i];
    if (w.pads[i] < 0 || w.pads[w.rank() + i] < 0)
      node.fail("pads larger than the kernel are not supported");
  }
  weight = node.reshape(node.transpose(node.reshape(weight, grouped), perm), turned);
  x = stretched(node, x, w.strides);
  w.strides.assign(w.rank(), 1);
  node.set_output(0, convolved(node, x, weight, node.optional_input(2), w, true));
}

struct Parameters {
  ir::Value *scale, *zero;
  ir::Attributes attributes;
};
/// Scale and zero point in the spelling of QuantizeLinear; more than one are along axis 0.
Parameters parameters(NodeImport& node, std::size_t first) {
  ir::Value *scale = node.input(first), *zero = node.input(first + 1);
  if (ir::is_scalar(scale)) return {node.reshape(scale, {}), node.reshape(zero, {}), {}};
  return {scale, zero, {{"axis", 0}}};
}

/// QLinearConv(x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias): the convolution of
/// real numbers between DequantizeLinear and QuantizeLinear; the bias is in steps of both scales.
void import_qlinear_conv(NodeImport& node) {
  const auto x = parameters(node, 1), w = parameters(node, 4), y = parameters(node, 6);
  ir::Value* bias = node.optional_input(8);
  if (bias && bias->type.dtype != ir::DType::i32)
    node.fail("the bias '{}' is {}, expected i32", bias->name, ir::str(bias->type));
  if (bias) bias = node.mul(node.cast(bias, x.scale->type.dtype), node.mul(x.scale, w.scale));
  ir::Value* image =
      node.emit("DequantizeLinear", {node.input(0, kByteTypes), x.scale, x.zero}, x.attributes);
  ir::Value* weight =
      node.emit("DequantizeLinear", {node.input(3, kByteTypes), w.scale, w.zero}, w.attributes);
  ir::Value* real = convolution(node, image, weight, bias);
  node.emit_outputs("QuantizeLinear", {real, y.scale, y.zero}, y.attributes);
}

}  // namespace

Rules conv_rules() {
  const std::set<std::string> attributes{"auto_pad",     "dilations", "group",
                                         "kernel_shape", "pads",      "strides"};
  std::set<std::string> transposed = attributes;
  transposed.insert({"output_padding", "output_shape"});
  return {{"Conv", {import_conv, attributes}},
          {"ConvInteger", {import_conv_integer, attributes}},
          {"ConvTranspose", {import_conv_transpose, transposed}},
          {"QLinearConv", {import_qlinear_conv, attributes}}};
}

}  // namespace bertcl::onnx_io
