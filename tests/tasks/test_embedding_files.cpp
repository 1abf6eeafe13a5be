// SPDX-License-Identifier: Apache-2.0
// What is read from the files of sentence-transformers, and where they lie.
#include "tasks/model_files/embedding_files.hpp"
#include "tasks/model_files/model_config.hpp"

#include <filesystem>
#include <fstream>

#include "tests/support/matchers.hpp"
#include "tests/tasks/support.hpp"
#include "text/base/companion_files.hpp"

namespace bertcl::tasks {
namespace {

namespace fs = std::filesystem;

class EmbeddingFilesTest : public testing::Test {
 protected:
  EmbeddingFilesTest() {
    write("modules.json", R"([{"type": "sentence_transformers.models.Transformer", "path": ""},
        {"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"}])");
    write("1_Pooling/config.json", R"({"pooling_mode": "mean"})");
  }
  void write(const fs::path& name, const std::string& content) const {
    fs::create_directories((folder_ / name.string()).parent_path());
    std::ofstream(folder_ / name.string()) << content;
  }
  EmbeddingFiles read() const { return read_embedding_files(folder_ / "model.onnx"); }
  std::string refusal() const {
    return error_of([&] { read(); });
  }
  const tests::ScratchFolder folder_;
};

TEST_F(EmbeddingFilesTest, TheLongestTextIsANumberOfTokens) {
  const auto length = [&](const std::string& json) {
    write("sentence_bert_config.json", R"({"max_seq_length": )" + json + "}");
    return read().max_length;
  };
  EXPECT_EQ(length("128"), 128);
  EXPECT_EQ(length("128.0"), 128);
  EXPECT_EQ(length("null"), std::nullopt);
  EXPECT_EQ(length("1e30"), std::nullopt) << "stands for no limit";
  EXPECT_EQ(length("18446744073709551615"), std::nullopt);
  for (const char* wrong : {"0", "-1", "-9223372036854775808", "12.5"}) {
    EXPECT_ERROR(AllOf(HasSubstr("sentence_bert_config.json: max_seq_length is "),
                       HasSubstr("expected a number of tokens")),
                 length(wrong))
        << wrong;
  }
  EXPECT_ERROR(HasSubstr("max_seq_length is of type string"), length("\"128\""));
}

TEST_F(EmbeddingFilesTest, ElseTheTokenizerTellsIt) {
  write("tokenizer_config.json", R"({"model_max_length": 64})");
  EXPECT_EQ(read().max_length, 64);
  write("tokenizer_config.json", R"({"model_max_length": 1000000000000000019884624838656})");
  EXPECT_EQ(read().max_length, std::nullopt);
  for (const char* wrong : {"-5", "0.5"}) {
    write("tokenizer_config.json", std::string(R"({"model_max_length": )") + wrong + "}");
    EXPECT_THAT(refusal(), HasSubstr("tokenizer_config.json: model_max_length is ")) << wrong;
  }
  write("tokenizer_config.json", R"({"model_max_length": 64})");
  write("sentence_bert_config.json", R"({"max_seq_length": 32})");
  EXPECT_EQ(read().max_length, 32);
}

TEST_F(EmbeddingFilesTest, TheFileOfTheTransformerMayBeNamedAfterTheModel) {
  for (const char* name :
       {"roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet"}) {
    const std::string file = "sentence_" + std::string(name) + "_config.json";
    write(file, R"({"max_seq_length": 77, "do_lower_case": true})");
    EXPECT_EQ(read().max_length, 77) << name;
    EXPECT_TRUE(read().lower_case) << name;
    fs::remove(folder_ / file);
    EXPECT_EQ(read().max_length, std::nullopt);
  }
  write("sentence_roberta_config.json", R"({"max_seq_length": 77})");
  write("sentence_bert_config.json", R"({"max_seq_length": 32})");
  EXPECT_EQ(read().max_length, 32) << "it comes first";
}

TEST_F(EmbeddingFilesTest, NoTextIsLongerThanTheModelTakes) {
  EmbeddingFiles files;
  EXPECT_EQ(longest_text(files.max_length, 0), 512);
  EXPECT_EQ(longest_text(files.max_length, 128), 128);
  files.max_length = 256;
  EXPECT_EQ(longest_text(files.max_length, 128), 128);
  EXPECT_EQ(longest_text(files.max_length, 512), 256);
  files.max_length = 8192;
  EXPECT_EQ(longest_text(files.max_length, 0), 8192);
}

TEST_F(EmbeddingFilesTest, OnePoolingMayStandInAList) {
  const auto pooling = [&](const std::string& json) {
    write("1_Pooling/config.json", R"({"pooling_mode": )" + json + "}");
    return read().pooling;
  };
  EXPECT_EQ(pooling(R"(["mean"])"), "mean");
  EXPECT_EQ(pooling(R"(["lasttoken"])"), "last");
  EXPECT_EQ(pooling(R"("cls")"), "cls");
  EXPECT_ERROR(HasSubstr("several modes"), pooling(R"(["mean", "max"])"));
  EXPECT_ERROR(HasSubstr("by no mode"), pooling("[]"));
  EXPECT_ERROR(HasSubstr("pooling_mode[0] is of type number"), pooling("[1]"));
  EXPECT_ERROR(HasSubstr("by sum"), pooling(R"(["sum"])"));
}

TEST_F(EmbeddingFilesTest, ANameGoesBeforeFlagsAndTheMeanIsTheDefault) {
  const auto pooling = [&](const std::string& json) {
    write("1_Pooling/config.json", json);
    return read().pooling;
  };
  EXPECT_EQ(pooling(R"({"word_embedding_dimension": 384})"), "mean");
  EXPECT_EQ(pooling(R"({"pooling_mode_cls_token": false, "pooling_mode_mean_tokens": false})"),
            "mean");
  EXPECT_EQ(pooling(R"({"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false})"),
            "cls");
  EXPECT_EQ(pooling(R"({"pooling_mode": "max", "pooling_mode_mean_tokens": true})"), "max");
  EXPECT_ERROR(HasSubstr("several modes"),
               pooling(R"({"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": true})"));
}

