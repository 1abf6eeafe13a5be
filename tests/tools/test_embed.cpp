// SPDX-License-Identifier: Apache-2.0
// bertcl embed: its vectors are the pooled outputs of `bertcl run`, whatever the batch; files and
// options say how. The vectors of sentence-transformers: tests/python/test_sentence_transformer.py.
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <sstream>

#include "npz/npy.hpp"
#include "npz/npz.hpp"
#include "onnx/proto.hpp"
#include "program_runner.hpp"
#include "tasks_model.hpp"
#include "tests/support/matchers.hpp"
#include "tests/support/tokenizer_json.hpp"

namespace bertcl::tools {
namespace {

using tests::expect_refused, tests::refusal, tests::run_bertcl;

using Vectors = std::vector<std::vector<float>>;

const std::string kTexts =
    "Who maintains OpenCL?\n\nThe Khronos Group, which published version 1.0 in 2008.\nshort\n"
    "PoCL is a free implementation of OpenCL that compiles kernels with LLVM.\nanother one\n";

class EmbedTest : public tests::FolderTest {
 protected:
  void SetUp() override {
    // Its one output of rank 3 stands for hidden states: [batch, seq, 2].
    model_ = write("m.onnx", tests::model_of_tasks());
    texts_ = write("texts.txt", kTexts);
  }
  tests::ProgramResult embed(std::vector<std::string> options, const std::string& texts) const {
    options.insert(options.begin(), {"embed", model_, texts, "--vocab", tests::kVocabulary});
    return run_bertcl(options);
  }
  Vectors vectors(const std::vector<std::string>& options) const {
    const tests::ProgramResult result = succeeded(embed(options, texts_));
    return lines(result.out);
  }
  static Vectors lines(const std::string& text) {
    Vectors all;
    for (const nlohmann::json& line : tests::json_lines(text))
      all.push_back(line.at("embedding").get<std::vector<float>>());
    return all;
  }
  /// What `run` gives for each token of each text.
  std::vector<Vectors> hidden_states() const {
    std::vector<Vectors> all;
    for (const nlohmann::json& line :
         json_lines(run_bertcl({"run", model_, "--texts", texts_, "--vocab", tests::kVocabulary})))
      all.push_back(line.at("outputs").at("/qa_outputs/Add_output_0").get<Vectors>());
    return all;
  }
  std::string model_, texts_;
};

TEST_F(EmbedTest, VectorsArePooledHiddenStates) {
  const std::vector<Vectors> hidden = hidden_states();
  for (const std::string kind : {"mean", "max", "cls", "last"}) {
    const Vectors found = vectors({"--pooling", kind});
    ASSERT_EQ(found.size(), 6u) << "an empty line is a text, too";
    ASSERT_EQ(found.size(), hidden.size());
    for (std::size_t i = 0; i < hidden.size(); ++i)
      for (std::size_t column = 0; column < 2; ++column) {
        double sum = 0, largest = -1e30;
        for (const std::vector<float>& token : hidden[i]) {
          sum += token[column];
          largest = std::max<double>(largest, token[column]);
        }
        const double expected = kind == "mean"  ? sum / static_cast<double>(hidden[i].size())
                                : kind == "max" ? largest
                                : kind == "cls" ? hidden[i].front()[column]
                                                : hidden[i].back()[column];
        EXPECT_NEAR(found[i][column], expected, 1e-5) << kind << " of text " << i;
      }
  }
}

TEST_F(EmbedTest, VectorsAreCutAndThenNormalized) {
  const Vectors whole = vectors({"--pooling", "mean"});
  const Vectors unit = vectors({"--pooling", "mean", "--normalize"});
  const Vectors cut = vectors({"--pooling", "mean", "--dimensions", "1"});
  for (std::size_t i = 0; i < whole.size(); ++i) {
    const float norm = std::hypot(whole[i][0], whole[i][1]);
    EXPECT_NEAR(unit[i][0], whole[i][0] / norm, 1e-6);
    EXPECT_NEAR(unit[i][1], whole[i][1] / norm, 1e-6);
    ASSERT_EQ(cut[i].size(), 1u);
    EXPECT_EQ(cut[i][0], whole[i][0]);
  }
  const Vectors both = vectors({"--pooling", "mean", "--dimensions", "1", "--normalize"});
  for (const std::vector<float>& vector : both) EXPECT_NEAR(std::abs(vector[0]), 1.0f, 1e-6);
}

TEST_F(EmbedTest, AVectorHasTheSameBitsInAnyBatch) {
  const Vectors together = vectors({"--pooling", "mean", "--normalize"});
  EXPECT_EQ(vectors({"--pooling", "mean", "--normalize", "--batch-tokens", "1"}), together);
  std::istringstream stream(kTexts);
  std::vector<std::string> texts;
  for (std::string line; std::getline(stream, line);) texts.push_back(line);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto alone =
        embed({"--pooling", "mean", "--normalize"}, write("one.txt", texts[i] + "\n"));
    EXPECT_EQ(lines(alone.out), Vectors{together[i]}) << texts[i];
  }
  std::string reversed;
  for (auto text = texts.rbegin(); text != texts.rend(); ++text) reversed += *text + "\n";
  Vectors found =
      lines(embed({"--pooling", "mean", "--normalize"}, write("reversed.txt", reversed)).out);
  std::ranges::reverse(found);
  EXPECT_EQ(found, together);
}

TEST_F(EmbedTest, ATextWithoutTokensHasAVectorOfZeros) {
  nlohmann::json tokenizer = tests::bert_tokenizer_json({{"a", 4}, {"b", 5}});
  tokenizer["post_processor"] = nlohmann::json::parse(
      R"({"type": "TemplateProcessing", "special_tokens": {},
          "single": [{"Sequence": {"id": "A", "type_id": 0}}],
          "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}]})");
  const std::string vocabulary = write("tokenizer.json", tokenizer.dump());
  const std::string blank = write("blank.txt", "a b\n\nb\n");
  const auto run = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {model_, blank, "--vocab", vocabulary});
    return tests::json_lines(succeeded(run_bertcl(arguments)).out);
  };
  const auto embedded = run({"embed", "--pooling", "mean"});
  ASSERT_EQ(embedded.size(), 3u);
  EXPECT_EQ(embedded[1].at("embedding"), (nlohmann::json{0.0, 0.0}));
  EXPECT_NE(embedded[2].at("embedding"), (nlohmann::json{0.0, 0.0}));
  const auto outputs = run({"run"});
  ASSERT_EQ(outputs.size(), 3u);
  EXPECT_EQ(outputs[1].at("outputs").at("/qa_outputs/Add_output_0"), nlohmann::json::array());
  EXPECT_EQ(outputs[1].at("outputs").at("classes"), (nlohmann::json{0.0, 0.0}));
  EXPECT_EQ(outputs[2].at("outputs").at("/qa_outputs/Add_output_0").size(), 1u);
}

