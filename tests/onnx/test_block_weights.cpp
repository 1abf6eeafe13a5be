// SPDX-License-Identifier: Apache-2.0
// Weights in a few bits with a scale for each block: the importer's floats against plain loops,
// over random extents.
#include <array>
#include <cmath>

#include "ops/interpret.hpp"
#include "tests/onnx/block_models.hpp"

namespace bertcl::onnx_io {
namespace {

using tests::bytes_of_floats;
using tests::floats_of;
using tests::Ints;
using tests::OneNode;
using tests::Random;
using tests::several_to_a_byte;

/// The constant that a rule made for y.
std::vector<float> weight_of(const ir::Graph& graph) {
  const ir::Value* weight = graph.find_value("y/weight");
  return weight && weight->is_constant() ? floats_of(*weight->constant) : std::vector<float>();
}

float half(float v) {
  return floats_of(ir::Tensor::of<float>({1}, {v}).converted(ir::DType::f16)).front();
}

enum class Zeros { absent, whole, real };

/// A random MatMulNBits, and its weight by the definition.
struct NBits {
  int bits, block, k, n, blocks, type;
  bool flat, grouped, biased;
  Zeros zeros;
  Ints q, groups, zero;
  std::vector<float> scale, real_zero, bias;

  explicit NBits(Random& random)
      : bits(1 << random.whole(1, 3)),
        block(16 << random.whole(0, 2)),
        k(random.whole(1, 150)),
        n(random.whole(1, 40)),
        blocks((k + block - 1) / block),
        type(random.whole(0, 3) == 0 ? tests::f16 : tests::f32),
        flat(random.coin()),
        grouped(random.whole(0, 3) == 0),
        biased(random.coin()),
        zeros(static_cast<Zeros>(random.whole(0, 2))) {
    const int top = (1 << bits) - 1;
    q = random.wholes(n * blocks * block, 0, top);
    groups = random.wholes(random.coin() ? k : blocks * block, 0, blocks - 1);
    const auto scales = n * blocks;
    scale = random.floats(scales);
    zero = random.wholes(scales, 0, top);
    real_zero = random.floats(scales);
    bias = random.floats(n);
  }

  OneNode model() const {
    OneNode m("MatMulNBits");
    m.input("x", type, {"2", "3", std::to_string(k)});
    m.constant("w", tests::u8, {n, blocks, block / 8 * bits}, several_to_a_byte(q, bits, block));
    const auto shape = [&](std::int64_t columns) {
      return flat ? std::vector<std::int64_t>{n * columns} : std::vector<std::int64_t>{n, columns};
    };
    m.constant("s", type, shape(blocks), bytes_of_floats(scale, type));
    if (zeros == Zeros::absent) m.absent();
    if (zeros == Zeros::whole)
      m.constant("z", tests::u8, shape((blocks * bits + 7) / 8),
                 several_to_a_byte(zero, bits, blocks));
    if (zeros == Zeros::real)
      m.constant("z", type, shape(blocks), bytes_of_floats(real_zero, type));
    if (grouped)
      m.constant("g", tests::i32, {std::ssize(groups)},
                 {reinterpret_cast<const char*>(groups.data()), groups.size() * sizeof(int)});
    else
      m.absent();
    if (biased) m.constant("b", type, {n}, bytes_of_floats(bias, type));
    m.attribute("K", k).attribute("N", n).attribute("block_size", block);
    if (bits != 4) m.attribute("bits", bits);  // its default
    return m;
  }

