// SPDX-License-Identifier: Apache-2.0
// bertcl serve as a program: the vectors and answers of `bertcl embed` and `bertcl answer`, options
// from a file, and its end by a signal.
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <functional>
#include <vector>

#include "opencl/context.hpp"
#include "tests/serve/clients.hpp"
#include "tests/serve/models.hpp"
#include "tests/support/matchers.hpp"
#include "tests/tools/program_runner.hpp"

namespace bertcl::serve::tests {
namespace {

using bertcl::tests::refusal, bertcl::tests::run_bertcl;
using nlohmann::json;
using Vectors = std::vector<std::vector<float>>;

class ServeCommand : public bertcl::tests::FolderTest {
 protected:
  /// Serves, calls `ask` with a client once requests are answered, and sends a signal. Gives the
  /// exit code.
  int serve(std::vector<std::string> arguments, int signal,
            const std::function<void(httplib::Client&, const json&)>& ask) const {
    const std::string report = path("serve.json");
    std::filesystem::remove(report);  // of an earlier server
    arguments.insert(arguments.begin(), "serve");
    arguments.insert(arguments.end(), {"--port", "0", "--json", report});
    return bertcl::tests::interrupt_bertcl(arguments, signal, [&] {
      if (!std::filesystem::exists(report)) return false;
      const json ready = read_json(report);
      httplib::Client client("127.0.0.1", ready["port"].get<int>());
      client.set_read_timeout(60);
      ask(client, ready);
      return true;
    });
  }
};

TEST_F(ServeCommand, GivesTheBitsOfOtherCommands) {
  const std::string encoder = folders().path("vectors");
  const std::vector<std::string> texts = {"Who maintains OpenCL?", "The Khronos Group.", "short"};
  std::string lines;
  for (const std::string& text : texts) lines += text + "\n";
  Vectors vectors;
  for (const json& line : bertcl::tests::json_lines(
           run_bertcl({"embed", encoder, write("texts.txt", lines), "--pooling", "mean"})))
    vectors.push_back(line.at("embedding").get<std::vector<float>>());
  const std::string context =
      "OpenCL is maintained by the Khronos Group. It is a standard of 2008.";
  const auto answered =
      bertcl::tests::json_of({"answer", bertcl::tests::kModel, "-q", "Who maintains OpenCL?",
                              "--context", write("context.txt", context)});
  const int code =
      serve({"vectors=" + encoder, "qa=" + bertcl::tests::kModel, "--pooling", "mean"}, SIGTERM,
            [&](httplib::Client& client, const json& ready) {
              EXPECT_EQ(ready["schema"], "bertcl.serve/1");
              EXPECT_EQ(ready["models"][0]["kind"], "embedding");
              EXPECT_EQ(ready["models"][0]["precision"], "fp32") << "as of other commands";
              EXPECT_EQ(ready["models"][1]["name"], "qa");
              const json embed = {{"inputs", texts}, {"normalize", false}};
              const auto reply = client.Post("/embed", embed.dump(), "application/json");
              ASSERT_TRUE(reply);
              EXPECT_EQ(json::parse(reply->body).get<Vectors>(), vectors) << reply->body;
              const json ask = {{"question", "Who maintains OpenCL?"},
                                {"context", context},
                                {"top_k", 2},
                                {"align_to_words", false}};
              const auto found = client.Post("/answer", ask.dump(), "application/json");
              ASSERT_TRUE(found);
              const json answers = json::parse(found->body), &best = answers.at(0);
              EXPECT_EQ(best.at("answer"), answered["answer"]);
              EXPECT_EQ(best.at("start"), answered["answer_start"]);
              EXPECT_EQ(best.at("end"), answered["answer_start"].get<std::size_t>() +
                                            answered["answer"].get<std::string>().size());
              // Scores are P(start) P(end), whose logarithms differ as sums of logits do.
              const auto logits = [&](std::size_t i) {
                const json& entry = answered.at("nbest").at(i);
                return entry.at("start_logit").get<double>() + entry.at("end_logit").get<double>();
              };
              EXPECT_EQ(answers.at(1).at("answer"), answered["nbest"][1]["text"]);
              EXPECT_NEAR(std::log(best.at("score").get<double>()) -
                              std::log(answers.at(1).at("score").get<double>()),
                          logits(0) - logits(1), 1e-5);
            });
  EXPECT_EQ(code, 0);
}

TEST_F(ServeCommand, OptionsComeFromAFile) {
  const std::string config = write(
      "serve.toml",
      "max-client-batch = 2\nmax-batch-tokens = 77\njson-logs = true\nport = 1\nmodels = [\"tiny=" +
          folders().path("classes") + "\"]\n");
  const int code = serve({"--config", config}, SIGINT, [&](httplib::Client& client, const json&) {
    const json info = json::parse(client.Get("/info")->body);
    EXPECT_EQ(info["max_client_batch_size"], 2);
    EXPECT_EQ(info["max_batch_tokens"], 77);
    EXPECT_EQ(info["served_model_name"], "tiny");
  });
  EXPECT_EQ(code, 0) << "--port of the command line goes before that of the file";
  EXPECT_THAT(refusal(run_bertcl({"serve", "--config", write("bad.toml", "prot = 1\n")})),
              HasSubstr("unknown option 'prot'"));
  EXPECT_THAT(refusal(run_bertcl({"serve", "--config", write("bad.toml", "port = \"x\"\n")})),
              HasSubstr("port"));
  EXPECT_THAT(
      refusal(run_bertcl(
          {"serve", "--config", write("bad.toml", "disable-passes = \"find_gelu,,dead_code\"\n")})),
      HasSubstr("empty element in 'find_gelu,,dead_code'"));
  const auto with_text = [&](const std::string& text) {
    return refusal(run_bertcl({"serve", path("none.onnx"), "--config", write("bad.toml", text)}));
  };
  for (const std::string text :
       {"max-queue = 5\nkeep-alive = 3\nmax-queue = 7\n", "max-queue = 5\nmax-queue = 7\n"})
    EXPECT_THAT(with_text(text), AllOf(HasSubstr("bad.toml:"), HasSubstr("max-queue"))) << text;
  EXPECT_THAT(with_text("models = [\"a=x\"]\nkeep-alive = 3\nmodel = \"b=x\"\n"),
              HasSubstr("bad.toml: models: given more than once"));
  EXPECT_THAT(
      with_text("disable-kernels = [\"rows\", \"nonsense\"]\n"),
      HasSubstr("bad.toml: disable-kernels: --disable-kernels: unknown kernel variant 'nonsense'"));
  for (const std::string text : {"port = 0\n[serve]\nmax-queue = 5\n", "serve.max-queue = 5\n"})
    EXPECT_THAT(with_text(text),
                HasSubstr("bad.toml: serve: sections are not supported; move its options"))
        << text;
  for (const std::string key : {"help", "config"})
    EXPECT_THAT(with_text(key + " = true\n"),
                HasSubstr("bad.toml: " + key + ": allowed only on the command line"));
  EXPECT_THAT(with_text("json = \"" + write("notes.txt", "mine") + "\"\n"),
              HasSubstr("--json: " + path("notes.txt") + " already exists and is not a report"));
  EXPECT_THAT(with_text("json = '" + path("bad.toml") + "'\n"),
              HasSubstr("--json would overwrite " + path("bad.toml")));
  // Were the file passed over, a model that is not there would end the program.
  const auto with_file = [&](const std::string& file) {
    return refusal(run_bertcl({"serve", path("none.onnx"), "--config", file}));
  };
  EXPECT_THAT(with_file(path("none.toml")),
              EndsWith(path("none.toml") + ": cannot open: No such file or directory\n"));
  EXPECT_THAT(with_file(path("")), HasSubstr("is a directory, expected a file"));
  std::filesystem::create_symlink("loop", path("loop"));
  EXPECT_THAT(with_file(path("loop")), HasSubstr("cannot open: Too many levels"));
}

TEST_F(ServeCommand, AModelOfTheEnvironmentMayHaveAName) {
  const auto name_for = [&](const std::string& variable) {
    setenv("BERTCL_MODEL", variable.c_str(), 1);  // the program inherits it
    std::string name;
    const int code = serve({}, SIGHUP, [&](httplib::Client& client, const json&) {
      name = json::parse(client.Get("/info")->body)["served_model_name"];
    });
    unsetenv("BERTCL_MODEL");
    EXPECT_EQ(code, 0) << "SIGHUP ends it as SIGTERM does";
    return name;
  };
  const std::string path = tests::folders().path("classes");
  EXPECT_EQ(name_for(path), "classes");
  EXPECT_EQ(name_for("org/tiny=" + path), "org/tiny");
  const auto refused = [&](const std::string& variable) {
    return refusal(run_bertcl({"serve", "--port", "0"}, {{"BERTCL_MODEL", variable}}));
  };
  const std::string none = this->path("none.onnx");
  EXPECT_THAT(refused("tiny=" + none),
              HasSubstr("BERTCL_MODEL is 'tiny=" + none + "': neither it nor " + none + " exists"));
  EXPECT_THAT(refused(none), HasSubstr("BERTCL_MODEL names " + none + ", which does not exist"));
  for (const std::string& variable : {"=" + path, std::string("tiny=")})
    EXPECT_THAT(refused(variable),
                HasSubstr("BERTCL_MODEL is '" + variable + "', expected a path or NAME=PATH"));
}

TEST_F(ServeCommand, BatchesOnACpuGrowWithItsCores) {
  const opencl::DeviceInfo device = opencl::Context::create()->info();
  const std::size_t expected =
      device.is_cpu() ? std::min<std::size_t>(16384, 512 * device.compute_units) : 16384;
  const auto ask = [&](httplib::Client& client, const json&) {
    EXPECT_EQ(json::parse(client.Get("/info")->body)["max_batch_tokens"], expected);
  };
  EXPECT_EQ(serve({"tiny=" + folders().path("classes")}, SIGTERM, ask), 0);
}

TEST_F(ServeCommand, HasDescriptorsForItsConnections) {
  rlimit own{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &own), 0);
  ASSERT_GE(own.rlim_max, 512u);
  rlimit few = own;
  few.rlim_cur = 128;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);  // the program inherits it
  const auto ask = [&](httplib::Client& client, const json& ready) {
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &own), 0);
    std::vector<RawConnection> idle;
    for (int i = 0; i < 200; ++i) idle.emplace_back(ready["port"].get<int>());
    const auto health = client.Get("/health");
    ASSERT_TRUE(health);
    EXPECT_EQ(health->status, 200);
  };
  EXPECT_EQ(serve({"tiny=" + folders().path("classes"), "--keep-alive", "600"}, SIGTERM, ask), 0);
}