TEST_F(EmbedTest, AVectorThatIsNotFiniteIsToldByItsText) {
  onnx::ModelProto model;
  ASSERT_TRUE(model.ParseFromString(tests::model_of_tasks()));
  const float infinity = std::numeric_limits<float>::infinity();
  for (auto& tensor : *model.mutable_graph()->mutable_initializer())
    if (tensor.name() == "qa_outputs.bias")
      std::memcpy(tensor.mutable_raw_data()->data(), &infinity, sizeof(infinity));
  write("m.onnx", model.SerializeAsString());
  EXPECT_THAT(
      refusal(embed({"--pooling", "mean"}, texts_)),
      HasSubstr("the model returned NaN or infinity for 'PoCL is a free implementation of OpenCL"));
  succeeded(embed({"--pooling", "mean", "--allow-nonfinite"}, texts_));
}

TEST_F(EmbedTest, FilesHoldTheSameNumbers) {
  const Vectors expected = vectors({"--pooling", "mean"});
  std::vector<float> all;
  for (const std::vector<float>& vector : expected)
    all.insert(all.end(), vector.begin(), vector.end());
  for (const char* name : {"v.npy", "v.npz", "v.safetensors", "v.jsonl", "V.NPY", "V.Npz"}) {
    const auto result = succeeded(embed({"--pooling", "mean", "-o", path(name)}, texts_));
    EXPECT_THAT(result.out, HasSubstr("6 vectors of 2 dimensions"));
  }
  const std::string npy = read(path("v.npy"));
  const auto* bytes = reinterpret_cast<const std::byte*>(npy.data());
  const ir::Tensor array = npz::parse_npy({bytes, bytes + npy.size()}, "v.npy");
  EXPECT_EQ(array.shape(), (ir::Sizes{6, 2}));
  EXPECT_TRUE(std::ranges::equal(array.as<float>(), all));
  EXPECT_TRUE(std::ranges::equal(npz::load(path("v.npz")).at("embeddings").as<float>(), all));
  EXPECT_EQ(read(path("V.NPY")), npy);
  EXPECT_EQ(read(path("V.Npz")), read(path("v.npz")));
  EXPECT_EQ(lines(read(path("v.jsonl"))), expected);
  const std::string tensors = read(path("v.safetensors"));
  const auto length = static_cast<std::size_t>(static_cast<unsigned char>(tensors[0])) |
                      static_cast<std::size_t>(static_cast<unsigned char>(tensors[1])) << 8;
  const auto header = nlohmann::json::parse(tensors.substr(8, length)).at("embeddings");
  EXPECT_EQ(header,
            (nlohmann::json{{"dtype", "F32"}, {"shape", {6, 2}}, {"data_offsets", {0, 48}}}));
  ASSERT_EQ(tensors.size(), 8 + length + 48);
  EXPECT_EQ(std::memcmp(tensors.data() + 8 + length, all.data(), 48), 0);
}

