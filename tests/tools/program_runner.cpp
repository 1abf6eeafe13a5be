// SPDX-License-Identifier: Apache-2.0
// Runs the program `bertcl` as a user does and takes what it prints.
#include "program_runner.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <stdexcept>

#include "tests/support/matchers.hpp"

namespace bertcl::tests {

namespace {

/// Starts `bertcl ARGUMENTS` with the file `in` on standard input.
pid_t start(const std::vector<std::string>& arguments,
            const std::map<std::string, std::string>& environment, const std::string& out,
            const std::string& err, const std::string& in = "/dev/null") {
  std::vector<char*> argv;
  std::string program = built_file("bertcl");
  argv.push_back(program.data());
  std::vector<std::string> copies = arguments;
  for (std::string& argument : copies) argv.push_back(argument.data());
  argv.push_back(nullptr);

  const pid_t child = fork();
  if (child != 0) return child;
  std::signal(SIGINT, SIG_DFL);  // shells let what runs in the background ignore it
  std::signal(SIGHUP, SIG_DFL);  // and nohup this one
  const auto redirect = [](const char* file, int flags, int to) {
    const int descriptor = open(file, flags, 0600);
    if (descriptor < 0 || dup2(descriptor, to) < 0) _exit(127);
  };
  redirect(in.c_str(), O_RDONLY, STDIN_FILENO);
  redirect(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, STDOUT_FILENO);
  redirect(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOCTTY, STDERR_FILENO);
  for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
  execv(argv[0], argv.data());
  _exit(127);
}

int code_of(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

}  // namespace

ProgramResult run_bertcl_on_terminal(const std::vector<std::string>& arguments,
                                     const std::map<std::string, std::string>& environment) {
  ProgramResult result;
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
  if (terminal < 0 || grantpt(terminal) != 0 || unlockpt(terminal) != 0) return result;
  const pid_t child = start(arguments, environment, "/dev/null", ptsname(terminal));
  const auto take = [&] {
    char text[4096];
    for (ssize_t n; (n = read(terminal, text, sizeof(text))) > 0;)
      result.err.append(text, static_cast<std::size_t>(n));
  };
  int status = 0;
  while (child > 0 && waitpid(child, &status, WNOHANG) == 0) {
    take();
    usleep(10'000);
  }
  take();
  close(terminal);
  if (child > 0) result.code = code_of(status);
  return result;
}

int interrupt_bertcl(const std::vector<std::string>& arguments, int signal,
                     const std::function<bool()>& now) {
  const pid_t child = start(arguments, {}, "/dev/null", "/dev/null");
  if (child < 0) return -1;
  int status = 0;
  for (bool sent = false; waitpid(child, &status, WNOHANG) == 0;) {
    if (!sent && now()) sent = kill(child, signal) == 0;
    usleep(10'000);
  }
  return code_of(status);
}

ProgramResult run_bertcl(const std::vector<std::string>& arguments,
                         const std::map<std::string, std::string>& environment,
                         const std::string& input) {
  const ScratchFolder folder;
  const std::string out = (folder / "out").string(), err = (folder / "err").string();
  const pid_t child = start(arguments, environment, out, err, folder.write("in", input).string());
  ProgramResult result;
  int status = 0;
  if (child > 0 && waitpid(child, &status, 0) == child) result.code = code_of(status);
  const auto take = [](const std::string& file) {
    std::ifstream stream(file, std::ios::binary);
    return std::string{std::istreambuf_iterator<char>(stream), {}};
  };
  result.out = take(out);
  result.err = take(err);
  return result;
}

std::string FolderTest::write(const std::string& name, const std::string& content) const {
  return folder_.write(name, content).string();
}

void FolderTest::write_pooling(const std::string& config) const {
  std::filesystem::create_directory(path("1_Pooling"));
  write("modules.json",
        R"([{"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"}])");
  write("1_Pooling/config.json", config);
}

std::string FolderTest::read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

nlohmann::json FolderTest::read_json(const std::string& path) {
  return nlohmann::json::parse(read(path));
}

std::vector<std::string> FolderTest::files() const {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_.path())) {
    names.push_back(std::filesystem::relative(entry.path(), folder_.path()).string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<nlohmann::json> json_lines(const std::string& text) {
  std::vector<nlohmann::json> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);)
    lines.push_back(nlohmann::json::parse(line, nullptr, false));
  return lines;
}

nlohmann::json json_of(const ProgramResult& result) {
  EXPECT_EQ(result.code, 0) << result.err;
  return nlohmann::json::parse(result.out, nullptr, false);
}

std::vector<nlohmann::json> json_lines(const ProgramResult& result) {
  EXPECT_EQ(result.code, 0) << result.err;
  return json_lines(result.out);
}

nlohmann::json json_of(const std::vector<std::string>& arguments) {
  const ProgramResult result = run_bertcl(joined(arguments, {"--json", "-"}));
  EXPECT_EQ(result.err, "");
  return json_of(result);
}

ProgramResult succeeded(ProgramResult result, std::source_location where) {
  if (result.code != 0) {
    ADD_FAILURE_AT(where.file_name(), static_cast<int>(where.line()))
        << "exit code " << result.code << "\n"
        << result.err;
    throw std::runtime_error("bertcl failed");
  }
  return result;
}

std::string refusal(const ProgramResult& result) {
  EXPECT_EQ(result.code, 2) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_TRUE(result.err.starts_with("bertcl: ")) << result.err;
  return result.err;
}

void expect_refused(const ProgramResult& result, const std::vector<std::string>& parts,
                    std::source_location where) {
  const testing::ScopedTrace trace(where.file_name(), static_cast<int>(where.line()), "");
  const std::string message = refusal(result);
  for (const std::string& part : parts) EXPECT_THAT(message, HasSubstr(part));
}

void expect_refused(const std::vector<std::string>& arguments,
                    const std::vector<std::string>& parts,
                    const std::map<std::string, std::string>& environment, const std::string& input,
                    std::source_location where) {
  expect_refused(run_bertcl(arguments, environment, input), parts, where);
}

std::vector<std::string> working_commands() {
  const std::set<std::string> about_the_program{"completion", "man", "help"};
  std::vector<std::string> commands;
  std::istringstream help(run_bertcl({"--help"}).out);
  std::string line;
  while (std::getline(help, line) && line != "Commands:") {
  }
  while (std::getline(help, line) && line.starts_with("  ")) {
    const std::string name = line.substr(2, line.find(' ', 2) - 2);
    if (!about_the_program.contains(name)) commands.push_back(name);
  }
  return commands;
}

std::vector<std::string> joined(std::vector<std::string> arguments,
                                const std::vector<std::string>& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

}  // namespace bertcl::tests