TEST_F(ServeCommand, EndsAtOnceWhileModelsAreLoaded) {
  // A pipe in place of a model: opening succeeds, reading blocks.
  const std::string model = path("model.onnx");
  ASSERT_EQ(mkfifo(model.c_str(), 0600), 0);
  const int port = 10000 + getpid() % 20000;
  const int code = bertcl::tests::interrupt_bertcl(
      {"serve", "tiny=" + model, "--vocab", kVocabulary, "--port", std::to_string(port)}, SIGTERM,
      [&] {
        const auto health = httplib::Client("127.0.0.1", port).Get("/health");
        return health && health->status == 503;
      });
  EXPECT_EQ(code, 0);
}

TEST_F(ServeCommand, KeysThatNoHeaderHoldsAreRefused) {
  const std::string model = path("none.onnx");  // an open server would not end
  EXPECT_THAT(refusal(run_bertcl({"serve", model, "--api-key", ""})),
              HasSubstr("--api-key: the key is empty"));
  EXPECT_THAT(
      refusal(run_bertcl({"serve", model, "--config", write("serve.toml", "api-key = \"\"\n")})),
      HasSubstr("--api-key: the key is empty"));
  const auto of_variable = [&](const std::string& key) {
    return refusal(run_bertcl({"serve", model}, {{"BERTCL_API_KEY", key}}));
  };
  EXPECT_THAT(of_variable(""), HasSubstr("BERTCL_API_KEY: the key is empty; unset the variable"));
  EXPECT_THAT(of_variable("a\n"), HasSubstr("BERTCL_API_KEY: the key has control characters"));
  EXPECT_THAT(of_variable("a b"), HasSubstr("none.onnx"));
  for (const char* key : {" a", "a "})
    EXPECT_THAT(refusal(run_bertcl({"serve", model, "--api-key", key})),
                HasSubstr("--api-key: the key begins or ends with a space"));
  EXPECT_THAT(refusal(run_bertcl({"serve", model, "--api-key", "a\tb"})),
              HasSubstr("--api-key: the key has control characters"));
}

