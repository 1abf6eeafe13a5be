// SPDX-License-Identifier: Apache-2.0
// Options that name files: what cannot be written, and files that two options share, are refused.
#include "tools/options/file_options.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>

#include "bertcl/error.hpp"
#include "program_runner.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::tests {
namespace {

using FileOptionsTest = FolderTest;

/// What check_files() says of models and a vocabulary to read, two reports to write, and data to
/// write.
std::string complaint(std::vector<std::string> arguments) {
  CLI::App command;
  std::vector<std::string> models;
  std::string vocabulary, html, json, picture, output;
  bool force = false;
  tools::model_file(command.add_option("MODEL", models));
  tools::input_file(command.add_option("--vocab", vocabulary));
  tools::output_file(command.add_option("--html", html), tools::OutputFileKind::report);
  tools::output_file(command.add_option("-j,--json", json),
                     tools::OutputFileKind::report_or_terminal);
  tools::output_file(command.add_option("--plot", picture), tools::OutputFileKind::picture);
  tools::output_file(command.add_option("-o,--output", output));
  tools::add_force_flag(command, force);
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
  try {
    command.parse(arguments);
    tools::check_files(command);
  } catch (const CLI::ParseError& error) {
    return error.what();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST_F(FileOptionsTest, NoFileIsWrittenTwiceOrOverAnother) {
  const std::string model = write("m.onnx", ""), weights = write("m.onnx.data", "");
  const std::string vocabulary = write("vocab.txt", ""), other = path("o.html");
  std::filesystem::create_directory(path("folder"));
  std::filesystem::create_symlink("m.onnx", path("link"));
  std::filesystem::create_hard_link(vocabulary, path("hard"));
  const std::string there = path("folder/../o.html");
  const auto relative = std::filesystem::relative(other).string();

  EXPECT_EQ(complaint({"--html", other, "--json", other}),
            "--html and --json would both write " + other + "; give each its own file");
  EXPECT_THAT(complaint({"-j", there, "--html", other}), HasSubstr("--html and --json would both"));
  EXPECT_THAT(complaint({"--json", relative, "--html", other}), HasSubstr("--html and --json"));
  EXPECT_EQ(
      complaint({path("a.onnx"), model, "--json", path("link")}),
      "--json would overwrite " + path("link") + ", which is read as MODEL; give another file");
  EXPECT_THAT(complaint({model, "--html", weights}), AllOf(HasSubstr("--html"), HasSubstr("MODEL")))
      << "the model's weights";
  EXPECT_THAT(complaint({"--vocab", vocabulary, "--json", path("hard")}),
              AllOf(HasSubstr("--json"), HasSubstr("--vocab")));

  EXPECT_EQ(complaint({model, model, "--vocab", vocabulary, "--html", other, "--json", "-"}), "");
  EXPECT_EQ(complaint({model, "--html", path("1"), "--json", path("2")}), "");
  EXPECT_EQ(complaint({model, "--html", "/dev/null", "--json", "/dev/null"}), "");
}

TEST_F(FileOptionsTest, PipesAndOpenFilesAreWrittenToAsTheyAre) {
  const std::string model = write("m.onnx", "");
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  const int log = ::open(write("log", "words").c_str(), O_WRONLY);
  ASSERT_GE(log, 0);
  for (const int descriptor : {pipe[1], log}) {
    const std::string name = "/dev/fd/" + std::to_string(descriptor);
    EXPECT_EQ(complaint({model, "--json", name, "--html", name, "-o", name}), "");
    ::close(descriptor);
  }
  ::close(pipe[0]);
}

TEST_F(FileOptionsTest, AFolderStandsForTheModelInIt) {
  CLI::App command;
  std::string model;
  tools::model_file(command.add_option("MODEL", model));
  const auto given = [&](const std::string& name) {
    std::vector<std::string> arguments = {name};
    try {
      command.parse(arguments);
      return model;
    } catch (const CLI::ParseError& error) {
      return std::string(error.what());
    }
  };
  const std::string folder = path("model");
  std::filesystem::create_directories(folder + "/onnx");
  EXPECT_THAT(given(folder), HasSubstr("neither model.onnx nor onnx/model.onnx"));
  write("model/onnx/model_int8.onnx", "");
  EXPECT_EQ(given(folder), folder + "/onnx/model_int8.onnx");
  write("model/model_fp16.onnx", "");
  EXPECT_THAT(given(folder), HasSubstr("name one of its files: " + folder + "/model_fp16.onnx, " +
                                       folder + "/onnx/model_int8.onnx"));
  write("model/onnx/model.onnx", "");
  EXPECT_EQ(given(folder), folder + "/onnx/model.onnx");
  write("model/model.onnx", "");
  EXPECT_EQ(given(folder), folder + "/model.onnx");
  EXPECT_EQ(given(path("absent.onnx")), path("absent.onnx"));
}

TEST_F(FileOptionsTest, WhatCannotBeWrittenIsRefused) {
  EXPECT_THAT(complaint({"--html", path("none/a")}), AllOf(HasSubstr("--html"), HasSubstr("none")));
  EXPECT_THAT(complaint({"--html", "-"}), HasSubstr("only --json -"));
  EXPECT_THAT(complaint({"--json", ""}), HasSubstr("is empty"));
  EXPECT_THAT(complaint({""}), HasSubstr("is empty"));
}

TEST_F(FileOptionsTest, DataAreReplacedByForceAlone) {
  const std::string there = write("there", ""), other = path("other");
  std::filesystem::create_symlink("there", path("link"));
  std::filesystem::create_symlink("nowhere", path("dangling"));
  EXPECT_EQ(
      complaint({"-o", there}),
      "--output: " + there + " already exists; name another file, or replace it with --force");
  EXPECT_THAT(complaint({"-o", path("link")}), HasSubstr("already exists"));
  EXPECT_EQ(complaint({"-o", there, "--force"}), "");
  for (const std::string& free : {other, path("dangling"), std::string("/dev/null")})
    EXPECT_EQ(complaint({"-o", free}), "");
  EXPECT_THAT(complaint({there, "-o", there, "--force"}), HasSubstr("would overwrite"));
}

TEST_F(FileOptionsTest, AReportReplacesAnEarlierReportAlone) {
  const std::string model = write("m.onnx", "\x08\x0a"), other = write("tokenizer.json", "{}");
  EXPECT_EQ(
      complaint({"--json", other}),
      "--json: " + other + " already exists and is not a report; name another file, or remove it");
  const std::string plot = write("plot.svg", "<svg xmlns='http://www.w3.org/2000/svg'/>");
  for (const char* option : {"--json", "--html"})
    for (const std::string& kept :
         {model, other, plot, write("p.html", "<!DOCTYPE html>\n<title>x</title>"),
          write("t.html", "<title>About - bertcl</title>"),
          write("notes", R"(Reports begin with {"schema": "bertcl.eval/1")"),
          write("list.json", R"([{"schema": "bertcl.eval/1"}])"),
          write("o.json", R"({"schema": "other.eval/1"})")})
      EXPECT_THAT(complaint({option, kept, "--force"}), HasSubstr("is not a report")) << kept;
  EXPECT_EQ(complaint({"--html", write("empty", ""), "--json", "/dev/null"}), "");
  EXPECT_EQ(complaint({"--json", write("compact", R"({"schema":"bertcl.eval/1","models":[]})")}),
            "");
  EXPECT_EQ(complaint({"--plot", plot}), "");
  EXPECT_THAT(complaint({"--plot", write("d.json", "{}")}), HasSubstr("is not an SVG picture"));
  const std::string json = path("r.json"), html = path("r.html");
  for (int run = 0; run < 2; ++run) {
    succeeded(run_bertcl({"inspect", kModel, "--json", json, "--html", html}));
  }
  expect_refused({"devices", "--json", model}, {"is not a report"});
  EXPECT_EQ(read(model), "\x08\x0a");
}

TEST_F(FileOptionsTest, EveryCommandKeepsTheDataThatAreThere) {
  const std::string old = write("old", "words");
  const std::vector<std::vector<std::string>> commands = {
      {"quantize", "m.onnx", "-o", old, "--data", "d.json"},
      {"quantize", "m.onnx", "-o", path("q.onnx"), "--data", "d.json", "--write-table", old},
      {"eval", "m.onnx", "--data", "d.json", "--predictions", old},
      {"eval", "m.onnx", "--data", "d.json", "--null-odds", old},
      {"eval", "m.onnx", "--data", "d.json", "--nbest", old},
      {"run", "m.onnx", "--inputs", "x.npz", "--outputs", old}};
  for (const std::vector<std::string>& command : commands) {
    EXPECT_THAT(refusal(run_bertcl(command)),
                AllOf(HasSubstr(old + " already exists"), HasSubstr("--force")))
        << testing::PrintToString(command);
    std::vector<std::string> forced = command;
    forced.push_back("--force");
    EXPECT_THAT(refusal(run_bertcl(forced)), Not(HasSubstr("already exists")));
    EXPECT_EQ(files(), std::vector<std::string>{"old"});
    EXPECT_EQ(read(old), "words");
  }
}

TEST_F(FileOptionsTest, FilesOfAModelAreNotOverwritten) {
  std::filesystem::create_directories(path("m/onnx"));
  std::filesystem::create_directory(path("m/1_Pooling"));
  std::filesystem::create_directory(path("m/2_Dense"));
  const std::string modules =
      write("m/modules.json", R"([{"type": "x.Dense", "path": "2_Dense"}])");
  const std::vector<std::string> names = {"vocab.txt",
                                          "tokenizer.json",
                                          "tokenizer_config.json",
                                          "special_tokens_map.json",
                                          "added_tokens.json",
                                          "vocab.json",
                                          "merges.txt",
                                          "sentencepiece.bpe.model",
                                          "spiece.model",
                                          "config.json",
                                          "1_Pooling/config.json",
                                          "sentence_bert_config.json",
                                          "config_sentence_transformers.json",
                                          "2_Dense/config.json",
                                          "2_Dense/model.safetensors"};
  std::vector<std::string> kept = {modules};
  for (const std::string& name : names) kept.push_back(write("m/" + name, "words"));
  std::filesystem::create_symlink("m/vocab.txt", path("link"));
  std::filesystem::create_hard_link(path("m/config.json"), path("hard"));
  kept.insert(kept.end(), {path("link"), path("hard"), path("m/onnx/../vocab.txt")});
  const auto refused = [](const std::string& file, const std::string& option) {
    return "--output would overwrite " + file + ", which belongs to " + option +
           "; give another file";
  };
  for (const std::string& model : {write("m/model.onnx", ""), write("m/onnx/model.onnx", "")})
    for (const std::string& file : kept)
      EXPECT_EQ(complaint({model, "-o", file, "--force"}), refused(file, "MODEL"));
  EXPECT_EQ(complaint({path("m"), "-o", kept[1], "--force"}), refused(kept[1], "MODEL"));
  EXPECT_EQ(complaint({"--vocab", path("m/vocab.json"), "-o", path("m/merges.txt"), "--force"}),
            refused(path("m/merges.txt"), "--vocab"));
  EXPECT_EQ(complaint({path("m"), "-o", write("m/other.json", ""), "--force"}), "");
  const std::string dense = path("m/2_Dense/model.safetensors");
  write("m/modules.json",
        R"([{"type": "Dense", "path": "../x"}, {"type": "Dense", "path": "2_Dense"}])");
  EXPECT_EQ(complaint({path("m"), "-o", dense, "--force"}), refused(dense, "MODEL"));
  write("m/modules.json", "[");  // damaged
  for (const std::string& file : {modules, kept[1]})
    EXPECT_EQ(complaint({path("m"), "-o", file, "--force"}), refused(file, "MODEL"));
}

TEST_F(FileOptionsTest, NoCommandOverwritesTheVocabularyOfItsModel) {
  const std::string vocabulary = write("vocab.txt", "words"), model = write("m.onnx", "");
  std::filesystem::create_symlink("vocab.txt", path("link.npy"));
  const std::vector<std::vector<std::string>> commands = {
      {"quantize", model, "--dynamic", "-o", vocabulary},
      {"quantize", model, "--dynamic", "--model-only", "-o", vocabulary},
      {"quantize", model, "--data", "d", "-o", path("q.onnx"), "--write-table", vocabulary},
      {"eval", model, "--data", "d", "--predictions", vocabulary},
      {"run", model, "texts", "--outputs", vocabulary},
      {"embed", model, "texts", "-o", vocabulary},
      {"similarity", model, "texts", "-o", path("link.npy")}};
  for (std::vector<std::string> command : commands) {
    command.emplace_back("--force");
    EXPECT_THAT(refusal(run_bertcl(command)),
                AllOf(HasSubstr(" would overwrite "), HasSubstr(", which belongs to MODEL;")))
        << testing::PrintToString(command);
    EXPECT_EQ(read(vocabulary), "words");
  }
}

TEST_F(FileOptionsTest, NoCommandOverwritesAFileOfItsDataFolder) {
  std::filesystem::create_directories(path("reviews/neg"));
  std::filesystem::create_directory(path("reviews/pos"));
  const std::string review = write("reviews/pos/1.txt", "words"), model = write("m.onnx", "");
  std::filesystem::create_symlink("reviews/pos/1.txt", path("link"));
  for (const std::string& file : {review, path("link"), path("reviews/neg/../pos/1.txt")})
    for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{
             {"eval", model, "--data", path("reviews"), "--predictions", file},
             {"quantize", model, "--data", path("reviews"), "--output", file},
             {"quantize", model, "--data", "d", "--max-drop", "1", "--drop-data", path("reviews"),
              "--output", file}}) {
      EXPECT_THAT(refusal(run_bertcl(joined(command, {"--task", "classify", "--force"}))),
                  HasSubstr(" would overwrite " + file + ", which is read as --"))
          << testing::PrintToString(command);
      EXPECT_EQ(read(review), "words");
    }
  // What lies there and is not read may be replaced: the model is the next to be refused.
  EXPECT_THAT(refusal(run_bertcl(joined({"eval", model, "--data", path("reviews"), "--predictions",
                                         write("reviews/old.json", "{}")},
                                        {"--task", "classify", "--force"}))),
              Not(HasSubstr("overwrite")));
}

TEST_F(FileOptionsTest, ArgumentsAreNamedAsInTheUsage) {
  const std::string texts = write("texts", "words");
  for (const std::vector<std::string>& more : std::vector<std::vector<std::string>>{
           {texts, "--outputs", texts}, {"--texts", texts, "--outputs", texts}}) {
    std::vector<std::string> command = {"run", "m.onnx"};
    command.insert(command.end(), more.begin(), more.end());
    expect_refused(run_bertcl(command),
                   {"--outputs would overwrite " + texts + ", which is read as TEXTS;"});
  }
  expect_refused({"rerank", "m.onnx", texts, "--json", texts}, {"which is read as PASSAGES;"});
}

TEST_F(FileOptionsTest, EveryCommandRefusesSharedFilesAndLeavesThemAsTheyAre) {
  const std::string in = write("in", "words"), out = path("out");
  const std::vector<std::vector<std::string>> commands = {
      {"inspect", in, "--html", out, "--json", out},
      {"inspect", in, "--json", in},
      {"eval", in, "--data", "d.json", "--predictions", out, "--nbest", out},
      {"eval", in, "--data", "d.json", "--null-odds", out, "--json", out},
      {"eval", "m.onnx", "--compare", in, "--data", "d.json", "--predictions", in},
      {"eval", "m.onnx", "--data", in, "--json", in},
      {"eval", "m.onnx", "--data", "d", "--task", "tag", "--labels", in, "--json", in},
      {"eval", "m.onnx", "--data", "d.json", "--vocab", in, "--json", in},
      {"quantize", in, "-o", in, "--data", "d.json"},
      {"quantize", "m.onnx", "-o", in, "--data", in},
      {"quantize", "m.onnx", "-o", out, "--data", "d.json", "--write-table", out},
      {"quantize", "m.onnx", "-o", out, "--data", "d.json", "--sensitivity-plot", out},
      {"quantize", "m.onnx", "-o", in, "--read-table", in},
      {"quantize", "m.onnx", "-o", in, "--data", "d.json", "--overrides", in},
      {"quantize", "m.onnx", "-o", in, "--data", "d", "--max-drop", "1", "--drop-data", in},
      {"run", in, "--inputs", "x.npz", "--outputs", in},
      {"run", "m.onnx", "--inputs", in, "--outputs", in},
      {"run", "m.onnx", "--inputs", in, "--outputs", out, "--json", out},
      {"verify", in, "g.npz", "--json", in},
      {"verify", "m.onnx", "g.npz", in, "--json", in},
      {"verify", "--all", "models", "--expect", in, "--json", in},
      {"answer", in, "-q", "Who?", "--json", in},
      {"answer", "--context", in, "-q", "Who?", "--json", in},
      {"bench", in, "--json", in}};
  for (const std::vector<std::string>& command : commands) {
    EXPECT_THAT(refusal(run_bertcl(command)),
                AnyOf(HasSubstr("would both write " + out),
                      HasSubstr("would overwrite " + in + ", which is read as ")))
        << testing::PrintToString(command);
    EXPECT_EQ(files(), std::vector<std::string>{"in"});
    EXPECT_EQ(read(in), "words");
  }
}

}  // namespace
}  // namespace bertcl::tests
