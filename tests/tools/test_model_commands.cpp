// SPDX-License-Identifier: Apache-2.0
// The commands that run a model, on the default model: results, JSON keys, refusals.
#include <set>
#include <sstream>

#include "npz/npz.hpp"
#include "onnx/proto.hpp"
#include "program_runner.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::tests {
namespace {

using ir::Tensor;

using EvalTest = FolderTest;

TEST_F(EvalTest, ScoresAndFilesOfTheFirstQuestions) {
  const ProgramResult result = succeeded(
      run_bertcl({"eval", kModel, "--data", kData, "--limit", "12", "--predictions", path("p.json"),
                  "--null-odds", path("o.json"), "--json", path("e.json")}));
  EXPECT_EQ(result.err, "") << "progress outside of a terminal";
  const nlohmann::json json = read_json(path("e.json"));
  EXPECT_EQ(json.at("data"), kData);
  EXPECT_FALSE(json.at("device").get<std::string>().empty());
  ASSERT_EQ(json.at("models").size(), 1u);
  const nlohmann::json& model = json.at("models")[0];
  EXPECT_EQ(model.at("path"), kModel);
  EXPECT_EQ(model.at("precision"), "fp32");
  EXPECT_EQ(model.at("total"), 12);
  EXPECT_EQ(model.at("features"), 12);
  EXPECT_EQ(model.at("tokens_padded"), 12 * 384);
  EXPECT_LT(model.at("tokens"), model.at("tokens_padded"));
  EXPECT_GT(model.at("seconds"), 0.0);
  EXPECT_GE(model.at("f1"), model.at("exact_match"));
  EXPECT_GT(model.at("HasAns_f1"), 60.0) << "the model answers most of these questions";
  for (const char* key : {"NoAns_f1", "best_f1", "best_f1_thresh"}) {
    EXPECT_TRUE(model.at(key).is_number()) << key;
  }
  EXPECT_EQ(read_json(path("p.json")).size(), 12u);
  EXPECT_EQ(read_json(path("o.json")).size(), 12u);
  EXPECT_THAT(files(), ElementsAre("e.json", "o.json", "p.json"));
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("12 questions"), HasSubstr("fp32"), HasSubstr("tokens/s")));
}

TEST_F(EvalTest, RefusesOptionsOfNullAnswersWhereEveryQuestionHasOne) {
  const std::string data =
      write("v1.jsonl", R"({"question": "Who sat?", "context": "The cat sat.",)"
                        R"( "answers": {"text": ["The cat"], "answer_start": [0]}})");
  for (const std::vector<std::string>& option :
       {std::vector<std::string>{"--null-odds", path("o.json")}, {"--null-threshold", "-2"}}) {
    expect_refused(joined({"eval", kModel, "--data", data}, option),
                   {"every question has an answer, so", option[0]});
  }
  EXPECT_THAT(files(), ElementsAre("v1.jsonl"));
}

TEST_F(EvalTest, PackingAndBatchesChangeNoAnswer) {
  const std::vector<std::string> common = {"eval", kModel, "--data", kData, "--limit", "10"};
  const auto predictions = [&](const char* name, std::vector<std::string> more) {
    succeeded(run_bertcl(joined(joined(common, {"--predictions", path(name)}), more)));
    return read_json(path(name));
  };
  const nlohmann::json packed = predictions("a.json", {});
  EXPECT_EQ(predictions("b.json", {"--keep-padding"}), packed);
  EXPECT_EQ(predictions("c.json", {"--batch-tokens", "1"}), packed);
}

TEST_F(EvalTest, ModelsStandSideBySide) {
  const nlohmann::json json = json_of({"eval", "--compare", kModel, kModel, "--data", kData,
                                       "--limit", "4", "--precision", "fp16"});
  ASSERT_EQ(json.at("models").size(), 2u);
  EXPECT_EQ(json["models"][0]["precision"], "fp16");
  EXPECT_EQ(json["models"][0]["f1"], json["models"][1]["f1"]);
  EXPECT_EQ(json["models"][1]["equal_answers"], 4);
}

