// SPDX-License-Identifier: Apache-2.0
// Vocabulary, tokenizer and configuration that lie beside a model, and beside its int8 model then.
#include "quant/writing/companions.hpp"

#include <filesystem>

#include "program_runner.hpp"
#include "tests/support/matchers.hpp"
#include "tools/report/eval_report.hpp"

namespace bertcl::tools {
namespace {

namespace fs = std::filesystem;
using tests::run_bertcl;

class CompanionsTest : public tests::FolderTest {
 protected:
  CompanionsTest() {
    for (const char* folder : {"in", "out", "elsewhere"}) fs::create_directory(path(folder));
  }
  std::vector<std::string> copy(const std::string& vocabulary = "", bool replace = false) const {
    WrittenFiles written;
    auto names =
        quant::Companions(path("in/model.onnx"), vocabulary, path("out/int8.onnx"), replace)
            .copy(written);
    written.commit();
    written.keep();
    return names;
  }
};

TEST_F(CompanionsTest, AllOfThemAreCopiedAsTheyAreAndNothingElse) {
  write("in/vocab.txt", "\xEF\xBB\xBF[PAD]\r\n");
  for (const char* name : {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
                           "config.json", "README.md", "other.onnx"})
    write(std::string("in/") + name, name);
  EXPECT_THAT(copy(), UnorderedElementsAre("vocab.txt", "tokenizer.json", "config.json",
                                           "tokenizer_config.json", "special_tokens_map.json"));
  EXPECT_EQ(read(path("out/vocab.txt")), "\xEF\xBB\xBF[PAD]\r\n");
  EXPECT_EQ(read(path("out/config.json")), "config.json");
  EXPECT_FALSE(fs::exists(path("out/README.md")));
  EXPECT_THAT(copy(), IsEmpty()) << "they are there";
}

TEST_F(CompanionsTest, ThoseOfSentenceTransformersAreAmongThem) {
  for (const char* folder : {"in/1_Pooling", "in/2_Dense", "in/3_Other"})
    fs::create_directory(path(folder));
  const std::vector<std::string> names = {
      "1_Pooling/config.json", "2_Dense/config.json", "2_Dense/model.safetensors",
      "config_sentence_transformers.json", "sentence_bert_config.json"};
  for (const std::string& name : names) write("in/" + name, name);
  write("in/3_Other/config.json", "of no Dense module");
  write("in/modules.json", R"([{"type": "sentence_transformers.models.Dense", "path": "2_Dense"},
      {"type": "sentence_transformers.models.Other", "path": "3_Other"}])");
  std::vector<std::string> all = names;
  all.insert(all.end() - 1, "modules.json");
  EXPECT_EQ(copy(), all);
  for (const std::string& name : all)
    EXPECT_EQ(read(path("out/" + name)), read(path("in/" + name)));
}

TEST_F(CompanionsTest, TheFileOfTheTransformerMayLieInAFolderAndBeNamedAfterTheModel) {
  fs::create_directory(path("in/0_Transformer"));
  write("in/modules.json",
        R"([{"type": "sentence_transformers.models.Transformer", "path": "0_Transformer"}])");
  write("in/sentence_roberta_config.json", "a");
  write("in/0_Transformer/sentence_xlm-roberta_config.json", "b");
  EXPECT_THAT(copy(), UnorderedElementsAre("modules.json", "sentence_roberta_config.json",
                                           "0_Transformer/sentence_xlm-roberta_config.json"));
}

TEST_F(CompanionsTest, ThePoolingMayLieInAnyFolder) {
  fs::create_directory(path("in/pooling"));
  write("in/modules.json",
        R"([{"type": "sentence_transformers.models.Pooling", "path": "pooling"}])");
  write("in/pooling/config.json", "mean");
  write("in/pooling/other.json", "of no module");
  EXPECT_THAT(copy(), UnorderedElementsAre("modules.json", "pooling/config.json"));
}

TEST_F(CompanionsTest, NoModuleLiesOutsideOfTheFolder) {
  for (const std::string outside : {"../2_Dense", "/2_Dense", "a/../../2_Dense", ".", ""}) {
    write("in/modules.json",
          R"([{"type": "sentence_transformers.models.Dense", "path": ")" + outside + "\"}]");
    EXPECT_ERROR(HasSubstr("modules.json: [0].path is outside the model's folder; write only"),
                 copy());
  }
}

TEST_F(CompanionsTest, InTheFolderOfTheModelThereIsNothingToDo) {
  write("in/vocab.txt", "a");
  fs::create_directory_symlink("in", path("link"));
  WrittenFiles written;
  for (const char* output : {"in/int8.onnx", "link/int8.onnx", "out/../in/int8.onnx"})
    EXPECT_THAT(quant::Companions(path("in/model.onnx"), "", path(output), false).copy(written),
                IsEmpty());
}

TEST_F(CompanionsTest, ThoseOfAnotherModelStay) {
  write("in/vocab.txt", "mine");
  write("out/vocab.txt", "its");
  EXPECT_ERROR(AllOf(HasSubstr(path("out/vocab.txt") + " differs from " + path("in/vocab.txt")),
                     HasSubstr("replace that file with 'force'"),
                     HasSubstr("write only the model with 'model_only'")),
               copy());
  EXPECT_EQ(read(path("out/vocab.txt")), "its");
  EXPECT_THAT(copy("", true), ElementsAre("vocab.txt"));
  EXPECT_EQ(read(path("out/vocab.txt")), "mine");
  // This one would be read, too: letters would keep their case.
  write("out/tokenizer_config.json", R"({"do_lower_case": false})");
  for (const bool replace : {false, true})
    EXPECT_ERROR(
        AllOf(HasSubstr("out/tokenizer_config.json has no counterpart"), Not(HasSubstr("force"))),
        copy("", replace));
  // Nor is 'force' proposed for another file first.
  write("out/vocab.txt", "its");
  EXPECT_ERROR(HasSubstr("has no counterpart"), copy());
}

