// SPDX-License-Identifier: Apache-2.0
// Convolutions, which some exporters write around or in place of linear layers, as a sum of matrix
// MatMuls: one for each element of the kernel, over a strided slice of the padded input.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "onnx/importer.hpp"

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
constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();

Ints spatial(NodeImport& node, const char* name, std::size_t count, std::int64_t otherwise,
             std::int64_t least) {
  Ints list = node.ints_attribute(name).value_or(Ints(count, otherwise));
  if (list.size() != count)
    node.fail(fmt::format("attribute '{}' has {} entries, expected {}", name, list.size(), count));
  for (const std::int64_t n : list)
    if (n < least || n > most)
      node.fail(fmt::format("attribute '{}' holds {} (supported: {} to {})", name, n, least, most));
  return list;
}

Window window_of(NodeImport& node, const ir::Shape& x, const ir::Shape& weight) {
  if (x.size() < 3 || weight.size() != x.size())
    node.fail(fmt::format("input {} and weight {} do not match", ir::str(x), ir::str(weight)));
  const std::size_t rank = x.size() - 2;
  Window w{{},
           spatial(node, "strides", rank, 1, 1),
           spatial(node, "dilations", rank, 1, 1),
           spatial(node, "pads", 2 * rank, 0, -most),
           node.int_attribute("group", 1)};
  if (w.groups < 1) node.fail(fmt::format("attribute 'group' is {}", w.groups));
  for (std::size_t i = 0; i < rank; ++i) {
    if (!weight[i + 2].is_constant() || !x[i + 2].is_constant())
      node.fail("the spatial extents of input and weight must be constant");
    if (weight[i + 2].constant() < 1 || std::max(weight[i + 2], x[i + 2]).constant() > most)
      node.fail(fmt::format("input {} or weight {} is too large, or the kernel is empty",
                            ir::str(x), ir::str(weight)));
    w.kernel.push_back(weight[i + 2].constant());
  }
  const std::string padding = node.string_attribute("auto_pad", "NOTSET");
  if (padding == "SAME_UPPER" || padding == "SAME_LOWER") {
    for (std::size_t i = 0; i < rank; ++i) {
      const std::int64_t extent = x[i + 2].constant();
      const std::int64_t out = (extent + w.strides[i] - 1) / w.strides[i];
      const std::int64_t all =
          std::max<std::int64_t>(0, (out - 1) * w.strides[i] + w.reach(i) - extent);
      const std::int64_t before = padding == "SAME_UPPER" ? all / 2 : all - all / 2;
      w.pads[i] = before;
      w.pads[rank + i] = all - before;
    }
  } else if (padding != "NOTSET" && padding != "VALID") {
    node.fail(fmt::format("auto_pad '{}' is not supported", padding));
  }
  return w;
}

ir::Value* ints(NodeImport& node, const Ints& list) {
  return node.constant(ir::Tensor::of<std::int64_t>({static_cast<std::int64_t>(list.size())}, list),
                       "slice");
}
/// x[.., starts[i] : ends[i] : steps[i], ..] over the spatial axes.
ir::Value* slice(NodeImport& node, ir::Value* x, const Ints& starts, const Ints& ends,
                 const Ints& steps) {
  Ints axes;
  for (std::size_t i = 0; i < starts.size(); ++i) axes.push_back(static_cast<std::int64_t>(i) + 2);
  return node.emit("Slice",
                   {x, ints(node, starts), ints(node, ends), ints(node, axes), ints(node, steps)});
}

ir::Value* padded(NodeImport& node, ir::Value* x, const Window& w) {
  if (std::all_of(w.pads.begin(), w.pads.end(), [](std::int64_t p) { return p == 0; })) return x;
  Ints pads(2 * (w.rank() + 2), 0);
  for (std::size_t i = 0; i < w.rank(); ++i) {
    pads[i + 2] = w.pads[i];
    pads[w.rank() + 4 + i] = w.pads[w.rank() + i];
  }
  return node.emit("Pad", {x}, {{"pads", pads}});
}

