// SPDX-License-Identifier: Apache-2.0
// Tasks other than SQuAD and options of vocabularies: labels, refusals.
// Scores of models are compared with ONNX Runtime's in tests/python/test_tasks.py.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "program_runner.hpp"
#include "tasks/features.hpp"
#include "tasks_model.hpp"
#include "tests/onnx/text_model.hpp"
#include "tests/support/matchers.hpp"
#include "tests/support/tokens_of.hpp"
#include "tools/options/task_options.hpp"
#include "tools/options/vocabulary_options.hpp"

namespace bertcl::tools {
namespace {

using tests::expect_refused, tests::joined, tests::refusal, tests::run_bertcl, tests::source_file;

/// An ONNX file with this metadata.
std::string model_bytes(const std::map<std::string, std::string>& metadata) {
  onnx::ModelProto model = tests::model_of(13, "name: 'g'");
  for (const auto& [key, value] : metadata) {
    auto* entry = model.add_metadata_props();
    entry->set_key(key);
    entry->set_value(value);
  }
  return model.SerializeAsString();
}

using TaskTest = tests::FolderTest;

TEST_F(TaskTest, LabelsInTheModelComeBeforeItsConfiguration) {
  write("config.json", R"({"id2label": {"0": "no", "1": "yes"}})");
  TaskOptions options;
  const auto labels = [&](const std::string& classes) {
    return find_labels(options, {write("m.onnx", model_bytes({{"bertcl.classes", classes}}))});
  };
  EXPECT_THAT(labels(R"(["bad", "good"])"), ElementsAre("bad", "good"));
  for (const char* wrong : {R"({"0": "bad"})", "[0, 1]", "bad,good"})
    EXPECT_ERROR(AllOf(HasSubstr("m.onnx"), HasSubstr("bertcl.classes")), labels(wrong)) << wrong;
}

TEST_F(TaskTest, LabelsOfTheOptionsComeFirst) {
  const std::filesystem::path model = write("model.onnx", model_bytes({}));
  TaskOptions options;
  EXPECT_THAT(find_labels(options, {model}), IsEmpty());
  write("config.json", R"({"id2label": {"0": "LABEL_0", "1": "LABEL_1"}})");
  EXPECT_THAT(find_labels(options, {model}), IsEmpty()) << "names that nobody gave";
  write("config.json", R"({"id2label": {"1": "O", "10": "k", "0": "B-x", "2": "c", "3": "d",
      "4": "e", "5": "f", "6": "g", "7": "h", "8": "i", "9": "j"}})");
  EXPECT_THAT(find_labels(options, {tests::kModel, model}),
              ElementsAre("B-x", "O", "c", "d", "e", "f", "g", "h", "i", "j", "k"));
  options.labels = "O,B-y";
  EXPECT_THAT(find_labels(options, {model}), ElementsAre("O", "B-y"));
  options.labels = write("labels.txt", "O\nB-z\n");
  EXPECT_THAT(find_labels(options, {model}), ElementsAre("O", "B-z"));
  options.labels = "O, B-y";
  EXPECT_THAT(find_labels(options, {model}), ElementsAre("O", "B-y"));
  for (const char* wrong : {"O,,B-y", "O,B-y,", "O,B-y,O", "O,B-\xff"}) {
    options.labels = wrong;
    EXPECT_ERROR(HasSubstr("--labels"), find_labels(options, {model})) << wrong;
  }
  options.labels.clear();
  std::filesystem::create_directory(path("other"));
  write("other/config.json", R"({"id2label": {"0": "POSITIVE", "1": "NEGATIVE"}})");
  EXPECT_ERROR(HasSubstr("name their classes differently"),
               find_labels(options, {model, write("other/model.onnx", model_bytes({}))}));
  for (const char* wrong :
       {R"({"id2label": ["O"]})", R"({"id2label": {"1": "O"}})", R"({"id2label": {"0": []}})"}) {
    write("config.json", wrong);
    EXPECT_ERROR(AllOf(HasSubstr("config.json"), HasSubstr("id2label must be")),
                 find_labels(options, {model}))
        << wrong;
  }
}

