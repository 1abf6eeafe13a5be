// SPDX-License-Identifier: Apache-2.0
// What stands in the JSON of every command, and that docs/json.md tells of every key.

#include "npz/npz.hpp"
#include "program_runner.hpp"
#include "tasks_model.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::tests {
namespace {

class JsonTest : public FolderTest {
 protected:
  JsonTest() {
    const std::vector<std::int64_t> ids(4, 1000), ones(4, 1), zeros(4, 0);
    const auto row = [](const std::vector<std::int64_t>& values) {
      return ir::Tensor::of({1, 4}, values);
    };
    npz::Arrays inputs = {
        {"input_ids", row(ids)}, {"attention_mask", row(ones)}, {"token_type_ids", row(zeros)}};
    npz::save(path("x.npz"), inputs);
    run_bertcl({"run", kModel, "--inputs", path("x.npz"), "--outputs", path("y.npz")});
    npz::Arrays golden;
    for (const auto& [name, tensor] : inputs) golden["in__" + name] = tensor;
    for (const auto& [name, tensor] : npz::load(path("y.npz"))) golden["out__" + name] = tensor;
    npz::save(path("g.npz"), golden);
    write("tasks.onnx", model_of_tasks());
    write("p.txt", "Ada does.\n");
  }

  /// A command line of each command, as short as can be, except fill-mask, whose model is large
  /// (tests/python reads its JSON), and serve, which does not end.
  std::map<std::string, std::vector<std::string>> commands() const {
    return {
        {"devices", {}},
        {"inspect", {kModel}},
        {"quantize",
         {kModel, "-o", path("q.onnx"), "--data", kCalibration, "--samples", "1", "--preset",
          "fast", "--force"}},
        {"eval", {kModel, "--data", kData, "--limit", "1"}},
        {"run", {kModel, "--inputs", path("x.npz"), "--outputs", path("z.npz"), "--force"}},
        {"verify", {kModel, path("g.npz")}},
        {"answer", {"-q", "Who maintains OpenCL?"}},
        {"embed",
         {path("tasks.onnx"), path("p.txt"), "--vocab", kVocabulary, "--pooling", "mean", "-o",
          path("e.npy"), "--force"}},
        {"rerank",
         {path("tasks.onnx"), "-q", "Who?", "--passages", path("p.txt"), "--vocab", kVocabulary}},
        {"classify",
         {path("tasks.onnx"), path("p.txt"), "--labels", "a,b", "--vocab", kVocabulary}},
        {"tag", {path("tasks.onnx"), path("p.txt"), "--labels", "O,B-x", "--vocab", kVocabulary}},
        {"similarity",
         {path("tasks.onnx"), path("p.txt"), "-q", "Who?", "--vocab", kVocabulary, "--pooling",
          "mean"}},
        {"bench", {kModel, "--seq", "8", "--runs", "1", "--warmup", "0"}},
        {"tune", {kModel, "--seconds", "0.001"}}};
  }

  nlohmann::json report_of(const std::string& command,
                           const std::vector<std::string>& arguments) const {
    return json_of(run_bertcl(joined(joined({command}, arguments), {"--json", "-"}),
                              {{"BERTCL_TUNING", path("tuning")}}));
  }
};

TEST_F(JsonTest, EveryCommandSaysWhatMadeIt) {
  const std::string text = read(source_file("docs/json.md"));
  const nlohmann::json devices = report_of("devices", {});
  const nlohmann::json& device = devices.at("devices").at(devices.at("default").get<std::size_t>());
  const auto all = commands();
  for (const std::string& command : working_commands())
    EXPECT_TRUE(all.contains(command) || command == "fill-mask" || command == "serve") << command;
  for (const auto& [command, arguments] : all) {
    const nlohmann::json json = report_of(command, arguments);
    ASSERT_TRUE(json.is_object()) << command;
    EXPECT_EQ(json.at("schema"), "bertcl." + command + "/1");
    EXPECT_THAT(json.at("bertcl").get<std::string>(), MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+"));
    EXPECT_EQ(json.at("device"), device.at("name")) << command;
    for (const char* key : {"driver", "platform", "platform_version"})
      EXPECT_EQ(json.at(key), device.at(key)) << command;
    for (const auto& [key, value] : json.items())
      EXPECT_THAT(text, HasSubstr("`" + key + "`")) << "of " << command;
  }
}

TEST_F(JsonTest, WithoutADeviceItsKeysAreNull) {
  const nlohmann::json json =
      report_of("quantize", {kModel, "-o", path("q.onnx"), "--dynamic", "--force"});
  EXPECT_EQ(json.at("schema"), "bertcl.quantize/1");
  for (const char* key : {"device", "driver", "platform", "platform_version"})
    EXPECT_TRUE(json.at(key).is_null()) << key;
}

}  // namespace
}  // namespace bertcl::tests