/// x [batch, channels, spatial..] by weight [out, channels / groups, kernel..], plus a bias [out].
/// `flipped`: the elements of the kernel backwards.
ir::Value* convolved(NodeImport& node, ir::Value* x, ir::Value* weight, ir::Value* bias,
                     const Window& w, bool flipped = false) {
  const ir::Shape from = x->type.shape, shape = weight->type.shape;
  const auto outputs = ir::Dim::divide(shape[0], w.groups);
  if (!outputs || !(from[1] == shape[1] * ir::Dim(w.groups)))
    node.fail(fmt::format("input {} and weight {} do not match {} groups", ir::str(from),
                          ir::str(shape), w.groups));
  x = padded(node, x, w);
  Ints ends;
  ir::Shape result{from[0], shape[0]};
  std::int64_t points = 1, taps = 1;
  for (std::size_t i = 0; i < w.rank(); ++i) {
    const std::int64_t extent = from[i + 2].constant() + w.pads[i] + w.pads[w.rank() + i];
    const std::int64_t count = (extent - w.reach(i)) / w.strides[i] + 1;
    if (extent < w.reach(i)) node.fail("the kernel is larger than the input");
    ends.push_back((count - 1) * w.strides[i] + 1);
    result.emplace_back(count);
    if (__builtin_mul_overflow(points, count, &points) ||
        __builtin_mul_overflow(taps, w.kernel[i], &taps))
      node.fail(fmt::format("input {} or weight {} is too large", ir::str(from), ir::str(shape)));
  }
  ir::Value* sum = nullptr;
  for (std::int64_t tap = 0; tap < taps; ++tap) {
    Ints at(w.rank()), end(w.rank()), first(w.rank()), last(w.rank());
    std::int64_t rest = tap;
    for (std::size_t i = w.rank(); i-- > 0; rest /= w.kernel[i]) {
      const std::int64_t tap_i = rest % w.kernel[i];
      at[i] = flipped ? w.kernel[i] - 1 - tap_i : tap_i;
      end[i] = at[i] + 1;
      first[i] = tap_i * w.dilations[i];
      last[i] = first[i] + ends[i];
    }
    ir::Value* columns =
        node.reshape(slice(node, x, first, last, w.strides), {from[0], w.groups, shape[1], points});
    ir::Value* rows = node.reshape(slice(node, weight, at, end, Ints(w.rank(), 1)),
                                   {w.groups, *outputs, shape[1]});
    ir::Value* matmul = node.emit("MatMul", {rows, columns});
    sum = sum ? node.add(sum, matmul) : matmul;
  }
  if (bias) sum = node.add(sum, node.reshape(bias, {w.groups, *outputs, 1}));
  return node.reshape(sum, result);
}

void import_conv(NodeImport& node) {
  ir::Value *x = node.need(0), *weight = node.need(1);
  node.bind(0, convolved(node, x, weight, node.in(2),
                         window_of(node, x->type.shape, weight->type.shape)));
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
  ir::Value *x = node.need(0), *weight = node.need(1);
  if (node.attribute("output_shape")) node.fail("attribute 'output_shape' is not supported");
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
  node.bind(0, convolved(node, x, weight, node.in(2), w, true));
}

struct Parameters {
  ir::Value *scale, *zero;
  ir::Attributes attributes;
};
/// Scale and zero point in the spelling of QuantizeLinear; more than one are along axis 0.
Parameters parameters(NodeImport& node, std::size_t first) {
  ir::Value *scale = node.need(first), *zero = node.need(first + 1);
  if (ir::element_count(scale->type.shape) == ir::Dim(1))
    return {node.reshape(scale, {}), node.reshape(zero, {}), {}};
  return {scale, zero, {{"axis", std::int64_t{0}}}};
}

/// QLinearConv(x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias): the convolution of
/// real numbers between DequantizeLinear and QuantizeLinear; the bias is in steps of both scales.
void import_qlinear_conv(NodeImport& node) {
  const auto x = parameters(node, 1), w = parameters(node, 4), y = parameters(node, 6);
  ir::Value* bias = node.in(8);
  if (bias && bias->type.dtype != ir::DType::i32)
    node.fail(fmt::format("the bias '{}' is {}, expected i32", bias->name, ir::str(bias->type)));
  if (bias) bias = node.mul(node.cast(bias, x.scale->type.dtype), node.mul(x.scale, w.scale));
  ir::Value* image = node.emit("DequantizeLinear", {node.need(0), x.scale, x.zero}, x.attributes);
  ir::Value* weight = node.emit("DequantizeLinear", {node.need(3), w.scale, w.zero}, w.attributes);
  ir::Value* real =
      convolved(node, image, weight, bias, window_of(node, image->type.shape, weight->type.shape));
  node.finish("QuantizeLinear", {real, y.scale, y.zero}, y.attributes);
}

}  // namespace

Rules conv_rules() {
  const std::set<std::string> attributes{"auto_pad",     "dilations", "group",
                                         "kernel_shape", "pads",      "strides"};
  std::set<std::string> transposed = attributes;
  transposed.insert({"output_padding", "output_shape"});
  return {{"Conv", {import_conv, attributes}},
          {"ConvTranspose", {import_conv_transpose, transposed}},
          {"QLinearConv", {import_qlinear_conv, attributes}}};
}

}  // namespace bertcl::onnx_io