TEST_F(EvalTest, BadInputIsNamed) {
  const auto eval = [](const std::string& model, const std::string& data,
                       std::vector<std::string> more = {}) {
    return refusal(run_bertcl(joined({"eval", model, "--data", data, "--limit", "2"}, more)));
  };
  EXPECT_THAT(eval(path("absent.onnx"), kData),
              AllOf(HasSubstr("absent.onnx"), HasSubstr("No such file")));
  EXPECT_THAT(eval(kModel, path("absent.json")),
              AllOf(HasSubstr("absent.json"), HasSubstr("No such file")));
  EXPECT_THAT(eval(write("words.onnx", "words"), kData, {"--vocab", kVocabulary}),
              AllOf(HasSubstr("words.onnx"), HasSubstr("not an ONNX file")));
  EXPECT_THAT(eval(write("words.onnx", "words"), kData), HasSubstr("words.onnx: not an ONNX file"))
      << "before the vocabulary that is not beside it";
  const std::string model = read(kModel);
  EXPECT_THAT(eval(write("cut.onnx", model.substr(0, model.size() / 2)), kData),
              AllOf(HasSubstr("cut.onnx: "), Not(HasSubstr("vocab.txt"))));
  EXPECT_THAT(eval(write("lfs.onnx", "version https://git-lfs.github.com/spec/v1\n"), kData),
              AllOf(HasSubstr("lfs.onnx: "), Not(HasSubstr("vocab.txt"))));
  EXPECT_THAT(eval(write("alone.onnx", model), kData), HasSubstr("vocab.txt"));
  EXPECT_THAT(eval(kModel, write("cut.json", "{\"data\": [\n{\"title\": ")),
              AllOf(HasSubstr("cut.json"), HasSubstr("line 2")));
  EXPECT_THAT(eval(kModel, write("other.json", "{\"data\": [{\"paragraphs\": [{}]}]}")),
              AllOf(HasSubstr("other.json"), HasSubstr("data[0].paragraphs[0]")));
  EXPECT_THAT(eval(kModel, kData, {"--max-seq-length", "600"}),
              AllOf(HasSubstr("600"), HasSubstr("512")));
  EXPECT_THAT(eval(kModel, kData, {"--predictions", path("none/p.json")}), HasSubstr("none"));
  EXPECT_THAT(eval(kModel, kData, {"--task", "mnli"}), HasSubstr("mnli"));
  EXPECT_THAT(eval(kModel, kData, {"--batch-tokens", "0"}), HasSubstr("--batch-tokens"));
  EXPECT_THAT(eval(kModel, kData, {"--device", "no such"}), HasSubstr("'no such'"));
}

using InspectTest = FolderTest;

TEST_F(InspectTest, RunsNothingUnlessAsked) {
  EXPECT_FALSE(json_of({"inspect", kModel}).contains("run_ms"));
  EXPECT_GT(json_of({"inspect", kModel, "--run"}).at("run_ms"), 0.0);
  const nlohmann::json large = json_of({"inspect", kModel, "--batch", "2000", "--seq", "512"});
  EXPECT_GT(large.at("arena_bytes"), std::int64_t{1} << 32);
}

TEST_F(InspectTest, TakesALimitOfMemory) {
  expect_refused({"inspect", kModel, "--max-memory", "10M"}, {"model.onnx", "10485760"});
  EXPECT_EQ(run_bertcl({"inspect", kModel, "--max-memory", "4G"}).code, 0);
  expect_refused({"inspect", kModel, "--max-memory", "1G", "--batch", "4000"},
                 {"exceed the limit of 1073741824", "a smaller batch"});
  expect_refused({"inspect", kModel, "--max-memory", "much"}, {"--max-memory"});
}

TEST_F(InspectTest, JsonNamesEveryLaunch) {
  const nlohmann::json json = json_of({"inspect", kModel});
  ASSERT_FALSE(json.at("ops").empty());
  EXPECT_EQ(json.at("launches"), json.at("ops").size());
  std::size_t attentions = 0;
  for (const auto& op : json.at("ops")) {
    for (const char* key : {"name", "op", "type", "variant", "why_not_faster"}) {
      EXPECT_TRUE(op.at(key).is_string()) << key;
    }
    EXPECT_TRUE(op.at("source_nodes").is_array());
    if (op.at("op") == "attention") ++attentions;
  }
  EXPECT_EQ(attentions, 6u);
  EXPECT_EQ(json.at("padding_reader"), "");
  EXPECT_EQ(json.at("inputs").size(), 3u);
  EXPECT_EQ(
      json.at("inputs")[0],
      nlohmann::json::parse(R"({"name": "input_ids", "type": "i64", "shape": ["batch", "seq"]})"));
  EXPECT_EQ(json.at("outputs")[0].at("name"), "start_logits");
  EXPECT_GT(json.at("arena_bytes"), 128 * 384);
  EXPECT_GT(json_of({"inspect", kModel, "--batch", "4"}).at("arena_bytes"),
            2 * json.at("arena_bytes").get<int>());
}

