// SPDX-License-Identifier: Apache-2.0
// What cannot be read is refused with a message that names the place; damaged bytes never crash.
#include <fmt/format.h>

#include <fstream>
#include <new>
#include <random>
#include <stdexcept>

#include "onnx/tensors.hpp"
#include "tests/onnx/text_model.hpp"
#include "tests/support/files.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::onnx_io {
namespace {

using tests::failure, tests::model_of;

std::string refused(const std::filesystem::path& path) {
  return error_of([&] { read_model(path); });
}

onnx::ModelProto with_input(int opset, const std::string& graph) {
  auto model = model_of(opset, graph + " output { name: 'y' }");
  tests::add_value(*model.mutable_graph()->add_input(), "x", 1, {"2", "3"});
  return model;
}

TEST(Errors, NameTheFile) {
  const tests::ScratchFolder folder;
  EXPECT_THAT(refused("/no/such/model.onnx"), HasSubstr("/no/such/model.onnx: no such file"));
  std::ofstream(folder / "text.onnx") << "{\"this\": \"is JSON\"}";
  EXPECT_THAT(refused(folder / "text.onnx"), HasSubstr("text.onnx: not an ONNX file"));
  std::ofstream(folder / "empty.onnx") << "";
  EXPECT_THAT(refused(folder / "empty.onnx"), HasSubstr("the file is empty"));
  std::filesystem::create_symlink("loop.onnx", folder / "loop.onnx");
  EXPECT_THAT(refused(folder / "loop.onnx"),
              AllOf(testing::StartsWith(folder.path().string()),
                    HasSubstr("loop.onnx: cannot be opened: Too many levels of symbolic links")));
  EXPECT_THAT(refused(std::string(300, 'a')), HasSubstr("a: cannot be opened: File name too long"));
}

TEST(Errors, PathsThatNameNoFileAreNotRepeated) {
  EXPECT_EQ(refused(""), "the path of the model is empty");
  EXPECT_EQ(refused(std::string(100'000, 'a')),
            "the path of the model has 100000 bytes, expected less than 4096");
  EXPECT_EQ(refused(std::string("a\0b.onnx", 8)), "the path of the model holds a zero byte");
}

TEST(Errors, NameTheNodeWhereAnErrorBeginsAsTheNameOfTheFile) {
  const tests::ScratchFolder folder;
  std::ofstream(folder / "MatMul", std::ios::binary)
      << with_input(17,
                    "initializer { name: 'w' data_type: 1 dims: 2 float_data: [1, 2] }"
                    "node { name: 'm' op_type: 'MatMul' input: 'x' input: 'w' output: 'y' }")
             .SerializeAsString();
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  EXPECT_THAT(refused("MatMul"), testing::StartsWith("MatMul: node 'm' (MatMul): MatMul 'm'"));
  std::filesystem::current_path(before);
}

TEST(Errors, NameOperatorDomainAndOpset) {
  const auto message = failure(
      with_input(17, "node { name: 'c' op_type: 'MaxPool' input: 'x' input: 'x' output: 'y' }"));
  EXPECT_THAT(message, HasSubstr("node 'c': operator MaxPool of domain 'ai.onnx' (opset 17) is not "
                                 "supported; docs/operators.md lists the supported operators"));
  EXPECT_THAT(failure(with_input(17,
                                 "node { domain: 'com.microsoft' op_type: 'NhwcMaxPool'"
                                 " input: 'x' output: 'y' }")),
              HasSubstr("node 'y': operator NhwcMaxPool of domain 'com.microsoft' (opset 1) is not "
                        "supported; docs"));
}

TEST(Errors, NameTheOperatorThatMayBeMeant) {
  const auto message_for = [](const std::string& op) {
    return failure(with_input(17, "node { " + op + " input: 'x' output: 'y' }"));
  };
  EXPECT_THAT(message_for("op_type: 'softmax'"), HasSubstr("(did you mean Softmax?)"));
  EXPECT_THAT(message_for("op_type: 'LayerNormalisation'"),
              HasSubstr("(did you mean LayerNormalization?)"));
  EXPECT_THAT(message_for("op_type: 'BiasGelu'"),
              HasSubstr("(did you mean com.microsoft::BiasGelu?)"));
  EXPECT_THAT(message_for("op_type: 'BiasGelu' domain: 'other'"),
              HasSubstr("(did you mean com.microsoft::BiasGelu?)"));
  EXPECT_THAT(message_for("op_type: 'Loop'"), Not(HasSubstr("did you mean")));
}

// The page that these messages name.
TEST(Errors, TheOperatorsOfTheDocumentationAreTheSupportedOnes) {
  std::ifstream page(tests::source_file("docs/operators.md"));
  std::vector<std::string> listed;
  for (std::string line; std::getline(page, line);)
    if (line.starts_with("- `") && line.find('`', 3) != line.npos)
      listed.push_back(line.substr(3, line.find('`', 3) - 3));
  EXPECT_THAT(listed, ElementsAreArray(supported_operators()))
      << "docs/operators.md has a line \"- `NAME`\" for each supported operator, in this order";
}

TEST(Errors, AnAttributeOfAFunctionThatIsNone) {
  EXPECT_THAT(failure(with_input(13,
                                 "node { op_type: 'Softmax' input: 'x' output: 'y' attribute {"
                                 " name: 'axis' ref_attr_name: 'axis' type: INT } }")),
              HasSubstr("node 'y' (Softmax): attribute 'axis' refers to function attribute 'axis', "
                        "but the node is not inside a function"));
}

TEST(Errors, NameAttributeAndType) {
  EXPECT_THAT(failure(with_input(17,
                                 "node { op_type: 'Neg' input: 'x' output: 'y'"
                                 " attribute { name: 'axis' type: INT i: 1 } }")),
              HasSubstr("node 'y' (Neg): attribute 'axis' is not supported"));
  EXPECT_THAT(failure(with_input(17,
                                 "node { op_type: 'Cast' input: 'x' output: 'y'"
                                 " attribute { name: 'to' type: INT i: 8 } }")),
              HasSubstr("element type string is not supported"));
  EXPECT_THAT(failure(model_of(5, "output { name: 'y' }")),
              HasSubstr("opset 5 is not supported (minimum: 7)"));
}

TEST(Errors, NameTensorAndShape) {
  EXPECT_THAT(failure(with_input(17,
                                 "node { name: 'm' op_type: 'MatMul' input: 'x' input: 'w'"
                                 " output: 'y' } initializer { name: 'w' data_type: 1 dims: 2"
                                 " dims: 1 float_data: [1, 2] }")),
              AllOf(HasSubstr("MatMul 'm'"), HasSubstr("'x' [2, 3] and 'w' [2, 1]"),
                    HasSubstr("3 against 2")));
  EXPECT_THAT(failure(with_input(17,
                                 "node { op_type: 'Add' input: 'x' input: 'w' output: 'y' }"
                                 "initializer { name: 'w' data_type: 1 dims: 3 raw_data:"
                                 " '1234' }")),
              HasSubstr("tensor 'w': 4 bytes of data, 3 elements of f32 need 12"));
  EXPECT_THAT(
      failure(with_input(17, "node { op_type: 'Add' input: 'x' input: 'gone' output: 'y' }")),
      HasSubstr("reads 'gone', which no earlier node defines"));
}

TEST(Errors, CyclesAndHugeTensors) {
  EXPECT_THAT(failure(with_input(17,
                                 "node { op_type: 'Add' input: 'x' input: 'b' output: 'a' }"
                                 "node { op_type: 'Add' input: 'x' input: 'a' output: 'b' }"
                                 "node { op_type: 'Neg' input: 'a' output: 'y' }")),
              HasSubstr("which no earlier node defines"));
  EXPECT_THAT(failure(with_input(17,
                                 "node { op_type: 'Neg' input: 'w' output: 'y' }"
                                 "initializer { name: 'w' data_type: 1 dims: 4611686018427387904"
                                 " dims: 16 }")),
              HasSubstr("tensor 'w' is too large"));
}

TEST(Errors, LackOfMemoryIsNotDamage) {
  auto model = with_input(17,
                          "node { op_type: 'Add' input: 'x' input: 'w' output: 'y' }"
                          "initializer { name: 'w' data_type: 1 float_data: 1 }");
  TensorReader tensors("m.onnx", nullptr, ir::Memory::anonymous);
  const auto code = [&](const auto& failure) {
    try {
      import_model(model, "m.onnx", tensors, [&](int) -> ir::Tensor { throw failure; });
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), StartsWith("m.onnx: "));
      return error.code();
    }
    return ErrorCode::internal;
  };
  EXPECT_EQ(code(std::bad_alloc()), ErrorCode::out_of_memory);
  EXPECT_EQ(code(std::length_error("vector")), ErrorCode::out_of_memory);
}

TEST(Errors, AxesBlocksAndPadsNameTheNumbers) {
  const auto quantize = [](int axis, int block) {
    return failure(with_input(21, fmt::format(R"(
        node {{ op_type: 'QuantizeLinear' input: 'x' input: 's' output: 'y'
                attribute {{ name: 'axis' type: INT i: {} }}
                attribute {{ name: 'block_size' type: INT i: {} }} }}
        initializer {{ name: 's' data_type: 1 dims: [2, 2] float_data: [1, 1, 1, 1] }})",
                                              axis, block)));
  };
  EXPECT_THAT(quantize(2, 2), HasSubstr("axis 2 is out of range for rank 2"));
  EXPECT_THAT(quantize(-3, 2), HasSubstr("axis -3 is out of range for rank 2"));
  EXPECT_THAT(quantize(1, -2), HasSubstr("block_size -2 is less than 1"));
  const auto pad = [](const char* pads, int axis) {
    return failure(with_input(18, fmt::format(R"(
        node {{ op_type: 'Pad' input: 'x' input: 'p' input: '' input: 'a' output: 'y' }}
        initializer {{ name: 'p' data_type: 7 {} }}
        initializer {{ name: 'a' data_type: 7 dims: 1 int64_data: {} }})",
                                              pads, axis)));
  };
  EXPECT_EQ(pad("dims: 2 int64_data: [0, 1]", -1), kNoError);
  EXPECT_THAT(pad("dims: 2 int64_data: [0, 1]", 2), HasSubstr("axis 2 is out of range for rank 2"));
  EXPECT_THAT(pad("dims: 2 int64_data: [0, 1]", -3), HasSubstr("axis -3 is out of range"));
  EXPECT_THAT(pad("dims: 3 int64_data: [0, 1, 2]", 1),
              HasSubstr("3 pads for 1 axes, expected two for each"));
}