TEST_F(TaskTest, TheTokenizerIsAsItsConfigurationSays) {
  write("model.onnx", "");
  write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\nCafe\nCafé\ncafe\ncafé\n");
  const auto tokens = [&](const VocabularyOptions& options) {
    return tokens_of(load_tokenizer(options, {path("model.onnx")}), "Café");
  };
  EXPECT_THAT(tokens({}), ElementsAre("cafe"));
  EXPECT_THAT(tokens({"", false, {}}), ElementsAre("Café"));
  EXPECT_THAT(tokens({"", {}, false}), ElementsAre("café"));
  write("tokenizer_config.json", R"({"do_lower_case": false, "strip_accents": null})");
  EXPECT_THAT(tokens({}), ElementsAre("Café"));
  EXPECT_THAT(tokens({"", true, {}}), ElementsAre("cafe"));
  EXPECT_THAT(tokens({"", {}, true}), ElementsAre("Cafe"));
  write("tokenizer_config.json", R"({"strip_accents": false})");
  EXPECT_THAT(tokens({}), ElementsAre("café"));
  write("tokenizer_config.json", R"({"do_lower_case": "yes"})");
  EXPECT_ERROR(AllOf(HasSubstr("tokenizer_config.json: do_lower_case is of type string")),
               tokens({}));
}

TEST_F(TaskTest, AVocabularyIsReadAsTheTokenizerJsonOfBertExceptForSquad) {
  write("model.onnx", "");
  write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n[\nsep\n]\na\nας\nασ\n");
  const std::string text = "a [SEP] [sep] ΑΣ \U0010FFFF";
  EXPECT_THAT(tokens_of(load_tokenizer({}, {path("model.onnx")}), text),
              ElementsAre("a", "[SEP]", "[", "sep", "]", "ασ", "[UNK]"));
  EXPECT_THAT(tokens_of(load_squad_tokenizer({}, {path("model.onnx")}), text),
              ElementsAre("a", "[", "sep", "]", "[", "sep", "]", "ας"));
}

TEST_F(TaskTest, ATokenizerJsonStandsForAVocabulary) {
  const std::string json = R"({"model": {"type": "WordPiece", "vocab": {"[PAD]": 0, "[UNK]": 1,
      "[CLS]": 2, "[SEP]": 3, "Cafe": 4, "cafe": 5, "Café": 6, "東": 7, "##京": 8, "京": 9}},
      "normalizer": {"type": "BertNormalizer", "lowercase": false},
      "pre_tokenizer": {"type": "BertPreTokenizer"}})";
  const auto tokens = [&](const VocabularyOptions& options) {
    return tokens_of(load_tokenizer(options, {path("model.onnx")}), "Café 東京");
  };
  const VocabularyOptions named{write("other.json", json), {}, {}};
  EXPECT_ERROR(HasSubstr("model.onnx: no such file"), tokens({}));
  write("model.onnx", tests::model_of_tasks());
  EXPECT_ERROR(HasSubstr("no tokenizer.json"), tokens({}));
  EXPECT_THAT(tokens(named), ElementsAre("Café", "東", "京"));
  write("tokenizer.json", json);
  EXPECT_THAT(tokens({}), ElementsAre("Café", "東", "京")) << "beside the model";
  EXPECT_THAT(tokens({"", true, {}}), ElementsAre("cafe", "東", "京"));
  write("tokenizer_config.json", R"({"do_lower_case": true, "tokenize_chinese_chars": false})");
  EXPECT_THAT(tokens({}), ElementsAre("cafe", "東", "##京"));
  for (const char* family : {"PreTrainedTokenizerFast", "TokenizersBackend"}) {
    write("tokenizer_config.json",
          R"({"do_lower_case": true, "tokenize_chinese_chars": false, "tokenizer_class": ")" +
              std::string(family) + "\"}");
    EXPECT_THAT(tokens({}), ElementsAre("Café", "東", "京")) << "of a generic class";
    EXPECT_THAT(tokens({"", true, {}}), ElementsAre("cafe", "東", "京"));
  }
  write("tokenizer_config.json", R"({"do_lower_case": true, "tokenize_chinese_chars": false})");
  write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\ncafe\n");
  EXPECT_THAT(tokens({}), ElementsAre("cafe", "東", "##京")) << "tokenizer.json comes first";
  write("tokenizer.json", json.substr(0, json.size() / 2));
  EXPECT_ERROR(AllOf(HasSubstr(path("tokenizer.json")), HasSubstr("unexpected end")), tokens({}));
}