TEST_F(InspectTest, TextShowsOpsAndPasses) {
  expect_refused({"inspect", kModel, "--dump-passes", "--json", "-"}, {"--dump-passes"});
  const ProgramResult result = succeeded(run_bertcl({"inspect", kModel, "--dump-passes"}));
  EXPECT_THAT(result.out, Not(HasSubstr("clblast"))) << "it was not asked for";
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("== after"), HasSubstr("embed_norm"), HasSubstr("launches\n"),
                    HasSubstr("input_ids: i64[batch, seq]"), HasSubstr("of arena for batch 1")));
}

TEST_F(InspectTest, AFloatModelFailsTheRequirement) {
  const ProgramResult result = run_bertcl({"inspect", kModel, "--require", "int8"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, AllOf(StartsWith("bertcl: " + kModel + ": int8 is required, but\n"),
                                HasSubstr("it is a float model"), HasSubstr("bertcl quantize")));
}

TEST_F(InspectTest, TheDeviceIsNoFaultOfTheModel) {
  const std::string message = refusal(run_bertcl({"inspect", kModel, "--device", "77"}));
  EXPECT_THAT(message, AllOf(HasSubstr("'77'"), Not(HasSubstr("model.onnx"))));
  const std::string verified =
      refusal(run_bertcl({"verify", kModel, path("g.npz"), "--device", "77"}));
  EXPECT_EQ(verified, message);
  // It is opened while other work is done; where both fail, its error is the one that is told.
  const std::string broken = write("broken.onnx", "no model");
  EXPECT_EQ(refusal(run_bertcl({"inspect", broken, "--device", "77"})), message);
  expect_refused({"inspect", broken}, {"broken.onnx"});
  EXPECT_EQ(refusal(run_bertcl({"verify", broken, path("g.npz"), "--device", "77"})), message);
  for (const char* option : {"--context", "--vocab"})
    EXPECT_EQ(refusal(run_bertcl({"answer", kModel, option, write("latin1.txt", "\xe9\n"), "-q",
                                  "Who?", "--device", "77"})),
              message);
}

TEST_F(InspectTest, VariantsThatDoNotExistAreRefused) {
  const std::string message =
      refusal(run_bertcl({"inspect", kModel, "--disable-kernels", "ref,x86_neon"}));
  EXPECT_THAT(message,
              AllOf(HasSubstr("--disable-kernels: unknown kernel variant 'x86_neon' (nearest: "),
                    HasSubstr("x86_vnni")));
  EXPECT_THAT(message, Not(HasSubstr("portable"))) << "not all of them";
}

TEST_F(InspectTest, PassesCanBeLeftOut) {
  const std::string message =
      refusal(run_bertcl({"inspect", kModel, "--disable-passes", "nonsense"}));
  EXPECT_THAT(message, HasSubstr("unknown compiler pass 'nonsense' (nearest: "));
  std::istringstream list(message.substr(message.find("nearest: ") + 9));
  std::set<std::string> names;
  for (std::string name; list >> name;) {
    std::erase_if(name, [](char c) { return c == ',' || c == ')'; });
    EXPECT_TRUE(names.insert(name).second) << name << " is listed twice";
  }
  EXPECT_EQ(names.size(), 3u) << message;
  const nlohmann::json json = json_of({"inspect", "--disable-passes", "find_gelu,find_attention",
                                       "--disable-passes", "dead_code", kModel});
  for (const auto& op : json.at("ops")) EXPECT_NE(op.at("op"), "attention");
}

using RunTest = FolderTest;

npz::Arrays inputs(ir::Sizes shape, std::int64_t id = 1000) {
  const auto count = static_cast<std::size_t>(ir::element_count(shape));
  std::vector<std::int64_t> ids(count, id);
  return {{"input_ids", Tensor::of(shape, ids)},
          {"attention_mask", Tensor::of(shape, std::vector<std::int64_t>(count, 1))},
          {"token_type_ids", Tensor::of(shape, std::vector<std::int32_t>(count, 0))}};
}

TEST_F(RunTest, TensorsInTensorsOut) {
  npz::save(path("x.npz"), inputs({2, 7}));
  succeeded(run_bertcl({"run", kModel, "--inputs", path("x.npz"), "--outputs", path("y.npz"),
                        "--json", path("r.json")}));
  const npz::Arrays outputs = npz::load(path("y.npz"));
  ASSERT_EQ(outputs.size(), 2u);
  EXPECT_THAT(outputs.at("start_logits").shape(), ElementsAre(2, 7));
  EXPECT_EQ(outputs.at("end_logits").dtype(), ir::DType::f32);
  EXPECT_EQ(read_json(path("r.json")).at("outputs").size(), 2u);
}

TEST_F(RunTest, RefusalsLeaveNoOutput) {
  const auto refused = [&](const npz::Arrays& arrays) {
    npz::save(path("x.npz"), arrays);
    const std::string message =
        refusal(run_bertcl({"run", kModel, "--inputs", path("x.npz"), "--outputs", path("y.npz")}));
    EXPECT_THAT(files(), ElementsAre("x.npz"));
    return message;
  };
  npz::Arrays arrays = inputs({1, 5});
  npz::save(path("x.npz"), arrays);
  expect_refused({"run", kModel, "--inputs", path("x.npz"), "--outputs", path("x.npz")},
                 {"--outputs", "read as --inputs"});
  EXPECT_EQ(npz::load(path("x.npz")), arrays);
  arrays.erase("input_ids");
  EXPECT_THAT(refused(arrays), AllOf(HasSubstr("input_ids"), HasSubstr("missing")));
  arrays = inputs({1, 5});
  arrays["ids"] = arrays["input_ids"];
  EXPECT_THAT(refused(arrays), AllOf(HasSubstr("'ids'"), HasSubstr("input_ids")));
  arrays = inputs({1, 5});
  arrays["input_ids"] = arrays["input_ids"].reshaped({5});
  EXPECT_THAT(refused(arrays), AllOf(HasSubstr("input_ids"), HasSubstr("[5]")));
  EXPECT_THAT(refused(inputs({1, 5}, 40000)), HasSubstr("vocabulary"));
  EXPECT_THAT(refused(inputs({1, 513})), AllOf(HasSubstr("513"), HasSubstr("512")));
}

TEST_F(RunTest, OutputsAreArraysOfAnNpz) {
  npz::save(path("x.npz"), inputs({1, 5}));
  const std::string texts = write("t.txt", "Who?\n");
  for (const char* name : {"y.npy", "y.safetensors", "y", "y.npz.bak"}) {
    const std::string refusal = "--outputs: " + path(name) + ": must end in .npz";
    expect_refused({"run", kModel, "--inputs", path("x.npz"), "--outputs", path(name)}, {refusal});
    expect_refused({"run", kModel, texts, "--outputs", path(name)}, {refusal});
  }
  EXPECT_THAT(files(), ElementsAre("t.txt", "x.npz"));
  succeeded(run_bertcl({"run", kModel, texts, "--outputs", path("Y.NPZ")}));
  EXPECT_EQ(npz::load(path("Y.NPZ")).size(), 2u);
}

using AnswerTest = FolderTest;

TEST_F(AnswerTest, FindsTheAnswerInTheBuiltInText) {
  const ProgramResult result = succeeded(run_bertcl({"answer", "-q", "Who maintains OpenCL?"}));
  EXPECT_THAT(result.out, AllOf(StartsWith("Khronos Group\n"), HasSubstr("[Khronos Group]"),
                                HasSubstr("score")));
}

TEST_F(AnswerTest, TellsThePlaceInTheText) {
  const std::string text = "Zoë lives in Århus. Her brother Émile lives in Oslo.";
  const nlohmann::json json = json_of(
      {"answer", kModel, "--context", write("text.txt", text), "-q", "Where does Émile live?"});
  EXPECT_EQ(json.at("answer"), "Oslo");
  EXPECT_EQ(json.at("answer_start"), 47) << "counted in characters";
  EXPECT_GT(json.at("probability"), 0.3);
  EXPECT_FALSE(json.at("nbest").empty());
}

TEST_F(AnswerTest, RefusesWhatItCannotUse) {
  for (const char* question : {"", " \t"})
    expect_refused({"answer", "-q", question}, {"--question", "the question is empty"});
  expect_refused({"answer", "-q", "a\xff"},
                 {"--question: invalid UTF-8 at byte 1 of 2; see bertcl answer --help"});
  expect_refused({"answer", "-q", "Who?"}, {"BERTCL_MODEL", "m.onnx"},
                 {{"BERTCL_MODEL", path("m.onnx")}});
  std::filesystem::create_symlink("circle.onnx", path("circle.onnx"));
  expect_refused({"answer", "-q", "Who?"}, {"BERTCL_MODEL names", "Too many levels"},
                 {{"BERTCL_MODEL", path("circle.onnx")}});
  expect_refused({"answer", "--context", path("absent.txt"), "-q", "Who?"}, {"absent.txt"});
  expect_refused({"answer", "--context", write("empty.txt", " \n"), "-q", "Who?"},
                 {"empty.txt: the context has no tokens"});
  expect_refused(
      {"answer", "--context", write("latin1.txt", "A caf\xe9 in Z\xfcrich."), "-q", "Who?"},
      {"latin1.txt", "invalid UTF-8 at byte 5"});
  expect_refused({"answer", "--context", folder_.path().string(), "-q", "Who?"},
                 {"is a directory, expected a file"});
  expect_refused({"answer"}, {"standard input: contains no question"});
}

}  // namespace
}  // namespace bertcl::tests
