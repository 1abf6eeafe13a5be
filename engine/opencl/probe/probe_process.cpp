// SPDX-License-Identifier: Apache-2.0
// The probes in a separate process: how its program is found and run, and what its exit means.
#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <sstream>
#include <vector>

#include "opencl/device/device.hpp"
#include "opencl/probe/probe.hpp"

extern char** environ;

namespace bertcl::opencl {
namespace {

namespace fs = std::filesystem;

constexpr int kSecondsPerProbe = 60;  // a cold build takes a few, on a busy machine more
constexpr int kResultFile = 3;        // as probe_main.cpp has it

/// What one process has written and how it ended.
struct Ended {
  std::string text;
  bool timed_out = false;
  std::optional<int> status;  // as waitpid() gives it; none where another waiter took it
};

class Pipe {
 public:
  Pipe() {
    // Above the number that the child gives it, so that dup2() makes another one there.
    std::array<int, 2> made{-1, -1};
    if (pipe2(made.data(), O_CLOEXEC) != 0) return;
    for (size_t i = 0; i < 2; ++i) {
      ends_[i] = fcntl(made[i], F_DUPFD_CLOEXEC, kResultFile + 1);
      close(made[i]);
    }
  }
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  bool is_open() const { return ends_[0] >= 0 && ends_[1] >= 0; }
  int read_end() const { return ends_[0]; }
  int write_end() const { return ends_[1]; }
  void close_end(size_t end) {
    if (ends_[end] >= 0) close(ends_[end]);
    ends_[end] = -1;
  }

 private:
  std::array<int, 2> ends_{-1, -1};
};

/// 0 where the process began. Its messages go to the terminal only where those of the cache do.
pid_t start(const std::vector<std::string>& command, int write_end) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  const char* debug = std::getenv("BERTCL_CACHE_DEBUG");
  if (!debug || !*debug)
    posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&files, write_end, kResultFile);
  // Neither blocked nor ignored signals of this process.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t signals;
  sigemptyset(&signals);
  posix_spawnattr_setsigmask(&attributes, &signals);
  for (const int number : {SIGABRT, SIGALRM, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGPIPE, SIGTERM})
    sigaddset(&signals, number);
  posix_spawnattr_setsigdefault(&attributes, &signals);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  pid_t child = -1;
  const int failed =
      posix_spawn(&child, command.front().c_str(), &files, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  return failed ? -1 : child;
}

/// None where the program cannot be run.
std::optional<Ended> run(const std::vector<std::string>& command) {
  Pipe pipe;
  if (!pipe.is_open()) return std::nullopt;
  const pid_t child = start(command, pipe.write_end());
  if (child < 0) return std::nullopt;
  pipe.close_end(1);
  Ended ended;
  std::array<char, 4096> block;
  for (;;) {
    pollfd waiting{pipe.read_end(), POLLIN, 0};
    const int ready = poll(&waiting, 1, kSecondsPerProbe * 1000);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) {
      ended.timed_out = true;
      kill(child, SIGKILL);
      break;
    }
    const ssize_t bytes = read(pipe.read_end(), block.data(), block.size());
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) break;
    ended.text.append(block.data(), static_cast<size_t>(bytes));
  }
  int status = 0;
  pid_t waited = -1;
  do waited = waitpid(child, &status, 0);
  while (waited < 0 && errno == EINTR);
  if (waited == child) ended.status = status;
  return ended;
}

/// The name of the last probe that began.
std::string last_begun(const std::string& text) {
  std::string name;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("begin ")) name = line.substr(6);
  return name;
}

/// Signals by which a program ends itself, by an assertion or an error, and nobody else ends it.
bool is_crash(int signal) {
  for (const int own : {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP})
    if (signal == own) return true;
  return false;
}

std::string how_it_ended(const Ended& ended) {
  if (ended.timed_out) return fmt::format("it did not end within {} s", kSecondsPerProbe);
  if (!ended.status) return "it ended without a result";
  if (WIFSIGNALED(*ended.status)) {
    const char* name = sigabbrev_np(WTERMSIG(*ended.status));
    return fmt::format("the driver crashed (SIG{})", name ? name : "?");
  }
  return fmt::format("the driver ended the process with exit code {}", WEXITSTATUS(*ended.status));
}

/// The file that holds this code: a program, or a shared library.
fs::path own_file() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&own_file), &info) == 0 || !info.dli_fname) return {};
  std::error_code error;
  // The name of a program is what it was called by.
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  const fs::path file = fs::canonical(info.dli_fname, error);
  return error || file.empty() ? program : file;
}

bool is_program(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && access(path.c_str(), X_OK) == 0;
}

}  // namespace

fs::path find_probe_program() {
  if (const char* wanted = std::getenv("BERTCL_PROBE"); wanted && *wanted)
    return is_program(wanted) ? fs::path(wanted) : fs::path();
  const fs::path folder = own_file().parent_path();
  for (const fs::path& path : {folder / "bertcl-probe", folder / "../libexec/bertcl/bertcl-probe",
                               fs::path(BERTCL_INSTALLED_PROBE), fs::path(BERTCL_BUILT_PROBE)})
    if (is_program(path)) return path;
  return {};
}

ChildProbes probe_in_child(const fs::path& program, const DeviceInfo& device) {
  ChildProbes probes;
  std::map<std::string, std::string> broken;  // probes, and how they ended the process
  for (;;) {
    std::vector<std::string> command{program.string(), std::to_string(device.index), device.name};
    for (const auto& [name, how] : broken) command.push_back(name);
    const std::optional<Ended> ended = run(command);
    const auto give_up = [&](const std::string& why) {
      probes.is_cacheable = false;
      probes.failure = fmt::format("{}: {}", program.string(), why);
      return probes;
    };
    if (!ended) return give_up("it cannot be run");
    constexpr std::string_view kFound = "found\n";
    if (const size_t found = ended->text.find(kFound); found != std::string::npos)
      probes.found = from_text(ended->text.substr(found + kFound.size()));
    if (probes.found) {
      for (const auto& [name, how] : broken)
        if (probes.found->notes.contains(name)) probes.found->notes[name] = how;
      return probes;
    }
    const std::string name = last_begun(ended->text);
    if (name.empty() || broken.contains(name)) return give_up(how_it_ended(*ended));
    broken[name] = fmt::format("the probe was stopped: {}", how_it_ended(*ended));
    // A user, the system or a busy machine may have stopped it: another time it may end well.
    probes.is_cacheable &= !ended->timed_out && ended->status &&
                           (!WIFSIGNALED(*ended->status) || is_crash(WTERMSIG(*ended->status)));
  }
}

}  // namespace bertcl::opencl