TEST_F(ServeCommand, AFailedStartIsAJsonLineAsRequestsAre) {
  const auto result = run_bertcl({"serve", path("none.onnx"), "--json-logs"});
  EXPECT_EQ(result.code, 2);
  const json line = json::parse(result.err);
  EXPECT_EQ(line["level"], "error");
  EXPECT_THAT(line["message"].get<std::string>(), HasSubstr("none.onnx"));
  EXPECT_TRUE(line.contains("time"));
}

TEST_F(ServeCommand, WhatCannotBeServedIsRefused) {
  EXPECT_THAT(refusal(run_bertcl({"serve", path("none.onnx"), "--port", "0"})),
              HasSubstr("none.onnx"));
  EXPECT_THAT(refusal(run_bertcl({"serve", "a=" + bertcl::tests::kModel,
                                  "a=" + bertcl::tests::kModel, "--port", "0"})),
              HasSubstr("two models are called 'a'"));
  EXPECT_THAT(refusal(run_bertcl({"serve", "=" + bertcl::tests::kModel})),
              HasSubstr("the name is empty; a model is given as NAME=PATH or PATH"));
  for (const char* text : {"name=", "org/name="}) {
    EXPECT_THAT(refusal(run_bertcl({"serve", text})),
                HasSubstr("'" + std::string(text) +
                          "': the path is empty; a model is given as NAME=PATH or PATH"));
  }
  EXPECT_THAT(refusal(run_bertcl({"serve", "org/name=" + path("none.onnx")})),
              HasSubstr("neither it nor '" + path("none.onnx") +
                        "' exists; a model is given as NAME=PATH or PATH"));
  EXPECT_EQ(tools::parse_named_model("org/name=" + bertcl::tests::kModel).name, "org/name");
  // As huggingface_hub keeps it: a link to a file that is named by its hash.
  const std::string repository = path("models--org--name-2"),
                    snapshot = repository + "/snapshots/1";
  for (const std::string& folder : {repository + "/blobs", snapshot + "/onnx"})
    std::filesystem::create_directories(folder);
  write("models--org--name-2/blobs/6fd5", "");
  std::filesystem::create_symlink("../../../blobs/6fd5", snapshot + "/onnx/model_int8.onnx");
  EXPECT_EQ(tools::parse_named_model(snapshot).name, "org/name-2");
  const std::string int8 = snapshot + "/onnx/model_int8.onnx";
  EXPECT_EQ(tools::parse_named_model(int8).name, "org/name-2/model_int8");
  std::filesystem::create_directory_symlink(repository, path("models--short"));
  EXPECT_EQ(tools::parse_named_model(path("models--short/snapshots/1")).name, "short");
  std::filesystem::create_directory_symlink(snapshot, path("current"));
  write("models--org--name-2/snapshots/1/onnx/model.onnx", "");
  EXPECT_EQ(tools::parse_named_model(path("current")).name, "1") << "the folder of the link";
  EXPECT_THAT(refusal(run_bertcl({"serve", bertcl::tests::kModel, "--host", "192.0.2.1"})),
              HasSubstr("cannot listen on 192.0.2.1:8080"));
  EXPECT_THAT(refusal(run_bertcl({"serve", bertcl::tests::kModel, "--port", "0", "--host", ""})),
              HasSubstr("--host: the address is empty"));
  EXPECT_THAT(refusal(run_bertcl({"serve", bertcl::tests::kModel, "--executors", "1025"})),
              HasSubstr("--executors"));
  EXPECT_THAT(refusal(run_bertcl({"serve", path("none.onnx"), "--threads", "65537"})),
              HasSubstr("--threads: '65537' is out of range (1 to 65536)"));
  EXPECT_THAT(refusal(run_bertcl({"serve", tests::folders().path("classes"), "--port", "0",
                                  "--max-seq-length", "2"})),
              HasSubstr("leave no room for a text beside 2 special tokens; raise "
                        "--max-seq-length"));
  EXPECT_THAT(refusal(run_bertcl({"serve", bertcl::tests::kModel, "--prompt", "a\xff"})),
              HasSubstr("--prompt: invalid UTF-8 at byte 1 of 2"));
  const std::vector<std::string> prompted = {"serve",
                                             "a=" + tests::folders().path("vectors"),
                                             "b=" + tests::folders().path("cased"),
                                             "--pooling",
                                             "mean",
                                             "--port",
                                             "0",
                                             "--prompt",
                                             "query: "};
  EXPECT_THAT(
      refusal(run_bertcl(prompted)),
      HasSubstr(
          "--prompt \"query: \" applies to one embedding model, but several are served (a, b)"));
  const std::vector<std::vector<std::string>> of_vectors = {{"--prompt", "query: "},
                                                            {"--dimensions", "5"},
                                                            {"--no-normalize"},
                                                            {"--normalize"},
                                                            {"--pooling", "mean"}};
  for (const std::vector<std::string>& option : of_vectors) {
    std::vector<std::string> command = {"serve", "qa=" + bertcl::tests::kModel,
                                        "b=" + tests::folders().path("classes"), "--port", "0"};
    command.insert(command.end(), option.begin(), option.end());
    EXPECT_THAT(refusal(run_bertcl(command)),
                HasSubstr(option.front() + " has no effect: no embedding model is served"));
  }
  std::filesystem::create_symlink("loop", path("loop"));
  EXPECT_THAT(refusal(run_bertcl({"serve", path("loop"), "--port", "0"})),
              HasSubstr("loop: cannot open: Too many levels"));
  EXPECT_THAT(refusal(run_bertcl({"serve", path("none.onnx"), "--json", path("loop")})),
              HasSubstr("loop: cannot write: Too many levels"));
}

}  // namespace
}  // namespace bertcl::serve::tests