TEST_F(EmbedTest, TheSummaryIsNotAmongTheLines) {
  const std::string expected = embed({"--pooling", "mean"}, texts_).out;
  const auto result = succeeded(embed({"--pooling", "mean", "-o", "/dev/stdout"}, texts_));
  EXPECT_EQ(result.out, expected);
  EXPECT_THAT(result.err, StartsWith("bertcl: /dev/stdout: 6 vectors of 2 dim"));
  const auto file = embed({"--pooling", "mean", "-o", path("v.jsonl")}, texts_);
  EXPECT_THAT(file.out, HasSubstr("v.jsonl: 6 vectors of 2 dim"));
  EXPECT_EQ(file.err, "");
  EXPECT_EQ(read(path("v.jsonl")), expected);
}

TEST_F(EmbedTest, FilesOfSentenceTransformersSayHow) {
  std::filesystem::create_directory(path("1_Pooling"));
  const std::string modules = R"([{"type": "sentence_transformers.models.Transformer", "path": ""},
      {"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"},
      {"type": "sentence_transformers.models.Normalize", "path": "2_Normalize"}])";
  write("modules.json", modules);
  write("1_Pooling/config.json",
        R"({"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false})");
  const Vectors told = vectors({});
  EXPECT_EQ(told, vectors({"--pooling", "cls", "--normalize"}));
  EXPECT_EQ(vectors({"--pooling", "mean", "--no-normalize"}).size(), 6u);
  EXPECT_NE(vectors({"--no-normalize"}), told);
  write("1_Pooling/config.json", R"({"pooling_mode": "lasttoken"})");
  EXPECT_EQ(vectors({}), vectors({"--pooling", "last", "--normalize"}));

  write("sentence_bert_config.json", R"({"max_seq_length": 4, "do_lower_case": false})");
  EXPECT_EQ(vectors({}), vectors({"--max-seq-length", "4"}));
  EXPECT_THAT(embed({}, texts_).err, HasSubstr("truncated 3 of 6 texts to 4 tokens"));
  write("config_sentence_transformers.json",
        R"({"prompts": {"query": "query: ", "none": ""}, "default_prompt_name": "query"})");
  EXPECT_EQ(vectors({"--max-seq-length", "16"}),
            vectors({"--max-seq-length", "16", "--prompt-name", "query"}));
  EXPECT_NE(vectors({"--max-seq-length", "16"}),
            vectors({"--max-seq-length", "16", "--prompt", ""}));
  expect_refused(embed({"--prompt-name", "passage"}, texts_), {"unknown prompt 'passage'"});

  write("1_Pooling/config.json", R"({"pooling_mode": "mean", "include_prompt": false})");
  expect_refused(embed({}, texts_), {"include_prompt"});
  write("1_Pooling/config.json", R"({"pooling_mode_weightedmean_tokens": true})");
  expect_refused(embed({}, texts_), {"1_Pooling/config.json", "weightedmean_tokens"});
  write("modules.json", R"([{"type": "sentence_transformers.models.Dense", "path": "2_Dense"}])");
  expect_refused(embed({}, texts_), {"modules.json", "Dense"});
}

TEST_F(EmbedTest, EvalScoresTheCosinesOfTheVectors) {
  write_pooling(R"({"pooling_mode": "mean"})");
  const std::string pairs = write("pairs.csv",
                                  "Who maintains OpenCL?,short,1.5\n"
                                  "short,another one,3\nanother one,Who maintains OpenCL?,0.5\n");
  succeeded(run_bertcl({"eval", model_, "--task", "similarity", "--data", pairs, "--vocab",
                        tests::kVocabulary, "--predictions", path("p.json")}));
  const Vectors all = vectors({});  // of texts 0, 3 and 5 here
  const auto cosine = [&](std::size_t i, std::size_t k) {
    return (all[i][0] * all[k][0] + all[i][1] * all[k][1]) / std::hypot(all[i][0], all[i][1]) /
           std::hypot(all[k][0], all[k][1]);
  };
  const nlohmann::json found = read_json(path("p.json"));
  EXPECT_NEAR(found.at("0").get<double>(), cosine(0, 3), 1e-5);
  EXPECT_NEAR(found.at("1").get<double>(), cosine(3, 5), 1e-5);
  EXPECT_NEAR(found.at("2").get<double>(), cosine(5, 0), 1e-5);
}

