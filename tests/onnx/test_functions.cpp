// SPDX-License-Identifier: Apache-2.0
// Local functions: their attributes, names and overloads.
#include <fmt/format.h>

#include <map>
#include <string>

#include "ir/text.hpp"
#include "tests/onnx/text_model.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::onnx_io {
namespace {

using tests::f32, tests::model_of, tests::read;

TEST(Functions, AreInlined) {
  auto model = model_of(13,
                        "node { domain: 'local' op_type: 'ScaledNeg' input: 'x' output: 'h'"
                        " attribute { name: 'axis' type: INT i: 0 } }"
                        "node { domain: 'local' op_type: 'ScaledNeg' input: 'h' output: 'y' }"
                        "output { name: 'y' }");
  tests::add_value(*model.mutable_graph()->add_input(), "x", f32, {"2", "3"});
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "name: 'ScaledNeg' domain: 'local' input: 'a' output: 'b' attribute: 'axis'"
      "opset_import { version: 13 }"
      "node { op_type: 'Neg' input: 'a' output: 't' }"
      "node { op_type: 'Softmax' input: 't' output: 'b'"
      " attribute { name: 'axis' ref_attr_name: 'axis' type: INT } }",
      model.add_functions()));
  EXPECT_EQ(ir::print(read(model), {.renumber = true}),
            "graph graph(%x: f32[2, 3]) {\n"
            "  %0: f32[2, 3] = Neg(%x)\n"
            "  %1: f32[2, 3] = Softmax(%0) {axis = 0}\n"
            "  %2: f32[2, 3] = Neg(%1)\n"
            "  %3: f32[2, 3] = Softmax(%2) {axis = 1}\n"
            "  return %3 as y\n}\n");
}

TEST(Functions, TheirAttributesReachTheirBranches) {
  const auto branch = [](const std::string& name) {
    return fmt::format(
        "attribute {{ name: '{}' type: GRAPH g {{ node {{ op_type: 'Softmax' input: 'a' output: 's'"
        " attribute {{ name: 'axis' ref_attr_name: 'axis' type: INT }} }} output {{ name: 's' }} "
        "}} }}",
        name);
  };
  const std::string taken = "node { op_type: 'If' input: 'yes' output: 'b'" +
                            branch("then_branch") + branch("else_branch") + "}";
  auto model = model_of(13,
                        "node { domain: 'local' op_type: 'F' input: 'x' output: 'y'"
                        " attribute { name: 'axis' type: INT i: 1 } } output { name: 'y' }");
  tests::add_value(*model.mutable_graph()->add_input(), "x", f32, {"2", "3", "4"});
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "name: 'F' domain: 'local' input: 'a' output: 'b' attribute: 'axis'"
      "opset_import { version: 13 }"
      "node { op_type: 'Constant' output: 'yes' attribute { name: 'value' type: TENSOR"
      " t { data_type: 9 int32_data: 1 } } }" +
          taken,
      model.add_functions()));
  EXPECT_THAT(ir::print(read(model), {.renumber = true}), HasSubstr("Softmax(%x) {axis = 1}"));
}

/// The field `overload`, newer than the ONNX release of Debian 12.
void set_overload(google::protobuf::Message& message, int field, const std::string& overload) {
  message.GetReflection()->MutableUnknownFields(&message)->AddLengthDelimited(field, overload);
}

TEST(Functions, OverloadsTellThoseOfOneNameApart) {
  const auto model_with = [](const std::string& of_second) {
    auto model = model_of(13,
                          "node { domain: 'local' op_type: 'F' input: 'x' output: 'h' }"
                          "node { domain: 'local' op_type: 'F' input: 'h' output: 'y' }"
                          "output { name: 'y' }");
    tests::add_value(*model.mutable_graph()->add_input(), "x", f32, {"2"});
    set_overload(*model.mutable_graph()->mutable_node(1), 8, "second");
    for (const auto& [op, overload] :
         {std::pair{"Abs", std::string()}, std::pair{"Neg", of_second}}) {
      onnx::FunctionProto& function = *model.add_functions();
      EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
          fmt::format("name: 'F' domain: 'local' input: 'a' output: 'b' opset_import {{ version: "
                      "13 }} node {{ op_type: '{}' input: 'a' output: 'b' }}",
                      op),
          &function));
      if (!overload.empty()) set_overload(function, 13, overload);
    }
    return model;
  };
  EXPECT_THAT(ir::print(read(model_with("second")), {.renumber = true}),
              HasSubstr("%0: f32[2] = Abs(%x)\n  %1: f32[2] = Neg(%0)"));
  EXPECT_THAT(tests::failure(model_with("")), HasSubstr("two local functions are named local::F"));
}