  std::vector<float> weight() const {
    std::vector<float> w;
    for (int row = 0; row < k; ++row)
      for (int column = 0; column < n; ++column) {
        const int group = grouped ? groups[row] : row / block;
        const auto at = column * blocks + group;
        const auto integer = static_cast<float>(q[column * blocks * block + row]);
        const float z = zeros == Zeros::absent  ? static_cast<float>(1 << (bits - 1))
                        : zeros == Zeros::whole ? static_cast<float>(zero[at])
                                                : real_zero[at];
        // With these two ONNX Runtime rounds each product.
        const float product = integer * scale[at], shift = z * scale[at];
        const float value =
            grouped || zeros == Zeros::real ? product - shift : (integer - z) * scale[at];
        w.push_back(type == tests::f16 ? half(value) : value);
      }
    return w;
  }
};

TEST(BlockWeights, MatMulNBitsIsAMatMulOfItsFloats) {
  Random random(1);
  for (int i = 0; i < 300; ++i) {
    const NBits node(random);
    const ir::Graph graph = tests::read(node.model().model);
    SCOPED_TRACE(fmt::format("{}: {} bits, {} x {}, blocks of {}, zero points {}, g_idx {}", i,
                             node.bits, node.k, node.n, node.block, static_cast<int>(node.zeros),
                             node.grouped));
    const std::vector<float> w = node.weight();
    ASSERT_EQ(weight_of(graph), w);
    if (node.type == tests::f16) continue;
    const std::vector<float> x = random.floats(6 * node.k);
    const auto y = ops::interpret(graph, {{"x", ir::Tensor::of<float>({2, 3, node.k}, x)}});
    ASSERT_EQ(y[0].shape(), (ir::Sizes{2, 3, node.n}));
    for (int row = 0; row < 6; ++row)
      for (int column = 0; column < node.n; ++column) {
        double sum = node.biased ? node.bias[column] : 0, size = 1;
        for (int j = 0; j < node.k; ++j) {
          const double term = static_cast<double>(x[row * node.k + j]) * w[j * node.n + column];
          sum += term;
          size += std::abs(term);
        }
        ASSERT_NEAR(y[0].as<float>()[row * node.n + column], sum, 2e-6 * size)
            << row << " " << column;
      }
  }
}

TEST(BlockWeights, ScalesOfBf16MakeWeightsOfBf16) {
  constexpr int bf16 = 16;
  OneNode m("MatMulNBits");
  m.input("x", bf16, {"1", "16"})
      .constant("w", tests::u8, {1, 1, 8}, std::string(8, '\x93'))
      .constant("s", bf16, {1, 1}, "\x40\x3f")  // 0.75
      .attribute("K", 16)
      .attribute("N", 1)
      .attribute("block_size", 16);
  const ir::Graph graph = tests::read(m.model);
  const std::vector<float> w = weight_of(graph);
  ASSERT_EQ(w.size(), 16u);
  EXPECT_EQ(w[14], (3 - 8) * 0.75f);
  EXPECT_EQ(w[15], (9 - 8) * 0.75f);
  EXPECT_EQ(graph.find_value("y/weight")->type.dtype, ir::DType::bf16);
}

/// Random data of GatherBlockQuantized or of a blocked DequantizeLinear, and its floats by the
/// definition.
struct Blocked {
  int bits, block, type;
  bool is_signed, has_zeros, in_u8;
  std::vector<std::int64_t> sizes, of_scales;
  std::int64_t axis;
  Ints q, zero;
  std::vector<float> scale;

  /// `in_u8`: as GatherBlockQuantized takes u8, several to a byte along the last axis.
  Blocked(Random& random, bool in_u8_, int smallest_block)
      : bits(1 << random.whole(1, in_u8_ ? 3 : 2)),
        block(smallest_block << random.whole(0, 2)),
        type(random.coin() ? tests::f16 : tests::f32),
        is_signed(!in_u8_ && random.coin()),
        has_zeros(random.coin()),
        in_u8(in_u8_),
        axis(random.whole(in_u8_ ? 1 : 0, 2)) {
    for (int d = 0; d < 3; ++d) sizes.push_back(random.whole(1, d == axis ? 90 : 9));
    if (in_u8) sizes[2] *= 8 / bits;
    of_scales = sizes;
    auto& blocks = of_scales[axis];
    blocks = (blocks + block - 1) / block;
    const int low = is_signed ? -(1 << (bits - 1)) : 0;
    q = random.wholes(ir::element_count(sizes), low, low + (1 << bits) - 1);
    const auto scales = ir::element_count(of_scales);
    zero = random.wholes(scales, low, low + (1 << bits) - 1);
    scale = random.floats(scales);
  }

