// SPDX-License-Identifier: Apache-2.0
// Operands and attributes that ONNX does not allow are refused with the operand and its type, those
// of another type than the operator computes in are cast.
#include <fmt/format.h>

#include "ir/text.hpp"
#include "ops/interpret.hpp"
#include "tests/onnx/text_model.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::onnx_io {
namespace {

using tests::f32, tests::f64, tests::failure, tests::i32, tests::i64, tests::i8, tests::model_of;
using tests::u8;

struct Input {
  const char* name;
  int type;  // of TensorProto
  std::vector<std::string> shape;
};

/// One node on `inputs` in their order, with the text of its attributes.
onnx::ModelProto one_node(const char* op, const std::vector<Input>& inputs,
                          const std::string& attributes = "", const char* domain = "") {
  std::string text = fmt::format("node {{ name: 'n' op_type: '{}' domain: '{}'", op, domain);
  for (const Input& in : inputs) text += fmt::format(" input: '{}'", in.name);
  auto model = model_of(21, text + " output: 'y' " + attributes + " } output { name: 'y' }");
  for (const Input& in : inputs)
    if (in.type != 0)
      tests::add_value(*model.mutable_graph()->add_input(), in.name, in.type, in.shape);
  return model;
}
std::string number(const char* name, std::int64_t value) {
  return fmt::format(" attribute {{ name: '{}' type: INT i: {} }}", name, value);
}
std::string numbers(const char* name, std::int64_t first, std::int64_t second) {
  return fmt::format(" attribute {{ name: '{}' type: INTS ints: {} ints: {} }}", name, first,
                     second);
}

TEST(Operands, OfQuantizationAreThree) {
  const Input x{"x", f32, {"3"}}, q{"q", u8, {"3"}}, s{"s", f32, {}}, z{"z", u8, {}},
      more{"more", f32, {}};
  EXPECT_THAT(failure(one_node("QuantizeLinear", {x, s, z, more})),
              HasSubstr("got 4 operands, expected at most 3"));
  EXPECT_THAT(failure(one_node("DequantizeLinear", {q, s, z, more})),
              HasSubstr("got 4 operands, expected at most 3"));
}

TEST(Operands, ResultsOfDecomposedOperatorsHaveTheNamesOfTheFile) {
  auto model = model_of(17, R"(
    node { op_type: 'SkipLayerNormalization' domain: 'com.microsoft' input: 'x' input: 'x'
           input: 'gamma' output: 'y' output: '' output: '' output: 'sum' }
    node { op_type: 'Add' input: 'y' input: 'sum' output: 'z' }
    output { name: 'z' })");
  tests::add_value(*model.mutable_graph()->add_input(), "x", f32, {"batch", "seq", "4"});
  tests::add_value(*model.mutable_graph()->add_input(), "gamma", f32, {"4"});
  const ir::Graph graph = tests::read(model);
  ASSERT_TRUE(graph.find_value("y"));
  EXPECT_EQ(graph.find_value("y")->producer->op, "LayerNormalization");
  ASSERT_TRUE(graph.find_value("sum"));
  EXPECT_EQ(graph.find_value("sum")->producer->op, "Add");
}

TEST(Operands, WithoutAMaskNoTokensAreCounted) {
  auto model = model_of(17, R"(
    node { op_type: 'EmbedLayerNormalization' domain: 'com.microsoft' input: 'input_ids' input: ''
           input: 'w' input: 'w' input: '' input: 'g' input: 'g' output: 'y' output: 'mask_index' }
    output { name: 'mask_index' })");
  tests::add_value(*model.mutable_graph()->add_input(), "input_ids", tests::i32, {"b", "s"});
  tests::add_value(*model.mutable_graph()->add_input(), "w", f32, {"9", "4"});
  tests::add_value(*model.mutable_graph()->add_input(), "g", f32, {"4"});
  const ir::Graph graph = tests::read(model);
  EXPECT_EQ(ir::str(graph.outputs()[0].value->type), "i32[batch]");
  const auto floats = [](ir::Sizes sizes) {
    return ir::Tensor::of(sizes, std::vector<float>(ir::element_count(sizes)));
  };
  const ir::Tensor ids = ir::Tensor::of<std::int32_t>({3, 2}, {1, 2, 3, 4, 5, 6});
  const auto found =
      ops::interpret(graph, {{"input_ids", ids}, {"w", floats({9, 4})}, {"g", floats({4})}});
  EXPECT_THAT(found.at(0).to_ints(), ElementsAre(0, 0, 0));
}

TEST(Operands, WhatANodePassesOnKeepsItsName) {
  auto model = model_of(17, R"(
    node { op_type: 'Clip' input: 'y/x' output: 'y' }
    node { op_type: 'Relu' input: 'y' output: 'z' }
    output { name: 'z' })");
  tests::add_value(*model.mutable_graph()->add_input(), "y/x", f32, {"3"});
  const ir::Graph graph = tests::read(model);
  ASSERT_EQ(graph.inputs().size(), 1u);
  EXPECT_EQ(graph.inputs()[0]->name, "y/x")
      << "not made for the node, whatever its name begins with";
}

TEST(Operands, DynamicQuantizeLinearHasThreeResults) {
  const Input x{"x", f32, {"3"}}, s{"s", f32, {}};
  const ir::Graph graph = tests::read(one_node("DynamicQuantizeLinear", {x}));
  EXPECT_EQ(graph.nodes().front()->outputs.size(), 3u) << "though the file lists one";
  EXPECT_THAT(failure(one_node("DynamicQuantizeLinear", {x, s})),
              HasSubstr("got 2 operands, expected one"));
}

TEST(Operands, ZeroPointAndOutputTypeAgree) {
  const Input x{"x", f32, {"3"}}, s{"s", f32, {}}, z{"z", u8, {}};
  EXPECT_THAT(failure(one_node("QuantizeLinear", {x, s, z}, number("output_dtype", i8))),
              HasSubstr("output_dtype i8 contradicts the zero point 'z' u8[]"));
  EXPECT_EQ(failure(one_node("QuantizeLinear", {x, s, z}, number("output_dtype", u8))), kNoError);
}

TEST(Operands, QuantizeLinearDividesInF32) {
  const Input x{"x", f32, {"3"}}, s{"s", f32, {}};
  EXPECT_EQ(failure(one_node("QuantizeLinear", {x, s}, number("precision", f32))), kNoError);
  EXPECT_THAT(failure(one_node("QuantizeLinear", {x, s}, number("precision", 10))),
              HasSubstr("a precision other than f32 is not supported"));
}

TEST(Operands, OfQuantizeLinearAreFloatsOrI32) {
  const Input s{"s", f32, {}}, z{"z", u8, {}};
  EXPECT_THAT(failure(one_node("QuantizeLinear", {{"x", i8, {"3"}}, s, z})),
              HasSubstr("operand 'x' is i8[3]; QuantizeLinear expects f32, f16 or bf16"));
  const ir::Graph graph = tests::read(one_node("QuantizeLinear", {{"x", i32, {"3"}}, s, z}));
  EXPECT_THAT(ir::print(graph), HasSubstr("Cast"));
}

TEST(Operands, AnExponentBecomesOfTheTypeOfTheBase) {
  const Input x{"x", f32, {"3"}}, n{"n", i64, {"3"}}, e{"e", i64, {}}, real{"r", f32, {}};
  EXPECT_THAT(ir::print(tests::read(one_node("Pow", {x, e}))), HasSubstr("Cast"));
  EXPECT_THAT(failure(one_node("Pow", {n, real})),
              HasSubstr("integers 'n' i64[3] to the power of 'r' f32[]"));
  EXPECT_THAT(failure(one_node("Pow", {{"u", u8, {"3"}}, e})),
              HasSubstr("operand 'u' is u8[3]; Pow expects f32, f16, bf16, f64, i32 or i64"));
}

TEST(Operands, OfLayerNormalizationAreOfOneType) {
  EXPECT_THAT(failure(one_node("LayerNormalization", {{"x", f32, {"2", "4"}}, {"s", f64, {"4"}}})),
              HasSubstr("operands have different types: 'x' f32[2, 4] and 's' f64[4]"));
}

TEST(Operands, AnAttentionBiasIsOfRankFour) {
  const Input q{"q", f32, {"1", "2", "4"}}, k{"k", f32, {"1", "2", "4"}},
      v{"v", f32, {"1", "2", "4"}}, none{"", 0, {}};
  const auto with_bias = [&](std::vector<std::string> shape) {
    return failure(one_node("MultiHeadAttention", {q, k, v, none, none, {"b", f32, shape}},
                            number("num_heads", 2), "com.microsoft"));
  };
  EXPECT_EQ(with_bias({"1", "2", "2", "2"}), kNoError);
  EXPECT_THAT(with_bias({"2", "2"}),
              HasSubstr("the attention bias 'b' is f32[2, 2], expected floats of rank 4"));
}

// A zero point is made for each of them, whatever the file holds.
TEST(Operands, ScalesAreCountedFirst) {
  auto model = model_of(17,
                        "node { op_type: 'QuantizeLinear' input: 'x' input: 's' output: 'y' }"
                        " output { name: 'y' }");
  tests::add_value(*model.mutable_graph()->add_input(), "x", 1, {"3", "n"});
  tests::add_value(*model.mutable_graph()->add_input(), "s", 1, {"2147483647"});
  EXPECT_THAT(failure(model), HasSubstr("2147483647 scales"));
}

TEST(Operands, ScalesAreStepsAboveZero) {
  const auto model = [](const std::string& op, const std::string& scale) {
    return model_of(17, "initializer { name: 's' data_type: 1 dims: 2 float_data: [0.5, " + scale +
                            "] } initializer { name: 'q' data_type: 3 dims: [2, 2]"
                            " int32_data: [1, 2, 3, 4] } node { op_type: '" +
                            op + "' input: '" + (op == "QuantizeLinear" ? "x" : "q") +
                            "' input: 's' output: 'y' attribute { name: 'axis' i: 1 type: INT } }"
                            " input { name: 'x' type { tensor_type { elem_type: 1 shape { dim {"
                            " dim_value: 2 } dim { dim_value: 2 } } } } } output { name: 'y' }");
  };
  for (const char* op : {"QuantizeLinear", "DequantizeLinear"})
    for (const char* scale : {"nan", "inf", "-0.5"})
      EXPECT_THAT(failure(model(op, scale)),
                  AllOf(HasSubstr("scale 's' is"), HasSubstr("element 1")))
          << op << " " << scale;
  EXPECT_THAT(failure(model("QuantizeLinear", "inf")),
              HasSubstr("expected a finite number above 0; exclude the mask, which holds -inf, "
                        "from quantization (Where, Add, Softmax)"));
  EXPECT_THAT(failure(model("QuantizeLinear", "nan")), Not(HasSubstr("mask")));
  EXPECT_THAT(failure(model("DequantizeLinear", "inf")), Not(HasSubstr("mask"))) << "of weights";
  EXPECT_THAT(failure(model("QuantizeLinear", "0")), HasSubstr("a finite number above 0"));
  EXPECT_EQ(failure(model("DequantizeLinear", "0")), kNoError) << "of weights that are all 0";
}

TEST(Operands, WindowsOfConvolutionsHaveSizes) {
  const Input x{"x", f32, {"1", "1", "4", "4"}}, w{"w", f32, {"1", "1", "2", "2"}};
  EXPECT_EQ(failure(one_node("Conv", {x, w}, numbers("strides", 1, 2))), kNoError);
  EXPECT_THAT(failure(one_node("Conv", {x, w}, numbers("strides", 0, 1))),
              HasSubstr("attribute 'strides' holds 0 (supported: 1 to 2147483647)"));
  EXPECT_THAT(failure(one_node("Conv", {x, w}, numbers("dilations", 1, std::int64_t{1} << 62))),
              HasSubstr("attribute 'dilations' holds 4611686018427387904"));
  EXPECT_THAT(failure(one_node("Conv", {x, w}, number("group", 0))),
              HasSubstr("attribute 'group' is 0"));
  EXPECT_THAT(failure(one_node("Conv", {{"x", f32, {"1", "1", "4294967296", "4"}}, w})),
              HasSubstr("is too large"));
}

TEST(Operands, RotaryTablesHaveAValueForEachPair) {
  const Input x{"x", f32, {"2", "3", "5", "8"}};
  const std::vector<Input> with_tables{
      x, {"cos", f32, {"2", "5", "4"}}, {"sin", f32, {"2", "5", "4"}}};
  const auto rotary = [](const std::vector<Input>& inputs, const std::string& attribute) {
    auto model = one_node("RotaryEmbedding", inputs, attribute);
    model.mutable_opset_import(0)->set_version(23);
    return failure(model);
  };
  EXPECT_EQ(rotary(with_tables, number("interleaved", 1)), kNoError);
  EXPECT_THAT(
      rotary(with_tables, number("rotary_embedding_dim", 3)),
      HasSubstr("rotary_embedding_dim 3 must be even, at least 2 and at most the head size 8"));
  EXPECT_THAT(rotary(with_tables, number("rotary_embedding_dim", 4)),
              HasSubstr("'cos' f32[2, 5, 4] must give [batch, seq, 2]"));
  EXPECT_THAT(rotary({{"x", f32, {"2", "5", "24"}}, with_tables[1], with_tables[2]},
                     number("num_heads", 0)),
              HasSubstr("cannot split f32[2, 5, 24] into 0 heads"));
  EXPECT_THAT(
      rotary({{"x", f32, {"1", "3", "5", "8"}}, with_tables[1], with_tables[2]},
             number("interleaved", 0)),
      HasSubstr("cosines f32[2, 5, 4] and sines f32[2, 5, 4] do not match 'x' f32[1, 3, 5, 8]"));
}

TEST(Operands, QueriesShareKeysByWholeNumbers) {
  const auto attention = [](const std::string& key_heads) {
    const std::vector<std::string> keys{"2", key_heads, "5", "8"};
    auto model = one_node("Attention",
                          {{"q", f32, {"2", "6", "5", "8"}}, {"k", f32, keys}, {"v", f32, keys}},
                          number("is_causal", 0));
    model.mutable_opset_import(0)->set_version(23);
    return failure(model);
  };
  EXPECT_EQ(attention("3"), kNoError);
  EXPECT_THAT(attention("4"), HasSubstr("6 query heads cannot share 4 key heads"));
}

}  // namespace
}  // namespace bertcl::onnx_io