TEST(Functions, NamesInsideAreTheirOwn) {
  auto model = model_of(13,
                        "node { domain: 'local' op_type: 'F' input: 'x' output: 'z' }"
                        "node { op_type: 'Abs' input: 'x' output: 'h' }"
                        "node { op_type: 'Neg' input: 'h' output: 'b' }"
                        "output { name: 'z' } output { name: 'b' }");
  tests::add_value(*model.mutable_graph()->add_input(), "x", f32, {"2"});
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "name: 'F' domain: 'local' input: 'a' output: 'b' opset_import { version: 13 }"
      "node { op_type: 'Exp' input: 'a' output: 'h' }"
      "node { op_type: 'Sin' input: 'h' output: 'b' }",
      model.add_functions()));
  const ir::Graph graph = read(model);
  for (const auto& [tensor, op] :
       std::map<std::string, std::string>{{"h", "Abs"}, {"b", "Neg"}, {"z", "Sin"}}) {
    const ir::Value* value = graph.find_value(tensor);
    ASSERT_TRUE(value) << tensor;
    EXPECT_EQ(value->producer->op, op) << tensor;
  }
}

/// The graph of y = local::F(operands), which passes them on to local::G.
std::string inlined(const std::string& operands) {
  auto model = model_of(17, "node { domain: 'local' op_type: 'F' output: 'y' " + operands +
                                " } output { name: 'y' }");
  for (const char* name : {"x", "g", "b"})
    tests::add_value(*model.mutable_graph()->add_input(), name, f32, {"4"});
  for (const auto& [name, inner] : {std::pair{"F", "domain: 'local' op_type: 'G'"},
                                    std::pair{"G", "op_type: 'LayerNormalization'"}})
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        fmt::format("name: '{}' domain: 'local' input: 'X' input: 'G' input: 'B' output: 'Y' "
                    "opset_import {{ version: 17 }} "
                    "node {{ {} input: 'X' input: 'G' input: 'B' output: 'Y' }}",
                    name, inner),
        model.add_functions()));
  return ir::print(read(model), {.renumber = true});
}

TEST(Functions, TheirOperandsMayBeAbsent) {
  for (const char* operands : {"input: 'x' input: 'g'", "input: 'x' input: 'g' input: ''"})
    EXPECT_THAT(inlined(operands), HasSubstr("LayerNormalization(%x, %g) {")) << operands;
  EXPECT_THAT(inlined("input: 'x' input: 'g' input: 'b'"),
              HasSubstr("LayerNormalization(%x, %g, %b) {"));
  EXPECT_ERROR(HasSubstr("the operand Scale is missing"), inlined("input: 'x'"));
}

TEST(Functions, TheirResultsMayBeOptionalInside) {
  for (const char* outputs : {"output: 'y' output: 'm'", "output: '' output: 'm'"}) {
    auto model = model_of(17, fmt::format("node {{ domain: 'local' op_type: 'F' input: 'x' {} }} "
                                          "output {{ name: 'm' }}",
                                          outputs));
    tests::add_value(*model.mutable_graph()->add_input(), "x", f32, {"2", "3", "4"});
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
        "name: 'F' domain: 'local' input: 'X' output: 'Y' output: 'M' opset_import { version: 17 }"
        "opset_import { domain: 'com.microsoft' version: 1 }"
        "node { op_type: 'Constant' output: 'G' attribute { name: 'value_floats' type: FLOATS"
        " floats: [1, 1, 1, 1] } }"
        "node { domain: 'com.microsoft' op_type: 'SkipLayerNormalization' input: 'X' input: 'X'"
        " input: 'G' output: 'Y' output: 'M' }",
        model.add_functions()));
    EXPECT_EQ(read(model).outputs()[0].value->producer->op, "ReduceMean");
  }
}

TEST(Functions, ResultsThatNobodyReadsAreNotAskedFor) {
  auto model = model_of(17,
                        "node { domain: 'local' op_type: 'F' input: 'x' output: 'y' output: 'm' }"
                        "output { name: 'y' }");
  tests::add_value(*model.mutable_graph()->add_input(), "x", f32, {"2", "4"});
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "name: 'F' domain: 'local' input: 'X' output: 'Y' output: 'M' "
      "opset_import { version: 17 } "
      "node { op_type: 'Constant' output: 'G' attribute { name: 'value_floats' type: FLOATS"
      " floats: [1, 1, 1, 1] } }"
      "node { op_type: 'LayerNormalization' input: 'X' input: 'G' output: 'Y' output: 'M' }",
      model.add_functions()));
  EXPECT_EQ(read(model).outputs()[0].value->producer->op, "LayerNormalization");
  model.mutable_graph()->add_output()->set_name("m");
  EXPECT_ERROR(HasSubstr("Mean and InvStdDev are not supported"), read(model));
}

}  // namespace
}  // namespace bertcl::onnx_io