/// A model that touches every kind of field the importer reads.
onnx::ModelProto rich_model() {
  auto model = with_input(
      13,
      "name: 'rich'"
      "node { op_type: 'Shape' input: 'x' output: 's' }"
      "node { op_type: 'Constant' output: 'i' attribute { name: 'value_int' type: INT i: 0 } }"
      "node { op_type: 'Gather' input: 's' input: 'i' output: 'n' attribute { name: 'axis' type:"
      " INT i: 0 } }"
      "node { op_type: 'Unsqueeze' input: 'n' input: 'axes' output: 'u' }"
      "node { op_type: 'Concat' input: 'u' input: 'rest' output: 't' attribute { name: 'axis' type:"
      " INT i: 0 } }"
      "node { op_type: 'Reshape' input: 'x' input: 't' output: 'r' }"
      "node { op_type: 'Transpose' input: 'r' output: 'p' attribute { name: 'perm' type: INTS"
      " ints: [0, 2, 1] } }"
      "node { op_type: 'Slice' input: 'p' input: 'zero' input: 'one' input: 'axes' output: 'c' }"
      "node { op_type: 'MatMul' input: 'c' input: 'w' output: 'm' }"
      "node { op_type: 'ReduceMean' input: 'm' output: 'q' attribute { name: 'axes' type: INTS"
      " ints: -1 } }"
      "node { op_type: 'Softmax' input: 'q' output: 'f' }"
      "node { op_type: 'QuantizeLinear' input: 'f' input: 'scale' output: 'y' }"
      "initializer { name: 'axes' data_type: 7 dims: 1 int64_data: 0 }"
      "initializer { name: 'zero' data_type: 7 dims: 1 int64_data: 0 }"
      "initializer { name: 'one' data_type: 7 dims: 1 int64_data: 1 }"
      "initializer { name: 'rest' data_type: 7 dims: 2 int64_data: [-1, 1] }"
      "initializer { name: 'scale' data_type: 1 float_data: 0.1 }");
  auto* w = model.mutable_graph()->add_initializer();
  w->set_name("w");
  w->set_data_type(1);
  w->add_dims(3);
  w->add_dims(4);
  w->set_raw_data(std::string(48, '\0'));
  return model;
}

TEST(Errors, DamagedBytesNeverCrash) {
  const std::string good = rich_model().SerializeAsString();
  const tests::ScratchFolder folder;
  const auto path = folder / "m.onnx";
  const auto outcome = [&](const std::string& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
    return refused(path);  // anything but a bertcl::Error ends the test
  };
  ASSERT_EQ(outcome(good), kNoError);
  int refusals = 0;
  for (std::size_t n = 0; n < good.size(); n += 3)
    refusals += outcome(good.substr(0, n)) != kNoError;
  EXPECT_GT(refusals, 100);
  std::mt19937 random(7);
  for (int i = 0; i < 1500; ++i) {
    std::string bytes = good;
    for (auto flips = 1 + random() % 3; flips > 0; --flips)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    outcome(bytes);
  }
}

}  // namespace
}  // namespace bertcl::onnx_io
