// SPDX-License-Identifier: Apache-2.0
// One spelling for every opset, symbols of inputs, branches, external data.
#include <fmt/format.h>
#include <sys/stat.h>

#include <map>
#include <memory>
#include <span>
#include <string>

#include "ir/text.hpp"
#include "tests/onnx/text_model.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::onnx_io {
namespace {

using tests::f32, tests::failure, tests::i64, tests::model_of, tests::read;

/// The graph text of a model, or why it cannot be read.
template <class Model>
std::string text_or_error(const Model& model) {
  try {
    return ir::print(read_model(model));
  } catch (const Error& e) {
    return e.what();
  }
}

/// The graph text of the nodes between input x and output y.
std::string imported(int opset, const std::string& nodes, const std::vector<std::string>& shape,
                     int type = f32) {
  auto model = model_of(opset, nodes + " output { name: 'y' }");
  tests::add_value(*model.mutable_graph()->add_input(), "x", type, shape);
  return ir::print(read(model), {.renumber = true});
}

TEST(ReadModel, AxesHaveOneSpelling) {
  const std::string expected =
      "graph graph(%x: f32[a, 1, b]) {\n"
      "  %0: f32[a, b] = Squeeze(%x) {axes = [1]}\n"
      "  return %0 as y\n}\n";
  EXPECT_EQ(imported(11,
                     "node { op_type: 'Squeeze' input: 'x' output: 'y'"
                     " attribute { name: 'axes' type: INTS ints: -2 } }",
                     {"a", "1", "b"}),
            expected);
  EXPECT_EQ(imported(13,
                     "node { op_type: 'Squeeze' input: 'x' input: 'axes' output: 'y' }"
                     "initializer { name: 'axes' data_type: 7 dims: 1 int64_data: 1 }",
                     {"a", "1", "b"}),
            expected);
}

TEST(ReadModel, MetadataIsReadWithoutTheGraph) {
  auto model = model_of(13, "node { op_type: 'NoSuchOperator' output: 'y' }");
  for (const char* key : {"one", "two"}) {
    auto* entry = model.add_metadata_props();
    entry->set_key(key);
    entry->set_value(std::string("value of ") + key);
  }
  const tests::ScratchFolder folder;
  std::ofstream(folder / "m.onnx", std::ios::binary) << model.SerializeAsString();
  EXPECT_THAT(read_metadata(folder / "m.onnx"),
              ElementsAre(Pair("one", "value of one"), Pair("two", "value of two")));
  std::ofstream(folder / "m.onnx", std::ios::binary) << "words";
  EXPECT_THROW(read_metadata(folder / "m.onnx"), Error);
}

TEST(ReadModel, ReduceAndSplitHaveOneSpelling) {
  EXPECT_EQ(imported(18,
                     "node { op_type: 'ReduceMean' input: 'x' input: 'axes' output: 'y' }"
                     "initializer { name: 'axes' data_type: 7 dims: 1 int64_data: -1 }",
                     {"a", "8"}),
            "graph graph(%x: f32[a, 8]) {\n"
            "  %0: f32[a, 1] = ReduceMean(%x) {axes = [1], keepdims = 1}\n"
            "  return %0 as y\n}\n");
  EXPECT_THAT(imported(18,
                       "node { op_type: 'Split' input: 'x' output: 'y' output: 'z'"
                       " attribute { name: 'axis' type: INT i: -1 }"
                       " attribute { name: 'num_outputs' type: INT i: 2 } }",
                       {"a", "5"}),
              HasSubstr("%0: f32[a, 3], %1: f32[a, 2] = Split(%x) {axis = 1, split = [3, 2]}"));
}

TEST(ReadModel, ReducingNoAxisLeavesWhatIsDoneToEachElement) {
  const auto imported_as = [](const std::string& op) {
    return imported(18,
                    "node { op_type: '" + op +
                        "' input: 'x' output: 'y' attribute { name: 'noop_with_empty_axes' type: "
                        "INT i: 1 } }",
                    {"a"});
  };
  for (const char* op : {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd"})
    EXPECT_THAT(imported_as(op), HasSubstr("%0: f32[a] = Identity(%x)")) << op;
  for (const char* op : {"ReduceL1", "ReduceL2"})
    EXPECT_THAT(imported_as(op), HasSubstr("%0: f32[a] = Abs(%x)")) << op;
  EXPECT_THAT(imported_as("ReduceSumSquare"), HasSubstr("%0: f32[a] = Mul(%x, %x)"));
}

TEST(ReadModel, OldSoftmaxFlattens) {
  const std::string node = "node { op_type: 'Softmax' input: 'x' output: 'y' }";
  EXPECT_THAT(imported(13, node, {"a", "b", "c"}), HasSubstr("Softmax(%x) {axis = 2}"));
  EXPECT_THAT(imported(11, node, {"a", "b"}), HasSubstr("Softmax(%x) {axis = 1}"));
  EXPECT_THAT(imported(11, node, {"a", "b", "c"}),
              HasSubstr("%0: f32[a, b*c] = Flatten(%x) {axis = 1}"));
}

TEST(ReadModel, GemmIsTakenApart) {
  EXPECT_THAT(imported(13,
                       "node { op_type: 'Gemm' input: 'x' input: 'w' input: 'b' output: 'y'"
                       " attribute { name: 'transB' type: INT i: 1 } }"
                       "initializer { name: 'w' data_type: 1 dims: 2 dims: 3 float_data: "
                       "[1, 2, 3, 4, 5, 6] }"
                       "initializer { name: 'b' data_type: 1 dims: 2 float_data: [1, 2] }",
                       {"n", "3"}),
              HasSubstr("%0: f32[3, 2] = Transpose(%c0) {perm = [1, 0]}\n"
                        "  %1: f32[n, 2] = MatMul(%x, %0)\n"));
}

TEST(ReadModel, OperatorsOfManyOperandsTakeTwoAtATime) {
  const auto of_three = [](const std::string& op) {
    return imported(13,
                    "node { op_type: '" + op +
                        "' input: 'x' input: 'w' input: 'x' output: 'y' }"
                        "initializer { name: 'w' data_type: 1 dims: 2 dims: 1 float_data: [1, 2] }",
                    {"3"});
  };
  EXPECT_THAT(of_three("Sum"), HasSubstr("%0: f32[2, 3] = Add(%x, %c0)\n"
                                         "  %1: f32[2, 3] = Add(%0, %x)\n"
                                         "  return %1 as y"));
  EXPECT_THAT(of_three("Max"), HasSubstr("%0: f32[2, 3] = Max(%x, %c0)\n"
                                         "  %1: f32[2, 3] = Max(%0, %x)\n"
                                         "  return %1 as y"));
  EXPECT_THAT(of_three("Min"), HasSubstr("%1: f32[2, 3] = Min(%0, %x)"));
  EXPECT_THAT(of_three("Mean"), HasSubstr("%1: f32[2, 3] = Add(%0, %x)\n"
                                          "  const %c1: f32[] = 3.0\n"
                                          "  %2: f32[2, 3] = Div(%1, %c1)\n"));
  EXPECT_THAT(imported(13, "node { op_type: 'Mean' input: 'x' output: 'y' }", {"a", "3"}),
              HasSubstr("Identity(%x)"));
}

TEST(ReadModel, QuantizationAlwaysHasAZeroPoint) {
  EXPECT_THAT(imported(13,
                       "node { op_type: 'QuantizeLinear' input: 'x' input: 's' output: 'y' }"
                       "initializer { name: 's' data_type: 1 dims: 1 float_data: 0.5 }",
                       {"n", "3"}),
              HasSubstr("const %c0: f32[] = 0.5\n"
                        "  const %c1: u8[] = 0\n"
                        "  %0: u8[n, 3] = QuantizeLinear(%x, %c0, %c1)\n"));
  EXPECT_THAT(imported(13,
                       "node { op_type: 'QuantizeLinear' input: 'x' input: 's' input: 'z'"
                       " output: 'y' attribute { name: 'axis' type: INT i: -1 } }"
                       "initializer { name: 's' data_type: 1 dims: 3 float_data: [1, 2, 3] }"
                       "initializer { name: 'z' data_type: 3 dims: 3 int32_data: [0, 0, -1] }",
                       {"n", "3"}),
              HasSubstr("%0: i8[n, 3] = QuantizeLinear(%x, %c0, %c1) {axis = 1}"));
}

TEST(ReadModel, CallsTheExtentsOfBertBatchAndSeq) {
  auto model = model_of(13,
                        "node { op_type: 'Add' input: 'input_ids:0' input: 'segment_ids'"
                        " output: 'y' } output { name: 'y' }");
  tests::add_value(*model.mutable_graph()->add_input(), "input_ids:0", i64, {"unk__12", "unk__13"});
  tests::add_value(*model.mutable_graph()->add_input(), "segment_ids", i64, {"", ""});
  tests::add_value(*model.mutable_graph()->add_input(), "start", i64, {"unk__12", "n0", ""});
  const auto text = ir::print(read(model));
  EXPECT_THAT(text, HasSubstr("%input_ids:0: i64[batch, seq], %segment_ids: i64[batch, seq], "
                              "%start: i64[batch, d_n0, start_dim2]"));
}

/// The declaration of a graph with these inputs.
std::string inputs_as_read(
    const std::vector<std::pair<std::string, std::vector<std::string>>>& inputs) {
  auto model = model_of(13,
                        "node { op_type: 'Constant' output: 'y' attribute { name: 'value_int'"
                        " type: INT i: 1 } } output { name: 'y' }");
  for (const auto& [name, shape] : inputs)
    tests::add_value(*model.mutable_graph()->add_input(), name, i64, shape);
  const std::string text = ir::print(read(model));
  return text.substr(0, text.find('\n'));
}

TEST(ReadModel, TwoEncodersHaveSizesOfTheirOwn) {
  for (const auto& [first, second] : std::map<std::string, std::string>{
           {"q/input_ids", "d/input_ids"}, {"input_ids:0", "input_ids:1"}}) {
    EXPECT_EQ(inputs_as_read({{first, {"b", "words"}}, {second, {"b", "text"}}}),
              fmt::format("graph graph(%{}: i64[batch, words], %{}: i64[batch, text]) {{", first,
                          second));
    EXPECT_EQ(
        inputs_as_read({{first, {"b", "words"}}, {second, {"b", "words"}}}),
        fmt::format("graph graph(%{}: i64[batch, seq], %{}: i64[batch, seq]) {{", first, second));
  }
  EXPECT_EQ(inputs_as_read({{"input_ids", {"b", "words"}}, {"attention_mask", {"b", "past + 1"}}}),
            "graph graph(%input_ids: i64[batch, seq], %attention_mask: i64[batch, seq]) {");
}

TEST(ReadModel, SizesOfTwoNamesStayTwo) {
  EXPECT_EQ(inputs_as_read({{"x", {"seq", "n + 1"}},
                            {"input_ids", {"batch", "text"}},
                            {"z", {"seq", "n - 1", "text", ""}},
                            {"z_dim3", {"z_dim3"}}}),
            "graph graph(%x: i64[seq_2, n___1], %input_ids: i64[batch, seq], "
            "%z: i64[seq_2, n___1_2, seq, z_dim3], %z_dim3: i64[z_dim3_2]) {");
}

TEST(ReadModel, ConstantsInEveryForm) {
  const auto constant = [](const std::string& attribute) {
    auto model = model_of(13, "node { op_type: 'Constant' output: 'y' attribute { " + attribute +
                                  " } } output { name: 'y' }");
    return *read(model).outputs()[0].value->constant;
  };
  EXPECT_TRUE(constant("name: 'value_int' type: INT i: 3") == ir::Tensor::scalar<std::int64_t>(3));
  EXPECT_TRUE(constant("name: 'value_floats' type: FLOATS floats: [1, 2]") ==
              ir::Tensor::of<float>({2}, {1, 2}));
  EXPECT_TRUE(
      constant("name: 'value' type: TENSOR t { data_type: 2 dims: 2 raw_data: '\\001\\377' }") ==
      ir::Tensor::of<std::uint8_t>({2}, {1, 255}));
  EXPECT_TRUE(constant("name: 'value' type: TENSOR t { data_type: 10 int32_data: 15360 }") ==
              ir::Tensor::scalar(1.0f).converted(ir::DType::f16));
}

TEST(ReadModel, InitializersAmongTheInputsAreConstants) {
  const std::string text =
      imported(9,
               "node { op_type: 'Add' input: 'x' input: 'w' output: 'y' }"
               "initializer { name: 'w' data_type: 1 float_data: 2 }"
               "input { name: 'w' type { tensor_type { elem_type: 1 shape {} } } }",
               {"n"});
  EXPECT_THAT(text, HasSubstr("graph graph(%x: f32[n]) {\n  const %c0: f32[] = 2.0"));
}

TEST(ReadModel, SortsNodes) {
  EXPECT_THAT(imported(13,
                       "node { op_type: 'Neg' input: 'h' output: 'y' }"
                       "node { op_type: 'Abs' input: 'x' output: 'h' }",
                       {"n"}),
              HasSubstr("%0: f32[n] = Abs(%x)\n  %1: f32[n] = Neg(%0)"));
}

TEST(ReadModel, SortsNodesByWhatBranchesRead) {
  const auto branch = [](const std::string& name, const std::string& nodes) {
    return "attribute { name: '" + name + "' type: GRAPH g { " + nodes +
           " output { name: 't' } } }";
  };
  const auto sorted = [&](const std::string& then) {
    return imported(13,
                    "node { op_type: 'If' input: 'c' output: 'y' " + branch("then_branch", then) +
                        branch("else_branch", "node { op_type: 'Exp' input: 'x' output: 't' }") +
                        " } node { op_type: 'Abs' input: 'x' output: 'h' }"
                        "node { op_type: 'Sin' input: 'y' output: 't' }"
                        "initializer { name: 'c' data_type: 9 int32_data: 1 }",
                    {"n"});
  };
  const std::string reads = "node { op_type: 'Neg' input: 'h' output: 't' }";
  EXPECT_THAT(sorted(reads), HasSubstr("%0: f32[n] = Abs(%x)\n  %1: f32[n] = Neg(%0)"));
  EXPECT_THAT(sorted("node { op_type: 'If' input: 'c' output: 't' " + branch("then_branch", reads) +
                     branch("else_branch", reads) + " }"),
              HasSubstr("%0: f32[n] = Abs(%x)\n  %1: f32[n] = Neg(%0)"));
}

TEST(ReadModel, TakesTheBranchOfAKnownCondition) {
  const std::string branches =
      "attribute { name: 'then_branch' type: GRAPH g { node { op_type: 'Neg' input: 'x' output:"
      " 't' } output { name: 't' } } }"
      "attribute { name: 'else_branch' type: GRAPH g { node { op_type: 'Abs' input: 'x' output:"
      " 'e' } output { name: 'e' } } } }";
  EXPECT_THAT(imported(13,
                       "node { op_type: 'If' input: 'c' output: 'y' " + branches +
                           "initializer { name: 'c' data_type: 9 int32_data: 0 }",
                       {"n"}),
              HasSubstr("%0: f32[n] = Abs(%x)"));
  auto model = model_of(
      13, "node { op_type: 'If' input: 'c' output: 'y' " + branches + "output { name: 'y' }");
  tests::add_value(*model.mutable_graph()->add_input(), "x", f32, {"n"});
  tests::add_value(*model.mutable_graph()->add_input(), "c", 9, {});
  EXPECT_THAT(failure(model), HasSubstr("the condition 'c' is not constant"));
}

TEST(ReadModel, ReadsExternalDataWithinTheFolder) {
  const tests::ScratchFolder folder;
  auto model = model_of(13,
                        "node { op_type: 'Neg' input: 'w' output: 'y' } output { name: 'y' }"
                        "initializer { name: 'w' data_type: 1 dims: 2 data_location: EXTERNAL"
                        " external_data { key: 'location' value: 'w.bin' }"
                        " external_data { key: 'offset' value: '4' }"
                        " external_data { key: 'length' value: '8' } }");
  const auto path = folder / "m.onnx";
  const auto load = [&] {
    std::ofstream(path, std::ios::binary) << model.SerializeAsString();
    return text_or_error(path);
  };
  EXPECT_THAT(load(), HasSubstr("w.bin is missing"));
  const float values[] = {0, 1.5f, -2};
  std::ofstream(folder / "w.bin", std::ios::binary)
      .write(reinterpret_cast<const char*>(values), sizeof values);
  EXPECT_THAT(load(), HasSubstr("const %w: f32[2] = [1.5, -2.0]"));

  // A link may lead to the folder where the model itself is, as in stores of models, nowhere else.
  const tests::ScratchFolder elsewhere;
  std::filesystem::rename(folder / "w.bin", elsewhere / "blob1");
  std::filesystem::create_symlink(elsewhere / "blob1", folder / "w.bin");
  EXPECT_THAT(load(), HasSubstr("outside the model's folder"));
  std::filesystem::rename(path, elsewhere / "blob2");
  std::filesystem::create_symlink(elsewhere / "blob2", path);
  EXPECT_THAT(load(), HasSubstr("const %w: f32[2] = [1.5, -2.0]"));
  std::filesystem::remove(folder / "w.bin");
  ASSERT_EQ(mkfifo((folder / "w.bin").c_str(), 0600), 0);
  EXPECT_THAT(load(), HasSubstr("not a regular file")) << "a pipe is not waited for";

  auto& entries = *model.mutable_graph()->mutable_initializer(0)->mutable_external_data();
  entries[0].set_value("../w.bin");
  EXPECT_THAT(load(), HasSubstr("is outside the model's folder"));
  std::filesystem::remove(folder / "w.bin");
  std::filesystem::copy(elsewhere / "blob1", folder / "w.bin");
  entries[0].set_value("w.bin");
  entries[1].set_value("18446744073709551612");
  EXPECT_THAT(load(), HasSubstr("which has 12"));
}

TEST(ModelBytes, CountEachFileOfExternalDataOnce) {
  const tests::ScratchFolder folder;
  const auto path = folder / "m.onnx";
  EXPECT_EQ(model_bytes(path), 0u);
  EXPECT_THAT(external_files(path), IsEmpty());
  std::string initializers;
  for (const char* location : {"w.bin", "w.bin", "bias", "absent"})
    initializers += std::string(
                        "initializer { data_type: 1 dims: 2 data_location: EXTERNAL"
                        " external_data { key: 'location' value: '") +
                    location + "' } }";
  const std::string file = model_of(13, initializers).SerializeAsString();
  std::ofstream(path, std::ios::binary) << file;
  std::ofstream(folder / "w.bin") << "12345678";
  std::ofstream(folder / "bias") << "12";
  std::ofstream(folder / "m.onnx.data") << "of another model";
  EXPECT_EQ(model_bytes(path), file.size() + 8 + 2);
  EXPECT_THAT(external_files(path),
              UnorderedElementsAre(folder / "w.bin", folder / "bias", folder / "absent"));
  std::ofstream(path) << "words";
  EXPECT_THROW(model_bytes(path), Error);
}

TEST(ReadModel, ReadsAModelInMemoryAndItsExternalDataFromAFolderAlone) {
  const tests::ScratchFolder folder;
  const auto model = model_of(13,
                              "node { op_type: 'Neg' input: 'w' output: 'y' } output { name: 'y' }"
                              "initializer { name: 'w' data_type: 1 dims: 2 data_location: EXTERNAL"
                              " external_data { key: 'location' value: 'w.bin' } }");
  const auto owner = std::make_shared<const std::string>(model.SerializeAsString());
  ModelBytes bytes{std::as_bytes(std::span(*owner)), owner, {}};
  const auto load = [&] { return text_or_error(bytes); };
  EXPECT_THAT(load(),
              HasSubstr("model in memory: tensor 'w': its data are in the file 'w.bin', but "
                        "a model in memory has no folder"));
  bytes.folder = folder.path();
  EXPECT_THAT(load(), HasSubstr("w.bin is missing"));
  const float values[] = {1.5f, -2};
  std::ofstream(folder / "w.bin", std::ios::binary)
      .write(reinterpret_cast<const char*>(values), sizeof values);
  EXPECT_THAT(load(), HasSubstr("const %w: f32[2] = [1.5, -2.0]"));
  const tests::ScratchFolder elsewhere;
  std::filesystem::rename(folder / "w.bin", elsewhere / "w.bin");
  std::filesystem::create_symlink(elsewhere / "w.bin", folder / "w.bin");
  EXPECT_THAT(load(), HasSubstr("outside the model's folder"));
}

}  // namespace
}  // namespace bertcl::onnx_io