TEST_F(EmbedTest, TextsArePreparedAsSentenceTransformersDo) {
  // A vocabulary with case, so that case counts.
  const std::string tokenizer = write("tokenizer.json", R"({"model": {"type": "WordPiece",
      "vocab": {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, " ": 4, "É": 5, "é": 6, "e": 7}},
      "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]}})");
  const auto vectors_of = [&](const std::string& text) {
    const auto result = succeeded(run_bertcl({"embed", model_, write("one.txt", text + "\n"),
                                              "--vocab", tokenizer, "--pooling", "mean"}));
    return lines(result.out);
  };
  const Vectors upper = vectors_of("É"), lower = vectors_of("é");
  EXPECT_NE(upper, lower);
  EXPECT_NE(vectors_of(" É"), upper) << "spaces at its ends are the tokenizer's";
  write("modules.json", R"([{"type": "sentence_transformers.models.Transformer", "path": ""}])");
  write("sentence_bert_config.json", R"({"do_lower_case": true})");
  EXPECT_EQ(vectors_of("É"), lower) << "the accent stays, and the tokenizer is not BERT's";
}

TEST_F(EmbedTest, IdsMayBeNumbers) {
  const std::string texts = write("t.jsonl", R"({"text": "a", "id": 7})"
                                             "\n"
                                             R"({"text": "b", "id": "x"})"
                                             "\n");
  const auto lines = json_lines(embed({"--pooling", "mean"}, texts));
  EXPECT_EQ(lines.at(0).at("id"), "7");
  EXPECT_EQ(lines.at(1).at("id"), "x");
  expect_refused(embed({"--pooling", "mean"}, write("t.jsonl", "{\"text\": \"a\", \"id\": 1.5}\n")),
                 {"t.jsonl:1: id is 1.5, expected a string or an integer"});
}

TEST_F(EmbedTest, APairIsNoTextToEmbed) {
  const std::string pairs =
      write("pairs.jsonl", "{\"text\": \"short\"}\n{\"text\": \"a\", \"text_pair\": \"b\"}\n");
  EXPECT_THAT(embed({"--pooling", "mean"}, pairs).err,
              HasSubstr("pairs.jsonl:2: has text_pair, but embed reads single texts"));
}

TEST_F(EmbedTest, APromptIsUtf8) {
  expect_refused(embed({"--pooling", "mean", "--prompt", "a\xff"}, texts_),
                 {"--prompt: invalid UTF-8 at byte 1 of 2"});
}

TEST_F(EmbedTest, ATextThatTheTokenizerCannotSearchIsNamed) {
  nlohmann::json tokenizer = bertcl::tests::bert_tokenizer_json({{"a", 4}});
  tokenizer["pre_tokenizer"] = {
      {"type", "Split"}, {"pattern", {{"Regex", "(?:[^b]+)+c"}}}, {"behavior", "Isolated"}};
  const std::string file = write("tokenizer.json", tokenizer.dump());
  const std::string texts = write("hard.txt", "a\n" + std::string(40, 'a') + "\n");
  const char* const expected = "hard.txt:2: the tokenizer's regular expression backtracks too long";
  expect_refused({"embed", model_, texts, "--vocab", file, "--pooling", "mean"}, {expected});
  expect_refused({"run", model_, "--texts", texts, "--vocab", file}, {expected});
}

TEST_F(EmbedTest, FilesOfAModelAreRegularFiles) {
  std::filesystem::copy_file(tests::kVocabulary, path("vocab.txt"));
  std::filesystem::create_directory(path("onnx"));
  const std::string hub = write("onnx/model.onnx", tests::model_of_tasks());
  for (const std::string& model : {model_, hub}) {
    const auto embedded = [&] { return run_bertcl({"embed", model, texts_, "--pooling", "mean"}); };
    succeeded(embedded());
    for (const std::string name :
         {"tokenizer.json", "config.json", "tokenizer_config.json", "modules.json"}) {
      SCOPED_TRACE(model + " " + name);
      ASSERT_EQ(mkfifo(path(name).c_str(), 0600), 0);
      expect_refused(embedded(), {name + ": not a regular file"});
      std::filesystem::remove(path(name));
      std::filesystem::create_symlink(name, path(name));
      expect_refused(embedded(), {name + ": cannot open: Too many levels of symbolic"});
      std::filesystem::remove(path(name));
    }
  }
  for (const std::string device : {"/dev/zero", "/dev/null"})
    expect_refused({"embed", model_, texts_, "--pooling", "mean", "--vocab", device},
                   {device + ": not a regular file"});
  // Texts may come from anywhere.
  succeeded(run_bertcl({"embed", model_, "/dev/stdin", "--pooling", "mean"}, {}, "short\n"));
}