TEST_F(TaskTest, TextsAreTruncatedOnTheSideThatTheConfigurationSays) {
  write("model.onnx", "");
  write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\nb\nc\n");
  const auto ids = [&](const std::string& config) {
    write("tokenizer_config.json", config);
    const text::Tokenizer tokenizer = load_tokenizer({}, {path("model.onnx")});
    EXPECT_EQ(tasks::encode_text("a b c", load_squad_tokenizer({}, {path("model.onnx")}), 4).ids,
              tasks::encode_text("a b c", tokenizer, 4).ids);
    return std::pair(tasks::encode_text("a b c", tokenizer, 4).ids,
                     tasks::encode_pair("a b c", "a b", tokenizer, 6).ids);
  };
  using Ids = std::vector<std::int32_t>;
  EXPECT_EQ(ids("{}"), (std::pair{Ids{2, 4, 5, 3}, Ids{2, 4, 5, 3, 4, 3}}));
  EXPECT_EQ(ids(R"({"truncation_side": "right"})"), ids("{}"));
  EXPECT_EQ(ids(R"({"truncation_side": "left"})"),
            (std::pair{Ids{2, 5, 6, 3}, Ids{2, 5, 6, 3, 5, 3}}));
  EXPECT_ERROR(HasSubstr("tokenizer_config.json: truncation_side is \"up\""),
               ids(R"({"truncation_side": "up"})"));
}

TEST(VocabularyOptions, OnlyFlagsThatAreGivenCount) {
  using Choice = std::optional<bool>;
  const auto parse = [](std::vector<std::string> arguments) {
    CLI::App command;
    VocabularyOptions options;
    add_vocabulary_options(command, options);
    std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
    command.parse(arguments);
    return std::pair(options.lower_case, options.strip_accents);
  };
  EXPECT_EQ(parse({}), std::pair(Choice(), Choice()));
  EXPECT_EQ(parse({"--lower-case"}), std::pair(Choice(true), Choice()));
  EXPECT_EQ(parse({"--no-lower-case"}), std::pair(Choice(false), Choice()));
  EXPECT_EQ(parse({"--cased"}), std::pair(Choice(false), Choice()));
  EXPECT_EQ(parse({"--strip-accents"}), std::pair(Choice(), Choice(true)));
  EXPECT_EQ(parse({"--cased", "--no-strip-accents"}), std::pair(Choice(false), Choice(false)));
}

TEST_F(TaskTest, WhatDoesNotFitIsRefused) {
  const std::string sst2 = write("dev.tsv", "a fine film\t1\n"),
                    tagged = write("t.conll", "it\tO\n");
  const auto eval = [&](const std::vector<std::string>& more) {
    return refusal(run_bertcl(joined({"eval", tests::kModel}, more)));
  };
  EXPECT_THAT(eval({"--task", "classify", "--data", sst2}),
              AllOf(HasSubstr(tests::kModel), HasSubstr("start_logits f32[batch, seq]"),
                    HasSubstr("[batch, 2 or more]")));
  EXPECT_THAT(eval({"--task", "fill-mask", "--data", sst2}),
              HasSubstr("[batch, seq, 30522 or more]"));
  EXPECT_THAT(eval({"--task", "tag", "--data", tagged}),
              AllOf(HasSubstr(tests::kModel + ": the tags of the model's classes are unknown"),
                    HasSubstr("--labels")));
  EXPECT_THAT(eval({"--task", "classify", "--data", tagged}),
              HasSubstr("cannot map O to the model's classes"));
  EXPECT_THAT(eval({"--task", "tag", "--labels", "O,B-x", "--data", sst2}),
              HasSubstr("dev.tsv:1: 'a fine film"));
  EXPECT_THAT(eval({"--task", "similarity", "--data", sst2}), HasSubstr("dev.tsv:1: 2 columns"));
  EXPECT_THAT(eval({"--task", "similarity", "--data", sst2, "--windows"}),
              HasSubstr("--windows is for --task classify, not similarity"));
  EXPECT_THAT(eval({"--task", "classify", "--data", sst2, "--nbest", path("n.json")}),
              HasSubstr("--nbest is for --task question-answering"));
  EXPECT_THAT(eval({"--task", "classify", "--data", sst2, "--doc-stride", "5"}),
              HasSubstr("--doc-stride is for --task question-answering"));
  EXPECT_THAT(eval({"--task", "classify", "--data", sst2, "--null-threshold", "3"}),
              HasSubstr("--null-threshold is for --task question-answering"));
  EXPECT_THAT(eval({"--data", sst2, "--labels", "a,b"}), HasSubstr("--labels is only valid with"));
  EXPECT_THAT(eval({"--data", sst2}), HasSubstr("dev.tsv: not a JSON object; a SQuAD file is"));
}