TEST_F(CompanionsTest, AModelWithoutAnyMindsNothing) {
  write("out/vocab.txt", "its");
  EXPECT_THAT(copy(), IsEmpty());
}

TEST_F(CompanionsTest, AVocabularyThatIsNamedIsTheOneThatGoes) {
  write("in/vocab.txt", "not this");
  write("in/config.json", "{}");
  write("elsewhere/words", "this");
  write("elsewhere/tokenizer_config.json", "cased");
  write("elsewhere/tokenizer.json", "that of words, or of another");
  copy(path("elsewhere/words"));
  EXPECT_EQ(read(path("out/vocab.txt")), "this");
  EXPECT_EQ(read(path("out/tokenizer_config.json")), "cased");
  EXPECT_FALSE(fs::exists(path("out/tokenizer.json")));
  EXPECT_TRUE(fs::exists(path("out/config.json")));
  fs::remove(path("out/vocab.txt"));
  copy(write("elsewhere/any.json", "{\"model\": {}}"));
  EXPECT_EQ(read(path("out/tokenizer.json")), "{\"model\": {}}");
}

TEST_F(CompanionsTest, EveryKindOfTokenizerKeepsItsName) {
  write("elsewhere/vocab.json", "{}");
  write("elsewhere/merges.txt", "a b");
  copy(path("elsewhere/vocab.json"));
  EXPECT_EQ(read(path("out/vocab.json")), "{}");
  EXPECT_EQ(read(path("out/merges.txt")), "a b");
  EXPECT_FALSE(fs::exists(path("out/tokenizer.json")));
  fs::remove(path("out/vocab.json"));
  fs::remove(path("out/merges.txt"));
  const std::string piece("\n\x05\n\x03<s>\x15\0\0\0\0", 12);
  copy(write("elsewhere/any.model", piece));
  EXPECT_EQ(read(path("out/sentencepiece.bpe.model")), piece);
  EXPECT_FALSE(fs::exists(path("out/merges.txt")));
}

TEST_F(CompanionsTest, TheInt8ModelNeedsNoVocabularyToBeNamed) {
  const std::string int8 = path("out/int8.onnx");
  const std::vector<std::string> quantize = {"quantize", tests::kModel, "-o", int8, "--dynamic"};
  const auto made = succeeded(run_bertcl(quantize));
  EXPECT_THAT(made.out, HasSubstr("copied beside it: vocab.txt\n"));
  EXPECT_THAT(files(), ElementsAre("elsewhere", "in", "out", "out/int8.onnx", "out/vocab.txt"));
  const auto answer = run_bertcl({"answer", int8, "-q", "Who maintains OpenCL?"});
  EXPECT_THAT(answer.out, StartsWith("Khronos Group\n")) << answer.err;

  write("elsewhere/vocab.txt", "[PAD]\n");
  std::vector<std::string> other = quantize;
  other[3] = path("elsewhere/int8.onnx");
  tests::expect_refused(other, {"elsewhere/vocab.txt differs from"});
  EXPECT_FALSE(fs::exists(other[3])) << "told before any work";
  other.emplace_back("--model-only");
  EXPECT_EQ(run_bertcl(other).code, 0);
  EXPECT_EQ(read(path("elsewhere/vocab.txt")), "[PAD]\n");
}

TEST_F(CompanionsTest, TheModelIsWrittenLast) {
  write("out/int8.onnx", "an older one");
  write("out/1_Pooling", "no folder");
  fs::create_directory(path("in/1_Pooling"));
  write("in/1_Pooling/config.json", "{}");
  fs::copy_file(bertcl::tests::source_file("models/minilm-l6-squad/vocab.txt"),
                path("in/vocab.txt"));
  fs::copy_file(tests::kModel, path("in/model.onnx"));
  tests::expect_refused(
      {"quantize", path("in/model.onnx"), "-o", path("out/int8.onnx"), "--dynamic", "--force"},
      {"1_Pooling"});
  EXPECT_EQ(read(path("out/int8.onnx")), "an older one");
  EXPECT_FALSE(fs::exists(path("out/vocab.txt")));
}

TEST(ShortNames, TellFilesApart) {
  EXPECT_THAT(short_names({"a/int8.onnx", "b/fp32.onnx"}), ElementsAre("int8.onnx", "fp32.onnx"));
  EXPECT_THAT(short_names({"x/a/m.onnx", "x/b/m.onnx", "n.onnx"}),
              ElementsAre("a/m.onnx", "b/m.onnx", "n.onnx"));
  EXPECT_THAT(short_names({"x/a/m.onnx", "y/a/m.onnx"}), ElementsAre("x/a/m.onnx", "y/a/m.onnx"));
  EXPECT_THAT(short_names({"m.onnx", "a/m.onnx"}), ElementsAre("m.onnx", "a/m.onnx"));
  EXPECT_THAT(short_names({"m.onnx", "m.onnx"}), ElementsAre("m.onnx", "m.onnx"));
  EXPECT_THAT(short_names({"/m.onnx", "/a/m.onnx"}), ElementsAre("m.onnx", "a/m.onnx"));
}

}  // namespace
}  // namespace bertcl::tools