TEST_F(EmbedTest, AnAbsentModelIsNamed) {
  const auto result = run_bertcl({"embed", path("none.onnx"), texts_, "--pooling", "mean"});
  expect_refused(result, {"none.onnx: no such file"});
  std::filesystem::create_symlink("loop", path("loop"));
  expect_refused({"embed", path("loop"), texts_}, {"loop: Too many levels of symbolic links"});
}

TEST_F(EmbedTest, TheFilesOfAFolderAboveAreFoundByAllCommands) {
  for (const char* folder : {"hub", "hub/onnx", "hub/1_Pooling", "out"})
    std::filesystem::create_directory(path(folder));
  const std::string model = write("hub/onnx/model.onnx", tests::model_of_tasks());
  write("hub/modules.json",
        R"([{"type": "sentence_transformers.models.Transformer", "path": ""},
            {"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"}])");
  write("hub/1_Pooling/config.json", R"({"pooling_mode": "mean"})");
  write("hub/config.json", R"({"id2label": {"0": "no", "1": "yes"}})");
  // More than the 64 tokens that the model takes.
  write("hub/sentence_bert_config.json", R"({"max_seq_length": 4096})");
  std::filesystem::copy_file(tests::kVocabulary, path("hub/vocab.txt"));
  EXPECT_EQ(run_bertcl({"embed", model, texts_}).code, 0);
  const std::string pairs = write("pairs.csv", "short,another one,3\nshort,text,1\n");
  succeeded(run_bertcl({"eval", model, "--task", "similarity", "--data", pairs}));
  succeeded(run_bertcl(
      {"eval", model, "--task", "classify", "--data", write("t.tsv", "a\tyes\nb\tno\n")}));
  succeeded(run_bertcl({"quantize", model, "-o", path("out/int8.onnx"), "--task", "fill-mask",
                        "--data", texts_, "--samples", "2"}));
  for (const char* name : {"modules.json", "1_Pooling/config.json", "sentence_bert_config.json",
                           "config.json", "vocab.txt"})
    EXPECT_EQ(read(path(std::string("out/") + name)), read(path(std::string("hub/") + name)));
  EXPECT_EQ(run_bertcl({"embed", path("out/int8.onnx"), texts_}).code, 0);
}

TEST_F(EmbedTest, WhatCannotBePooledIsRefused) {
  expect_refused(embed({}, texts_), {"no output is a vector [batch, hidden]",
                                     "copy modules.json and 1_Pooling", "--pooling mean"});
  expect_refused(embed({"--pooling", "mean", "--dimensions", "3"}, texts_),
                 {"3 dimensions requested, but the model has 2"});
  expect_refused(embed({"--pooling", "sum"}, texts_), {"unknown value 'sum'"});
  expect_refused({"embed", tests::kModel, texts_, "--pooling", "mean"},
                 {"no output holds hidden states [batch, seq, hidden]"});
  EXPECT_THAT(
      refusal(run_bertcl({"embed", tests::kModel, texts_})),
      AllOf(HasSubstr("or holds hidden states [batch, seq, hidden]"), Not(HasSubstr("--pooling"))));
  expect_refused(embed({"--pooling", "mean", "--json", "-"}, texts_), {"-o FILE"});
  expect_refused(embed({"--pooling", "mean"}, write("empty.txt", "")), {"contains no text"});
}

TEST_F(EmbedTest, EvalOfAModelWithoutAnswersNamesItsTasks) {
  onnx::ModelProto model;
  model.ParseFromString(tests::model_of_tasks());
  auto& outputs = *model.mutable_graph()->mutable_output();
  while (outputs[0].name() != "classes") outputs.DeleteSubrange(0, 1);
  outputs.DeleteSubrange(1, outputs.size() - 1);
  expect_refused({"eval", write("classes.onnx", model.SerializeAsString()), "--data", tests::kData,
                  "--vocab", tests::kVocabulary},
                 {"classes.onnx: no start and end logits among the outputs classes f32[batch, 2]",
                  "; for this model use --task classify"});
}

}  // namespace
}  // namespace bertcl::tools