  int onnx_type() const {
    if (in_u8) return tests::u8;
    return bits == 4 ? (is_signed ? tests::int4 : tests::uint4)
                     : (is_signed ? tests::int2 : tests::uint2);
  }
  void add(OneNode& m, const char* name, const Ints& values, std::vector<std::int64_t> dims) const {
    // Tensors of few bits are one row, u8 has rows of whole bytes.
    const std::int64_t columns = in_u8 ? dims.back() : ir::element_count(dims);
    if (in_u8) dims.back() = (dims.back() * bits + 7) / 8;
    m.constant(name, onnx_type(), dims, several_to_a_byte(values, bits, columns));
  }
  void add_scales(OneNode& m) const {
    m.constant("s", type, of_scales, bytes_of_floats(scale, type));
    if (has_zeros) add(m, "z", zero, of_scales);
  }
  std::vector<float> weight() const {
    const std::int64_t inner = ir::element_count(ir::Sizes{sizes.begin() + axis + 1, sizes.end()});
    const auto extent = sizes[axis];
    const auto blocks = of_scales[axis];
    std::vector<float> w;
    for (std::int64_t i = 0; i < ir::element_count(sizes); ++i) {
      const std::int64_t outer = i / inner / extent, along = i / inner % extent;
      const auto at = (outer * blocks + along / block) * inner + i % inner;
      const int z = has_zeros ? zero[at] : in_u8 ? 1 << (bits - 1) : 0;
      const float value = static_cast<float>(q[i] - z) * scale[at];
      w.push_back(type == tests::f16 ? half(value) : value);
    }
    return w;
  }
};

TEST(BlockWeights, GatherBlockQuantizedIsAGatherOfItsFloats) {
  Random random(2);
  for (int i = 0; i < 300; ++i) {
    const bool in_u8 = random.coin();
    const Blocked data(random, in_u8, 16);
    const std::int64_t gather_axis = in_u8 ? 0 : random.whole(0, 2);
    OneNode m("GatherBlockQuantized");
    data.add(m, "w", data.q, data.sizes);
    m.input("x", tests::i64, {"2"});
    data.add_scales(m);
    m.attribute("gather_axis", gather_axis - (random.coin() ? 3 : 0));
    if (data.axis != 1 || random.coin()) m.attribute("quantize_axis", data.axis);
    if (data.block != 128) m.attribute("block_size", data.block);
    if (in_u8 && data.bits != 4) m.attribute("bits", data.bits);
    SCOPED_TRACE(fmt::format("{}: {} bits in {}, {} along {}", i, data.bits, data.onnx_type(),
                             data.sizes[data.axis], data.axis));
    const ir::Graph graph = tests::read(m.model);
    const std::vector<float> w = data.weight();
    ASSERT_EQ(weight_of(graph), w);
    const std::int64_t rows = data.sizes[gather_axis];
    const std::int64_t last = rows - 1;
    const auto y = ops::interpret(graph, {{"x", ir::Tensor::of<std::int64_t>({2}, {last, 0})}});
    const std::int64_t inner =
        ir::element_count(ir::Sizes{data.sizes.begin() + gather_axis + 1, data.sizes.end()});
    std::vector<float> expected;
    for (std::int64_t outer = 0; outer < ir::element_count(data.sizes) / rows / inner; ++outer)
      for (const std::int64_t row : {last, std::int64_t{0}})
        for (std::int64_t j = 0; j < inner; ++j)
          expected.push_back(w[(outer * rows + row) * inner + j]);
    ASSERT_EQ(floats_of(y[0]), expected);
  }
}

TEST(BlockWeights, DequantizeLinearInBlocksOfAConstant) {
  Random random(3);
  for (int i = 0; i < 300; ++i) {
    const Blocked data(random, false, 1);
    OneNode m("DequantizeLinear", "");
    data.add(m, "w", data.q, data.sizes);
    data.add_scales(m);
    m.attribute("axis", data.axis).attribute("block_size", data.block);
    const ir::Graph graph = tests::read(m.model);
    const ir::Value* y = graph.outputs()[0].value;
    ASSERT_TRUE(y->is_constant());
    ASSERT_EQ(y->constant->shape(), data.sizes);
    ASSERT_EQ(floats_of(*y->constant), data.weight()) << i;
  }
}

/// The tables as bitsandbytes documents them; its FP4 is a sign and a number of 12ths.
TEST(BlockWeights, MatMulBnb4IsAMatMulOfItsFloats) {
  const std::array<float, 8> twelfths{0, 0.0625f, 8, 12, 4, 6, 2, 3};
  const std::array<float, 16> normal{-1.0f,        -0.69619280f, -0.52507305f, -0.39491749f,
                                     -0.28444138f, -0.18477343f, -0.09105004f, 0.0f,
                                     0.07958030f,  0.16093020f,  0.24611230f,  0.33791524f,
                                     0.44070983f,  0.56261700f,  0.72295684f,  1.0f};
  Random random(4);
  for (int i = 0; i < 100; ++i) {
    const int k = random.whole(1, 60), n = random.whole(1, 40), block = 16 << random.whole(0, 2);
    const bool nf4 = random.coin();
    const Ints q = random.wholes(k * n, 0, 15);
    const std::vector<float> largest = random.floats((k * n + block - 1) / block);
    std::string bytes;
    for (std::size_t j = 0; j < q.size(); j += 2)
      bytes.push_back(static_cast<char>(q[j] << 4 | (j + 1 < q.size() ? q[j + 1] : 0)));
    OneNode m("MatMulBnb4");
    m.input("x", tests::f32, {"1", std::to_string(k)})
        .constant("w", tests::u8, {std::ssize(bytes)}, bytes)
        .constant("s", tests::f32, {std::ssize(largest)}, bytes_of_floats(largest))
        .attribute("K", k)
        .attribute("N", n)
        .attribute("block_size", block)
        .attribute("quant_type", nf4);
    const std::vector<float> found = weight_of(tests::read(m.model));
    ASSERT_EQ(found.size(), q.size());
    for (int row = 0; row < k; ++row)
      for (int column = 0; column < n; ++column) {
        const int at = column * k + row, code = q[at];
        const float of_table =
            nf4 ? normal[code] : twelfths[code % 8] / 12 * (code < 8 ? 1.0f : -1.0f);
        ASSERT_FLOAT_EQ(found[row * n + column], of_table * largest[at / block])
            << row << " " << column;
      }
  }
}

}  // namespace
}  // namespace bertcl::onnx_io
