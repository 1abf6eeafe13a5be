// SPDX-License-Identifier: Apache-2.0
// Operands of weights in a few bits that do not fit are refused by name; nodes share weights, whose
// memory is limited.
#include <limits>

#include "tests/onnx/block_models.hpp"

namespace bertcl::onnx_io {
namespace {

using tests::bytes_of_floats;
using tests::failure;
using tests::OneNode;

/// A MatMulNBits of K 32 and N 3 whose operands are right.
OneNode small() {
  OneNode m("MatMulNBits");
  m.input("x", tests::f32, {"2", "32"})
      .constant("w", tests::u8, {3, 2, 8}, std::string(48, '\x37'))
      .constant("s", tests::f32, {3, 2}, bytes_of_floats({1, 2, 3, 4, 5, 6}))
      .constant("z", tests::u8, {3, 1}, "\x11\x11\x11")
      .attribute("K", 32)
      .attribute("N", 3)
      .attribute("bits", 4)
      .attribute("block_size", 16);
  return m;
}
onnx::TensorProto& tensor(OneNode& m, int i) {
  return *m.model.mutable_graph()->mutable_initializer(i);
}
void set(OneNode& m, const std::string& name, std::int64_t value) {
  for (auto& a : *m.node().mutable_attribute())
    if (a.name() == name) a.set_i(value);
}

TEST(BlockWeightErrors, WhatDoesNotFitIsRefusedByName) {
  ASSERT_EQ(failure(small().model), kNoError);
  const auto refused = [](const auto& change) {
    OneNode m = small();
    change(m);
    return failure(m.model);
  };
  const auto with = [&](const char* name, std::int64_t value) {
    return refused([&](OneNode& m) { set(m, name, value); });
  };
  EXPECT_THAT(with("bits", 3), HasSubstr("3 bits are not supported (supported: 2, 4, 8)"));
  EXPECT_THAT(with("block_size", 24), HasSubstr("block_size 24 is not a power of 2 from 16 on"));
  EXPECT_THAT(with("block_size", 8), HasSubstr("block_size 8"));
  EXPECT_THAT(with("block_size", std::int64_t{1} << 62), HasSubstr("is not a power of 2"));
  EXPECT_THAT(with("K", 0), HasSubstr("attributes K = 0 and N = 3 must be positive"));
  EXPECT_THAT(with("N", std::int64_t{1} << 61),
              HasSubstr("must be positive, and K * N below 2^63"));
  EXPECT_THAT(with("K", 48), HasSubstr("operand 'w' (B) is u8[3, 2, 8], expected u8[3, 3, 8]"));
  EXPECT_THAT(with("N", 4), HasSubstr("expected u8[4, 2, 8]"));
  EXPECT_THAT(with("K", 31), HasSubstr("32 against 31")) << "of x";
  EXPECT_THAT(refused([](OneNode& m) { m.attribute("weight_prepacked", 1); }),
              HasSubstr("weight_prepacked is not supported"));
  EXPECT_THAT(refused([](OneNode& m) { m.attribute("unknown", 1); }),
              HasSubstr("attribute 'unknown' is not supported"));
  EXPECT_THAT(refused([](OneNode& m) {
                tensor(m, 1).set_raw_data(
                    bytes_of_floats({1, 2, 3, 4, 5, std::numeric_limits<float>::quiet_NaN()}));
              }),
              HasSubstr("operand 's' (scales) is nan at element 5, expected a finite number"));
  EXPECT_THAT(refused([](OneNode& m) { tensor(m, 1).set_dims(0, 2), tensor(m, 1).set_dims(1, 3); }),
              HasSubstr("operand 's' (scales) is f32[2, 3], expected f32[3, 2] or f32[6]"));
  EXPECT_THAT(refused([](OneNode& m) { tensor(m, 2).set_data_type(tests::i8); }),
              HasSubstr("operand 'z' (zero_points) is i8[3, 1], expected f32[3, 2] or f32[6]"));
  EXPECT_THAT(
      refused([](OneNode& m) { m.constant("g", tests::i32, {32}, std::string(128, '\2')); }),
      HasSubstr("operand 'g' (g_idx) holds 33686018, expected 0 to 1"));
  EXPECT_THAT(
      refused([](OneNode& m) { m.constant("g", tests::i32, {31}, std::string(124, '\0')); }),
      HasSubstr("operand 'g' (g_idx) is i32[31], expected i32[32]"));
  EXPECT_THAT(refused([](OneNode& m) {
                m.absent().constant("b", tests::f32, {4}, bytes_of_floats({1, 2, 3, 4}));
              }),
              HasSubstr("operand 'b' (bias) is f32[4], expected 3 elements"));
  EXPECT_THAT(refused([](OneNode& m) {
                m.node().clear_input();
                m.node().add_input("x");
                m.node().add_input("x");
              }),
              HasSubstr("operand 1 'x' (B) must be constant"));
  EXPECT_THAT(refused([](OneNode& m) {
                tests::add_value(*m.model.mutable_graph()->add_input(), "h", tests::f16,
                                 {"2", "32"}),
                    m.node().set_input(0, "h");
              }),
              HasSubstr("different types"));
}

TEST(BlockWeightErrors, OfBnb4AreRefusedByName) {
  const auto refused = [](const char* name, std::int64_t value, int bytes = 24) {
    OneNode m("MatMulBnb4");
    m.input("x", tests::f32, {"2", "16"})
        .constant("w", tests::u8, {bytes}, std::string(bytes, '\x37'))
        .constant("s", tests::f32, {3}, bytes_of_floats({1, 2, 3}))
        .attribute("K", 16)
        .attribute("N", 3)
        .attribute("block_size", 16)
        .attribute("quant_type", 1)
        .attribute("transB", 1);
    set(m, name, value);
    return failure(m.model);
  };
  EXPECT_EQ(refused("", 0), kNoError);
  EXPECT_THAT(refused("quant_type", 2), HasSubstr("quant_type 2 is not supported"));
  EXPECT_THAT(refused("transB", 0), HasSubstr("transB 0 is not supported"));
  EXPECT_THAT(refused("block_size", 32),
              HasSubstr("operand 's' (absmax) is f32[3], expected f32[2]"));
  EXPECT_THAT(refused("", 0, 23), HasSubstr("operand 'w' (B) is u8[23], expected u8[24]"));
}

TEST(BlockWeightErrors, OfGatherBlockQuantizedAreRefusedByName) {
  const auto refused = [](const std::vector<std::pair<const char*, std::int64_t>>& attributes,
                          int type = tests::u8, std::int64_t columns = 16) {
    OneNode m("GatherBlockQuantized");
    m.constant("w", type, {2, columns}, std::string(32, '\x37'))
        .input("x", tests::i64, {"1"})
        .constant("s", tests::f32, {2, 2}, bytes_of_floats({1, 2, 3, 4}))
        .attribute("block_size", 16);
    for (const auto& [name, value] : attributes) m.attribute(name, value);
    return failure(m.model);
  };
  EXPECT_EQ(refused({}), kNoError);
  EXPECT_EQ(refused({{"gather_axis", 1}}, tests::int4, 32), kNoError);
  EXPECT_THAT(refused({{"gather_axis", 1}}), HasSubstr("u8 data requires gather_axis 0"));
  EXPECT_THAT(refused({{"quantize_axis", 0}}),
              HasSubstr("found gather_axis 0 and quantize_axis 0"));
  EXPECT_THAT(refused({{"quantize_axis", 2}}),
              HasSubstr("quantize_axis 2 is out of range for rank 2"));
  EXPECT_THAT(refused({{"gather_axis", -3}}), HasSubstr("gather_axis -3 is out of range"));
  EXPECT_THAT(refused({{"bits", 5}}), HasSubstr("5 bits are not supported"));
  EXPECT_THAT(refused({{"bits", 8}}),
              HasSubstr("operand 's' (scales) is f32[2, 2], expected f32[2, 1]"));
  EXPECT_THAT(refused({}, tests::i8),
              HasSubstr("operand 'w' (data) is i8[2, 16], expected u8, int4 or uint4"));
  EXPECT_THAT(refused({}, 17), HasSubstr("element type float8e4m3fn is not supported"));
}

/// Quantizers of blocks write negative scales, but no others do.
TEST(BlockWeightErrors, ScalesAreNegativeOnlyInBlocksOfIntegers) {
  const auto refused = [](const char* op, std::int64_t block, float scale) {
    OneNode m(op, "");
    m.input("x", op[0] == 'D' ? tests::i8 : tests::f32, {"2"})
        .constant("s", tests::f32, {2}, bytes_of_floats({1, scale}))
        .attribute("axis", 0)
        .attribute("block_size", block);
    return failure(m.model);
  };
  EXPECT_EQ(refused("DequantizeLinear", 1, -1), kNoError);
  EXPECT_THAT(refused("DequantizeLinear", 0, -1),
              HasSubstr("scale 's' is -1 at element 1, expected a finite number of at least 0"));
  EXPECT_THAT(refused("QuantizeLinear", 1, -1),
              HasSubstr("scale 's' is -1 at element 1, expected a finite number above 0"));
  EXPECT_THAT(refused("DequantizeLinear", 1, std::numeric_limits<float>::infinity()),
              HasSubstr("scale 's' is inf at element 1, expected a finite number"));
}

TEST(BlockWeightErrors, NodesOfOneWeightShareItsFloats) {
  OneNode m = small();
  onnx::NodeProto& second = *m.model.mutable_graph()->add_node();
  second = m.node();
  second.set_output(0, "z2");
  m.model.mutable_graph()->add_output()->set_name("z2");
  const ir::Graph graph = tests::read(m.model);
  EXPECT_EQ(graph.outputs()[0].value->producer->inputs[1],
            graph.outputs()[1].value->producer->inputs[1]);
  m.model.mutable_graph()->mutable_node(1)->set_input(3, "");
  const ir::Graph other = tests::read(m.model);
  EXPECT_NE(other.outputs()[0].value->producer->inputs[1],
            other.outputs()[1].value->producer->inputs[1])
      << "of other zero points";
}

TEST(BlockWeightErrors, MemoryForThemIsLimited) {
  ReadOptions options;
  options.limits.memory = 4 * 32 * 3;
  EXPECT_NO_THROW(tests::read(small().model, options));
  --options.limits.memory;
  EXPECT_ERROR(
      HasSubstr("node 'n' (com.microsoft::MatMulNBits): block-quantized weights take more than 383 "
                "bytes as floats (raise 'max_memory')"),
      tests::read(small().model, options));
}

}  // namespace
}  // namespace bertcl::onnx_io