TEST_F(TaskTest, AFaultOfTheDataDoesNotNameTheModel) {
  const std::string model = write("m.onnx", tests::model_of_tasks());
  const auto result =
      run_bertcl({"eval", model, "--task", "tag", "--labels", "O,B-x", "--data",
                  write("t.conll", "\xC2\x81\tO\n"), "--vocab", tests::kVocabulary});
  EXPECT_THAT(refusal(result), StartsWith("bertcl: " + path("t.conll") + ": nothing to score"));
}

TEST_F(TaskTest, PredictionsAreUtf8) {
  const std::string model = write("m.onnx", tests::model_of_tasks());
  const auto predict = [&](const std::string& task, const std::string& data,
                           const std::string& labels) {
    succeeded(
        run_bertcl({"eval", model, "--task", task, "--data", data, "--labels", labels, "--vocab",
                    tests::kVocabulary, "--predictions", path("p.json"), "--force"}));
    return read(path("p.json"));
  };
  const std::string tagged = predict("tag", write("t.conll", "Zürich\tO\n"), "O,B-größe");
  EXPECT_THAT(tagged, AnyOf("{\n  \"0\": [\"O\"]\n}\n", "{\n  \"0\": [\"B-größe\"]\n}\n"));
  const std::string other = predict("tag", path("t.conll"), "B-größe,O");
  EXPECT_NE(tagged, other) << "one of them is the tag with its letters";
  // Names of files of another encoding.
  for (const char* folder : {"reviews", "reviews/neg", "reviews/pos"})
    std::filesystem::create_directory(path(folder));
  write("reviews/neg/caf\xE9.txt", "bad");
  write("reviews/pos/café.txt", "good");
  EXPECT_THAT(predict("classify", path("reviews"), "negative,positive"),
              AllOf(HasSubstr("\"neg/caf\uFFFD.txt\": "), HasSubstr("\"pos/café.txt\": ")));
}

TEST_F(TaskTest, SeveralLabelsWhereTheConfigurationOrTheDataSaySo) {
  const std::string model = write("m.onnx", tests::model_of_tasks());
  const std::string lines = write("t.tsv", "It is so.\tA,B\nOslo\tB\nGo!\tA\n");
  const auto eval = [&](const std::string& data) {
    return run_bertcl({"eval", model, "--task", "classify", "--data", data, "--labels", "A,B",
                       "--vocab", tests::kVocabulary, "--predictions", path("p.json"), "--force",
                       "--json", path("r.json")});
  };
  expect_refused(eval(lines), {"the data contain A,B, not among the model's classes"});
  write("config.json", R"({"problem_type": "multi_label_classification"})");
  const auto result = succeeded(eval(lines));
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("micro F1"), HasSubstr("macro F1"), HasSubstr("accuracy")));
  const nlohmann::json scores = read_json(path("r.json")).at("models")[0];
  const auto outputs = json_lines(
      run_bertcl({"run", model, "--vocab", tests::kVocabulary}, {}, "It is so.\nOslo\nGo!\n"));
  ASSERT_EQ(outputs.size(), 3u);
  const nlohmann::json predicted = read_json(path("p.json"));
  for (std::size_t index = 0; index < 3; ++index) {
    const nlohmann::json& logits = outputs[index].at("outputs").at("classes");
    nlohmann::json expected = nlohmann::json::array();
    for (std::size_t i = 0; i < 2; ++i)
      if (logits[i] > 0.0) expected.push_back(i == 0 ? "A" : "B");
    EXPECT_EQ(predicted.at(std::to_string(index)), expected);
  }
  EXPECT_TRUE(scores.contains("micro_f1") && scores.contains("macro_f1"));
  write("config.json", "{}");
  const std::string objects = write("t.jsonl", R"({"text": "Oslo", "labels": ["B"]})"
                                               "\n");
  EXPECT_EQ(eval(objects).code, 0);
  write("config.json", R"({"problem_type": "single_label_classification"})");
  expect_refused(eval(objects), {"the data list several labels"});
  succeeded(
      run_bertcl({"quantize", model, "-o", path("q.onnx"), "--task", "classify", "--data", objects,
                  "--preset", "fast", "--vocab", tests::kVocabulary, "--model-only"}));
}