TEST_F(EmbeddingFilesTest, FilesLieBesideTheModelOrAboveItsFolderOnnx) {
  write("onnx/model.onnx", "");
  write("other/model.onnx", "");
  const fs::path model = folder_ / "onnx" / "model.onnx";
  EXPECT_EQ(read_embedding_files(model).pooling, "mean");
  EXPECT_EQ(read_embedding_files(folder_ / "other" / "model.onnx").pooling, "");
  EXPECT_EQ(text::companion_file(model, "vocab.txt"), folder_ / "onnx" / "vocab.txt")
      << "it is nowhere";
  write("vocab.txt", "");
  EXPECT_EQ(text::companion_file(model, "vocab.txt"), folder_ / "vocab.txt");
  write("onnx/vocab.txt", "");
  EXPECT_EQ(text::companion_file(model, "vocab.txt"), folder_ / "onnx" / "vocab.txt");
  EXPECT_EQ(text::companion_file("", "absent.txt"), "./absent.txt") << "a model in memory";
  const fs::path before = fs::current_path();
  fs::current_path(folder_ / "onnx");
  const std::string found = read_embedding_files("model.onnx").pooling;
  fs::current_path(before);
  EXPECT_EQ(found, "mean");
}

TEST_F(EmbeddingFilesTest, DenseModulesFollowThePooling) {
  const auto modules = [&](const std::vector<std::pair<std::string, std::string>>& list) {
    std::string json;
    for (const auto& [type, path] : list)
      json += (json.empty() ? "[" : ", ") + (R"({"type": "models.)" + type + R"(", "path": ")") +
              path + "\"}";
    write("modules.json", json + "]");
  };
  const std::pair<std::string, std::string> transformer{"Transformer", ""},
      pooling{"Pooling", "1_Pooling"}, normalize{"Normalize", "4_Normalize"};
  modules({transformer, pooling, {"Dense", "2_Dense"}, {"Dense", "3_Dense"}, normalize});
  EXPECT_THAT(read().dense, ElementsAre(folder_ / "2_Dense", folder_ / "3_Dense"));
  EXPECT_TRUE(read().normalize);
  modules({transformer, {"Dense", "2_Dense"}, pooling});
  EXPECT_THAT(refusal(), HasSubstr("supported between Pooling and Normalize alone"));
  modules({transformer, pooling, normalize, {"Dense", "2_Dense"}});
  EXPECT_THAT(refusal(), HasSubstr("supported between Pooling and Normalize alone"));
  modules({transformer, pooling, {"Dense", "../2_Dense"}});
  EXPECT_THAT(refusal(), HasSubstr("[2].path is outside the model's folder"));
}

}  // namespace
}  // namespace bertcl::tasks
