// SPDX-License-Identifier: Apache-2.0
// Completions and the manual page: made of the same options as the help.
#include <array>
#include <cstdio>
#include <set>
#include <sstream>

#include "program_runner.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::tests {
namespace {

class CompletionTest : public FolderTest {
 protected:
  CompletionTest() { write("bash", run_bertcl({"completion", "bash"}).out); }

  /// What bash proposes where the last of these words is being typed.
  std::vector<std::string> proposed(const std::string& words) const {
    const std::string script = "cd '" + folder_.path().string() + "'; . ./bash; COMP_WORDS=(" +
                               words +
                               "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _bertcl; "
                               "printf '%s\\n' \"${COMPREPLY[@]}\"";
    write("script", script);
    FILE* pipe = popen(("bash " + path("script") + " 2>&1").c_str(), "r");
    std::string out;
    std::array<char, 4096> part;
    while (pipe && std::fgets(part.data(), part.size(), pipe)) out += part.data();
    if (pipe) pclose(pipe);
    std::istringstream lines(out);
    std::vector<std::string> found;
    for (std::string line; std::getline(lines, line);)
      if (!line.empty()) found.push_back(line);
    return found;
  }
};

TEST_F(CompletionTest, BashProposesCommandsOptionsAndValues) {
  EXPECT_THAT(proposed("bertcl ''"),
              IsSupersetOf({"quantize", "eval", "answer", "completion", "--version"}));
  EXPECT_THAT(proposed("bertcl qu"), ElementsAre("quantize"));
  EXPECT_THAT(proposed("bertcl eval --pre"), ElementsAre("--precision", "--predictions"));
  EXPECT_THAT(proposed("bertcl eval m.onnx --task c"), ElementsAre("classify"));
  EXPECT_THAT(proposed("bertcl eval m.onnx --task = c"), ElementsAre("classify"));
  EXPECT_THAT(proposed("bertcl quantize --preset ort-t"), ElementsAre("ort-tensorrt"));
  EXPECT_THAT(proposed("bertcl quantize --table-format t"), ElementsAre("tensorrt"));
  EXPECT_THAT(proposed("bertcl quantize --places g"), Contains("gelu"));
  EXPECT_THAT(proposed("bertcl run --require ''"), ElementsAre("int8"));
  EXPECT_THAT(proposed("bertcl completion ''"), ElementsAre("bash", "zsh", "fish"));
  EXPECT_THAT(proposed("bertcl eval --limit ''"), IsEmpty()) << "a number";
  write("my model.onnx", "");
  EXPECT_THAT(proposed("bertcl eval my"), ElementsAre("my model.onnx"));
  write("data.json", "");
  EXPECT_THAT(proposed("bertcl eval m.onnx --data da"), ElementsAre("data.json"));
  EXPECT_THAT(proposed("bertcl eval m.onnx --data my"), ElementsAre("my model.onnx"));
}

TEST_F(CompletionTest, EveryOptionOfTheHelpIsThere) {
  const std::string man = run_bertcl({"man"}).out, fish = run_bertcl({"completion", "fish"}).out;
  for (const std::string& command : working_commands()) {
    const std::string help =
        run_bertcl({command, command == "quantize" ? "--help-all" : "--help"}).out;
    const auto all = proposed("bertcl " + command + " --");
    std::istringstream words(help);
    std::size_t options = 0;
    for (std::string line; std::getline(words, line);) {
      const auto begin = line.find_first_not_of(' ');
      if (begin != 2 || line[begin] != '-') continue;  // descriptions are further to the right
      const auto dashes = line.find("--");
      if (dashes == line.npos) continue;
      const std::string name = line.substr(dashes, line.find_first_of(" ,", dashes) - dashes);
      ++options;
      EXPECT_THAT(all, Contains(name)) << command;
      EXPECT_THAT(fish, HasSubstr(" -l " + name.substr(2) + " ")) << command;
      std::string escaped;
      for (const char c : name) escaped += c == '-' ? "\\-" : std::string(1, c);
      EXPECT_THAT(man, HasSubstr(escaped)) << command;
    }
    EXPECT_GE(options, 3u) << command;
  }
}

TEST_F(CompletionTest, TheManualHasNoTextThatGroffTakesForRequests) {
  std::istringstream page(run_bertcl({"man"}).out);
  std::set<std::string> requests;
  for (std::string line; std::getline(page, line);)
    if (line.starts_with('.') || line.starts_with('\''))
      requests.insert(line.substr(0, line.find(' ')));
  EXPECT_THAT(requests, IsSubsetOf({".TH", ".SH", ".SS", ".TP", ".B", ".PP", ".nf", ".fi"}));
}

TEST_F(CompletionTest, OtherShells) {
  EXPECT_THAT(run_bertcl({"completion", "zsh"}).out,
              AllOf(StartsWith("#compdef bertcl\n"), HasSubstr("bashcompinit")));
  expect_refused({"completion", "basch"}, {"(did you mean bash?)"});
}

}  // namespace
}  // namespace bertcl::tests