TEST_F(TaskTest, CalibrationKeepsWithinThePositionsOfTheModel) {
  onnx::ModelProto model;
  ASSERT_TRUE(model.ParseFromString(read(tests::kModel)));
  constexpr int positions = 24, hidden = 384;
  for (auto& tensor : *model.mutable_graph()->mutable_initializer()) {
    if (tensor.name() != "m.bert.embeddings.position_embeddings.weight_half") continue;
    tensor.set_dims(0, positions);
    tensor.mutable_raw_data()->resize(positions * hidden * 2);
  }
  std::string text;
  for (int i = 0; i < 100; ++i) text += "word ";
  const std::vector<std::string> command = {"quantize", write("m.onnx", model.SerializeAsString()),
                                            "-o",       path("q.onnx"),
                                            "--task",   "fill-mask",
                                            "--data",   write("texts.txt", text),
                                            "--preset", "fast",
                                            "--vocab",  tests::kVocabulary};
  const auto made = succeeded(run_bertcl(command));
  EXPECT_THAT(made.out, HasSubstr("on 1 text (22 tokens)")) << "windows of equal length";
  expect_refused(joined(command, {"--max-seq-length", "25", "--force"}),
                 {"m.onnx", "maximum of 24", "use --max-seq"});
}

TEST_F(TaskTest, TheDataOfEveryTaskCalibrate) {
  const std::map<std::string, std::string> data = {
      {"classify", write("sst2.tsv", "a fine film\t1\nno\t0\n")},
      {"similarity", write("stsb.csv", "one,two,3\nthree,four,1\n")},
      {"tag", write("wnut.conll", "Oslo\tB-location\n\nit\tO\n")},
      {"fill-mask",
       write("texts.jsonl",
             "{\"text\": \"one two\", \"id\": 1}\n{\"text\": \"three\", \"id\": 1}\n")}};
  std::filesystem::create_directories(path("reviews/neg"));
  std::filesystem::create_directories(path("reviews/pos"));
  write("reviews/neg/a.txt", "bad");
  write("reviews/pos/a.txt", "good");
  const std::map<std::string, std::string> units = {
      {"classify", "texts"}, {"similarity", "pairs"}, {"tag", "sentences"}, {"fill-mask", "texts"}};
  const std::string tiny = write("tiny.onnx", tests::model_of_tasks());
  const auto quantize = [&](const std::string& model) {
    return std::vector<std::string>{"quantize",         model,     "-o",
                                    path("q.onnx"),     "--force", "--vocab",
                                    tests::kVocabulary, "--task"};
  };
  for (const auto& [task, file] : data) {
    const auto made =
        succeeded(run_bertcl(joined(quantize(tiny), {task, "--data", file, "--preset", "fast"})));
    EXPECT_THAT(made.out, HasSubstr("on 2 " + units.at(task) + " (")) << task;
  }
  succeeded(run_bertcl(joined(quantize(tiny), {"classify", "--data", path("reviews")})));
  expect_refused(joined(quantize(tests::kModel), {"classify", "--data", path("reviews"),
                                                  "--max-drop", "1", "--samples", "1"}),
                 {tests::kModel, "[batch, 2], with 2 classes"});
  expect_refused({"quantize", tests::kModel, "-o", path("q.onnx"), "--force", "--task", "fill-mask",
                  "--data", data.at("fill-mask"), "--max-drop", "1", "--labels", "a,b"},
                 {"--labels is only valid with --task classify"});
}

}  // namespace
}  // namespace bertcl::tools
