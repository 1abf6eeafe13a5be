// SPDX-License-Identifier: Apache-2.0
// Operators of com.microsoft whose weights are stored in a few bits, with a scale for each block of
// them. The weights are constants, and become floats here: MatMul and Gather of float weights.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "onnx/block_weights.hpp"
#include "onnx/importer.hpp"

namespace bertcl::onnx_io {
namespace {

constexpr std::int64_t kLargestBlock = std::int64_t{1} << 30;

/// Operand i, which must be constant, also after Identity; null if it is absent and not `needed`.
const ir::Value* constant_operand(NodeImport& node, std::size_t i, const char* name,
                                  bool needed = true) {
  const ir::Value* value = needed ? node.input(i) : node.optional_input(i);
  while (value && value->producer && value->producer->op == "Identity")
    value = value->producer->inputs[0];
  if (value && !value->is_constant())
    node.fail("operand {} '{}' ({}) must be constant", i, value->name, name);
  return value;
}

/// Throws unless the value is of that type and has one of these shapes.
void check_operand(NodeImport& node, const ir::Value* value, const char* name, ir::DType type,
                   const std::vector<ir::Sizes>& shapes) {
  if (!value) return;
  for (const ir::Sizes& shape : shapes)
    if (value->type.dtype == type && value->constant->shape() == shape) return;
  std::set<std::string> expected;
  for (const ir::Sizes& shape : shapes)
    expected.insert(fmt::format("{}[{}]", ir::name_of(type), fmt::join(shape, ", ")));
  node.fail("operand '{}' ({}) is {}, expected {}", value->name, name, ir::str(value->type),
            fmt::join(expected, " or "));
}

/// Throws unless the value holds finite floats.
void check_finite(NodeImport& node, const ir::Value* value, const char* name) {
  const std::vector<double> numbers = value->constant->to_doubles();
  for (std::size_t i = 0; i < numbers.size(); ++i)
    if (!std::isfinite(numbers[i]))
      node.fail("operand '{}' ({}) is {} at element {}, expected a finite number", value->name,
                name, numbers[i], i);
}

/// Scales are of the type of the activations, which kernels compute in f32.
void check_scales(NodeImport& node, const ir::Value* scales, const char* name,
                  const std::vector<ir::Sizes>& shapes) {
  const ir::DType type = scales->type.dtype;
  if (type != ir::DType::f32 && type != ir::DType::f16 && type != ir::DType::bf16)
    node.fail("operand '{}' ({}) is {}, expected f32, f16 or bf16", scales->name, name,
              ir::str(scales->type));
  check_operand(node, scales, name, type, shapes);
  check_finite(node, scales, name);
}

std::int64_t block_size(NodeImport& node, std::int64_t default_value) {
  const std::int64_t block = node.int_attribute("block_size", default_value);
  if (block < 16 || block > kLargestBlock || (block & (block - 1)) != 0)
    node.fail("block_size {} is not a power of 2 from 16 on", block);
  return block;
}

/// A constant operand's tensor, if there is one.
std::optional<ir::Tensor> tensor_of(const ir::Value* value) {
  if (!value) return std::nullopt;
  return *value->constant;
}

std::int64_t number_of_bits(NodeImport& node) {
  const std::int64_t bits = node.int_attribute("bits", 4);
  if (bits != 2 && bits != 4 && bits != 8)
    node.fail("{} bits are not supported (supported: 2, 4, 8)", bits);
  return bits;
}

struct WeightExtents {
  std::int64_t k, n;
};
WeightExtents weight_extents(NodeImport& node) {
  const WeightExtents e{node.int_attribute("K", 0), node.int_attribute("N", 0)};
  std::int64_t elements = 0;
  if (e.k < 1 || e.n < 1 || __builtin_mul_overflow(e.k, e.n, &elements))
    node.fail("attributes K = {} and N = {} must be positive, and K * N below 2^63", e.k, e.n);
  return e;
}

/// The weight of this node, made by `make` of operands `first` to `last` unless an earlier node
/// reads it under the same attributes.
template <class F>
ir::Value* shared_weight(NodeImport& node, std::size_t first, std::size_t last,
                         std::int64_t elements, ir::DType type, F&& make) {
  std::vector<const void*> key;
  for (std::size_t i = first; i <= last; ++i) key.push_back(node.optional_input(i));
  std::string settings = node.proto().op_type();
  for (const char* name : {"K", "N", "bits", "block_size", "quant_type", "quantize_axis"})
    settings += fmt::format(" {}", node.int_attribute(name, -1));
  ir::Value*& weight = node.importer().made_weights[{settings, key}];
  if (!weight) {
    node.importer().take_memory(elements, type);
    weight = node.constant(make(), "weight");
  }
  return weight;
}

/// MatMulNBits(A, B, scales, zero_points, g_idx, bias). `accuracy_level` allows less precision than
/// that of A, which is not used.
void import_matmul_nbits(NodeImport& node) {
  const WeightExtents extents = weight_extents(node);
  const std::int64_t k = extents.k, n = extents.n;
  const std::int64_t bits = number_of_bits(node), block = block_size(node, 0);
  if (node.int_attribute("weight_prepacked", 0) != 0)
    node.fail(
        "weight_prepacked is not supported: the weight has a GPU-specific layout; export the model "
        "without it");
  const ir::Value *b = constant_operand(node, 1, "B"),
                  *scales = constant_operand(node, 2, "scales"),
                  *zeros = constant_operand(node, 3, "zero_points", false),
                  *groups = constant_operand(node, 4, "g_idx", false);
  const std::int64_t blocks = k / block + (k % block != 0);
  check_operand(node, b, "B", ir::DType::u8, {{n, blocks, block / 8 * bits}});
  check_scales(node, scales, "scales", {{n, blocks}, {n * blocks}});
  const ir::DType type = scales->type.dtype;
  if (zeros && zeros->type.dtype == ir::DType::u8) {
    const std::int64_t bytes = bytes_of(blocks, static_cast<int>(bits));
    check_operand(node, zeros, "zero_points", ir::DType::u8, {{n, bytes}, {n * bytes}});
  } else if (zeros) {
    check_operand(node, zeros, "zero_points", type, {{n, blocks}, {n * blocks}});
    check_finite(node, zeros, "zero_points");
  }
  check_operand(node, groups, "g_idx", ir::DType::i32, {{k}, {blocks * block}});
  if (groups)
    for (const std::int64_t group : groups->constant->to_ints())
      if (group < 0 || group >= blocks)
        node.fail("operand '{}' (g_idx) holds {}, expected 0 to {}", groups->name, group,
                  blocks - 1);
  ir::Value* weight = shared_weight(node, 1, 4, k * n, type, [&] {
    return dequantized(NBitsMatrix{k, n, block, static_cast<int>(bits), *b->constant,
                                   *scales->constant, tensor_of(zeros), tensor_of(groups)});
  });
  ir::Value* bias = node.optional_input(5);
  if (!bias) return node.emit_outputs("MatMul", {node.input(0), weight});
  if (bias->type.shape != ir::Shape{n})
    node.fail("operand '{}' (bias) is {}, expected {} elements", bias->name, ir::str(bias->type),
              n);
  node.emit_outputs("Add", {node.emit("MatMul", {node.input(0), weight}), bias});
}

/// MatMulBnb4(A, B, absmax), in the blocks of bitsandbytes: over the rows of the whole weight.
void import_matmul_bnb4(NodeImport& node) {
  const WeightExtents extents = weight_extents(node);
  const std::int64_t k = extents.k, n = extents.n;
  const std::int64_t block = block_size(node, 0), kind = node.int_attribute("quant_type", -1);
  if (kind != 0 && kind != 1)
    node.fail("quant_type {} is not supported (supported: 0 for FP4, 1 for NF4)", kind);
  if (node.int_attribute("transB", 1) != 1)
    node.fail("transB 0 is not supported (it is used for gradients only)");
  const ir::Value *b = constant_operand(node, 1, "B"),
                  *largest = constant_operand(node, 2, "absmax");
  const std::int64_t count = k * n;
  check_operand(node, b, "B", ir::DType::u8, {{bytes_of(count, 4)}});
  check_scales(node, largest, "absmax", {{count / block + (count % block != 0)}});
  ir::Value* weight = shared_weight(node, 1, 2, count, largest->type.dtype, [&] {
    return dequantized(Bnb4Matrix{k, n, block, kind == 1, *b->constant, *largest->constant});
  });
  node.emit_outputs("MatMul", {node.input(0), weight});
}

/// The data of GatherBlockQuantized, a number to each byte. Those of 2 and 4 bits in u8 lie several
/// to a byte along the last axis.
ir::Tensor table_data(const ir::Tensor& data, int bits, std::int64_t columns) {
  if (bits == 8) return data;
  ir::Sizes sizes = data.shape();
  sizes.back() = columns;
  return widen_to_bytes({"", bits, false}, std::move(sizes), data.as<std::uint8_t>(), true);
}

/// GatherBlockQuantized(data, indices, scales, zero_points)
void import_gather_block_quantized(NodeImport& node) {
  const ir::Value *data = constant_operand(node, 0, "data"),
                  *scales = constant_operand(node, 2, "scales"),
                  *zeros = constant_operand(node, 3, "zero_points", false);
  const bool in_few_bits = !node.importer().sub_bytes().name_of(data).empty();
  const std::int64_t block = block_size(node, 128), bits = in_few_bits ? 8 : number_of_bits(node);
  ir::Sizes sizes = data->constant->shape();
  const auto axis_of = [&](const char* name, std::int64_t default_value) {
    return node.axis_within(node.int_attribute(name, default_value), sizes.size(), name);
  };
  const std::int64_t gather_axis = axis_of("gather_axis", 0), axis = axis_of("quantize_axis", 1);
  if (!in_few_bits && data->type.dtype != ir::DType::u8)
    node.fail("operand '{}' (data) is {}, expected u8, int4 or uint4", data->name,
              ir::str(data->type));
  if (!in_few_bits && (gather_axis != 0 || (bits < 8 && axis == 0)))
    node.fail(
        "u8 data requires gather_axis 0 and, below 8 bits, a quantize_axis other than 0; found "
        "gather_axis {} and quantize_axis {}",
        gather_axis, axis);
  sizes.back() *= 8 / bits;
  ir::Sizes of_scales = sizes;
  std::int64_t& blocks = of_scales[axis];
  blocks = blocks / block + (blocks % block != 0);
  check_scales(node, scales, "scales", {of_scales});
  ir::Sizes of_zeros = of_scales;
  if (!of_zeros.empty()) of_zeros.back() = bytes_of(of_zeros.back(), static_cast<int>(bits));
  check_operand(node, zeros, "zero_points", data->type.dtype, {of_zeros});
  const std::int64_t count = ir::element_count(sizes);
  ir::Value* weight = shared_weight(node, 0, 3, count, scales->type.dtype, [&] {
    std::optional<ir::Tensor> zero_points;
    if (zeros) zero_points = table_data(*zeros->constant, static_cast<int>(bits), of_scales.back());
    return dequantized(BlockedTensor{
        table_data(*data->constant, static_cast<int>(bits), sizes.back()), axis, block,
        *scales->constant, std::move(zero_points), in_few_bits ? 0 : 1 << (bits - 1)});
  });
  node.emit_outputs("Gather", {weight, node.input(1)}, {{"axis", gather_axis}});
}

}  // namespace

Rules block_weights_rules() {
  return {
      {"com.microsoft::MatMulNBits",
       {import_matmul_nbits,
        {"K", "N", "bits", "block_size", "accuracy_level", "weight_prepacked"}}},
      {"com.microsoft::MatMulBnb4",
       {import_matmul_bnb4, {"K", "N", "block_size", "quant_type", "transB", "training_mode"}}},
      {"com.microsoft::GatherBlockQuantized",
       {import_gather_block_quantized, {"bits", "block_size", "gather_axis", "quantize_axis"}}},
  };
}

}  // namespace bertcl::onnx_io
