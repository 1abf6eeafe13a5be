// SPDX-License-Identifier: Apache-2.0
// Tensors of 2 and 4 bits: every field that may hold them, wrong sizes, and operators that must not
// read them as i8 and u8.
#include <fstream>

#include "onnx/sub_byte.hpp"
#include "ops/interpret.hpp"
#include "tests/onnx/block_models.hpp"

namespace bertcl::onnx_io {
namespace {

using tests::failure;
using tests::floats_of;
using tests::int2;
using tests::int4;
using tests::Ints;
using tests::OneNode;
using tests::several_to_a_byte;
using tests::uint2;
using tests::uint4;

/// DequantizeLinear of `values` by a scale of 1.
OneNode numbers(int type, const std::vector<std::int64_t>& dims, const Ints& values) {
  OneNode m("DequantizeLinear", "");
  const int bits = type == int4 || type == uint4 ? 4 : 2;
  m.constant("w", type, dims, several_to_a_byte(values, bits, values.size()));
  m.constant("s", tests::f32, {}, tests::bytes_of_floats({1}));
  return m;
}
onnx::TensorProto& weight(OneNode& m) { return *m.model.mutable_graph()->mutable_initializer(0); }

Ints read_numbers(const onnx::ModelProto& model) {
  const ir::Graph graph = tests::read(model);
  const ir::Tensor& w = *graph.find_value("w")->constant;
  Ints found;
  for (const std::int64_t v : w.to_ints()) found.push_back(static_cast<int>(v));
  return found;
}

TEST(SubByte, NumbersOfEachTypeLieInAnyField) {
  for (const int type : {uint4, int4, uint2, int2}) {
    const bool is_signed = type == int4 || type == int2;
    const int bits = type == int4 || type == uint4 ? 4 : 2,
              low = is_signed ? -(1 << (bits - 1)) : 0;
    Ints all;
    for (int v = low; v < low + (1 << bits); ++v) all.push_back(v);
    for (int odd = 0; odd < 4; ++odd) {
      SCOPED_TRACE(fmt::format("type {}, {} elements", type, all.size()));
      OneNode m = numbers(type, {std::ssize(all)}, all);
      EXPECT_EQ(read_numbers(m.model), all);
      onnx::TensorProto& w = weight(m);
      const std::string raw = w.raw_data();
      w.clear_raw_data();
      for (const char byte : raw) w.add_int32_data(static_cast<unsigned char>(byte));
      EXPECT_EQ(read_numbers(m.model), all) << "of int32_data";
      all.push_back(low + odd % 2);
    }
  }
}

TEST(SubByte, NumbersLieInExternalFiles) {
  const tests::ScratchFolder folder;
  std::ofstream(folder / "w.bin", std::ios::binary) << "skip\x21\x43\x85";
  OneNode m = numbers(int4, {5}, {});
  onnx::TensorProto& w = weight(m);
  w.clear_raw_data();
  w.set_data_location(onnx::TensorProto::EXTERNAL);
  for (const auto& [key, value] : {std::pair{"location", "w.bin"}, {"offset", "4"}}) {
    auto& entry = *w.add_external_data();
    entry.set_key(key);
    entry.set_value(value);
  }
  const auto path = folder / "m.onnx";
  std::ofstream(path, std::ios::binary) << m.model.SerializeAsString();
  const ir::Graph graph = read_model(path);
  EXPECT_EQ(graph.find_value("w")->constant->to_ints(),
            (std::vector<std::int64_t>{1, 2, 3, 4, 5}));  // the last half of a byte is nothing's
  std::filesystem::resize_file(folder / "w.bin", 6);
  EXPECT_ERROR(HasSubstr("its data is 3 bytes at offset 4 of 'w.bin', which has 6 bytes"),
               read_model(path));
}

TEST(SubByte, WrongSizesAreRefused) {
  OneNode m = numbers(int4, {5}, {1, 2, 3, 4, 5, 6, 7});
  EXPECT_THAT(failure(m.model), HasSubstr("tensor 'w' (5 of int4, 2 to a byte): 4 bytes of data, "
                                          "3 elements of u8 need 3"));
  weight(m).set_raw_data("12");
  EXPECT_THAT(failure(m.model), HasSubstr("2 bytes of data, 3 elements of u8 need 3"));
  weight(m).clear_raw_data();
  for (int i = 0; i < 5; ++i) weight(m).add_int32_data(i);
  EXPECT_THAT(failure(m.model), HasSubstr("5 values of data for 3 elements"));
  weight(m).set_dims(0, -5);
  EXPECT_THAT(failure(m.model), HasSubstr("has the negative extent -5"));
}

/// The number of bits is lost in the IR, so their type must not matter.
TEST(SubByte, OtherOperatorsDoNotReadThem) {
  const auto with = [](const std::string& op, int operand, const std::string& more = "") {
    OneNode m(op, "");
    const auto number = [&] { m.constant("w", int4, {}, "\3"); };
    if (operand == 0) number();
    m.input("x", tests::f32, {"3"});
    if (operand == 1) number();
    if (op == "QuantizeLinear") {
      m.constant("s", tests::f32, {}, tests::bytes_of_floats({1}));
      number();
    }
    m.node().set_name(more.empty() ? "n" : more);
    return failure(m.model);
  };
  EXPECT_THAT(with("QuantizeLinear", 2),
              HasSubstr("node 'n' (QuantizeLinear): operand 'w' is int4, which only "
                        "DequantizeLinear, GatherBlockQuantized and Cast read"));
  EXPECT_THAT(with("CastLike", 1), HasSubstr("operand 'w' is int4"));
  EXPECT_THAT(with("Add", 0), HasSubstr("operand 'w' is int4"));
}

TEST(SubByte, MovedNumbersStayWhatTheyAre) {
  auto model = tests::model_of(21, R"(
    node { op_type: 'Transpose' input: 'w' output: 't' }
    node { op_type: 'Identity' input: 't' output: 'i' }
    node { name: 'd' op_type: 'DequantizeLinear' input: 'i' input: 's' output: 'y' }
    output { name: 'y' }
    initializer { name: 'w' data_type: 22 dims: [2, 2] int32_data: [0x21, 0x83] }
    initializer { name: 's' data_type: 1 float_data: 0.5 })");
  EXPECT_EQ(failure(model), kNoError);
  auto& last = *model.mutable_graph()->mutable_node(2);
  last.set_op_type("Relu");
  last.mutable_input()->RemoveLast();
  EXPECT_THAT(failure(model), HasSubstr("operand 'i' is int4"));
  last.set_op_type("Identity");
  EXPECT_THAT(failure(model), HasSubstr("the output 'y' is int4, which is not supported"));
}

TEST(SubByte, NumbersAreReadInAnotherShape) {
  for (const std::string op : {"Reshape", "Squeeze", "Unsqueeze", "Flatten"}) {
    const auto model =
        tests::model_of(21, fmt::format("node {{ op_type: '{}' input: 'w' {} output: 't' }}", op,
                                        op == "Flatten" ? "" : "input: 'one'") +
                                R"(
      node { op_type: 'DequantizeLinear' input: 't' input: 's' output: 'y' }
      output { name: 'y' }
      initializer { name: 'w' data_type: 22 dims: [1, 1] int32_data: 0x0d }
      initializer { name: 'one' data_type: 7 dims: 1 int64_data: 1 }
      initializer { name: 's' data_type: 1 float_data: 0.5 })");
    EXPECT_THAT(floats_of(ops::interpret(tests::read(model), {})[0]), ElementsAre(-1.5f)) << op;
  }
}

TEST(SubByte, CastsKeepTheSign) {
  OneNode m("Cast", "");
  m.constant("w", int4, {3}, "\x87\x0f").attribute("to", tests::f32);
  const auto y = ops::interpret(tests::read(m.model), {});
  EXPECT_THAT(floats_of(y[0]), ElementsAre(7, -8, -1));
}

TEST(SubByte, ConstantsOfNodesAreKnown) {
  const std::string value =
      " attribute { name: 'value' type: TENSOR t { data_type: 21 int32_data: 3 } } }";
  const std::string after = " node { op_type: 'Relu' input: 'w' output: 'y' } output { name: 'y' }";
  EXPECT_THAT(
      failure(tests::model_of(21, "node { op_type: 'Constant' output: 'w'" + value + after)),
      HasSubstr("operand 'w' is uint4"));
  auto model = tests::model_of(
      21, "node { op_type: 'ConstantOfShape' input: 'n' output: 'w'" + value + after +
              " initializer { name: 'n' data_type: 7 dims: 1 int64_data: 2 }");
  EXPECT_THAT(failure(model),
              HasSubstr("attribute 'value': element type uint4 is supported only in constants"));
}

TEST(SubByte, InputsAndCastsAreRefused) {
  OneNode cast("Cast", "");
  cast.input("x", tests::f32, {"3"}).attribute("to", int4);
  EXPECT_THAT(failure(cast.model),
              HasSubstr("element type int4 is supported only in constants that "
                        "DequantizeLinear, GatherBlockQuantized or Cast reads"));
  OneNode input("DequantizeLinear", "");
  input.input("x", uint2, {"3"}).constant("s", tests::f32, {}, tests::bytes_of_floats({1}));
  EXPECT_THAT(failure(input.model), HasSubstr("input 'x': element type uint2 is supported only"));
}

}  // namespace
}  // namespace bertcl::onnx_io
