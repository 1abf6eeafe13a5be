// SPDX-License-Identifier: Apache-2.0
// Numbers that are none, and a vocabulary of another model: refused, not answered.
#include <cstdint>
#include <cstring>
#include <limits>

#include "onnx/proto.hpp"
#include "program_runner.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::tests {
namespace {

class ValuesTest : public FolderTest {
 protected:
  /// The default model with other bytes in a constant.
  template <typename T>
  std::string model_with(const std::string& constant, std::size_t index, T value) const {
    onnx::ModelProto model;
    EXPECT_TRUE(model.ParseFromString(read(kModel)));
    bool found = false;
    for (auto& tensor : *model.mutable_graph()->mutable_initializer())
      if (tensor.name() == constant) {
        std::memcpy(tensor.mutable_raw_data()->data() + index * sizeof(T), &value, sizeof(T));
        found = true;
      }
    EXPECT_TRUE(found) << constant;
    return write("model.onnx", model.SerializeAsString());
  }
  static std::vector<std::string> answer(const std::string& model) {
    return {"answer", model, "--vocab", kVocabulary, "-q", "Who maintains OpenCL?"};
  }
  static std::vector<std::string> with(std::vector<std::string> arguments, const char* more) {
    arguments.emplace_back(more);
    return arguments;
  }
};

TEST_F(ValuesTest, NaNInAWeightIsToldByItsName) {
  constexpr std::uint16_t kNaN = 0x7e00;
  const std::string model =
      model_with("m.bert.embeddings.word_embeddings.weight_half", 5 * 384 + 7, kNaN);
  expect_refused(answer(model), {"word_embeddings", "element 1927", "--allow-nonfinite"});
  EXPECT_THAT(refusal(run_bertcl({"quantize", model, "-o", path("q.onnx"), "--data", kCalibration,
                                  "--vocab", kVocabulary})),
              AllOf(HasSubstr("element 1927"), EndsWith("training diverged\n")));
  // No token of the text has this row.
  const ProgramResult allowed = run_bertcl(with(answer(model), "--allow-nonfinite"));
  EXPECT_THAT(allowed.out, StartsWith("Khronos Group\n")) << allowed.err;
}

TEST_F(ValuesTest, LogitsThatAreNoNumbersAreToldByTheirOutput) {
  const std::string model =
      model_with("m.qa_outputs.bias", 0, std::numeric_limits<float>::infinity());
  const std::vector<std::string> eval{"eval",   model, "--vocab", kVocabulary,
                                      "--data", kData, "--limit", "1"};
  const std::pair<std::vector<std::string>, std::string> refusals[] = {
      {answer(model),
       "NaN or infinity for a window of 88 tokens (question 0 of the data, counted from 0)"},
      {eval, "NaN or infinity for item 0 of the data, counted from 0;"}};
  for (const auto& [arguments, message] : refusals) {
    expect_refused(arguments, {message, "--allow-nonfinite"});
    EXPECT_EQ(run_bertcl(with(arguments, "--allow-nonfinite")).code, 0);
  }
}

TEST_F(ValuesTest, AVocabularyOfAnotherModelIsNotUsedSilently) {
  const std::string right = read(kVocabulary);
  std::string larger = right;
  for (int i = 0; i < 3; ++i) larger += "[more" + std::to_string(i) + "]\n";
  const std::string file = write("other.txt", larger);
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"answer", kModel, "-q", "Who maintains OpenCL?"},
        {"eval", kModel, "--data", kData, "--limit", "2"},
        {"quantize", kModel, "-o", path("q.onnx"), "--data", kData}})
    EXPECT_THAT(refusal(run_bertcl(with(with(arguments, "--vocab"), file.c_str()))),
                AllOf(HasSubstr("30522 rows"), HasSubstr("30525 tokens"), HasSubstr("--vocab")))
        << arguments[0];
  // A model may have been trained with a smaller one.
  const std::string half = write("half.txt", right.substr(0, right.size() / 2));
  const ProgramResult smaller =
      succeeded(run_bertcl({"answer", kModel, "--vocab", half, "-q", "Who maintains OpenCL?"}));
  EXPECT_THAT(smaller.err, AllOf(HasSubstr("30522 rows"), HasSubstr("results are wrong")));
  // Tables are padded, and vocabularies have tokens that no text has.
  const std::string padded = right.substr(0, right.rfind('\n', right.size() - 2) + 1);
  const ProgramResult spare = succeeded(run_bertcl(
      {"answer", kModel, "--vocab", write("padded.txt", padded), "-q", "Who maintains OpenCL?"}));
  EXPECT_EQ(spare.err, "");
}

TEST_F(ValuesTest, AByteOrderMarkIsNoPartOfTheFirstToken) {
  const ProgramResult result = run_bertcl({"answer", kModel, "--vocab",
                                           write("vocab.txt", "\xEF\xBB\xBF" + read(kVocabulary)),
                                           "-q", "Who maintains OpenCL?"});
  EXPECT_THAT(result.out, StartsWith("Khronos Group\n")) << result.err;
}

}  // namespace
}  // namespace bertcl::tests
