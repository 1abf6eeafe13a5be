// SPDX-License-Identifier: Apache-2.0
// CPU quotas of cgroups, and signals of the first process.
#include "tools/container.hpp"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <sstream>
#include <string>

namespace bertcl::tools {
namespace {

namespace fs = std::filesystem;

/// A line of text; "" if there is no such file.
std::string line_of(const fs::path& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

/// CPUs of one group by "QUOTA PERIOD"; 0: any.
int cpus_of(const std::string& text) {
  std::istringstream stream(text);
  double quota = 0, period = 0;  // of "max" none
  if (!(stream >> quota >> period) || quota <= 0 || period <= 0) return 0;
  return static_cast<int>(std::min(std::ceil(quota / period), 1e6));
}

/// The least of a group and those above it. In a container the mounted tree may begin at its own.
int min_quota(const fs::path& tree, const fs::path& group, bool is_first_version) {
  int min = 0;
  for (fs::path folder = group.relative_path();; folder = folder.parent_path()) {
    const fs::path place = tree / folder;
    const int cpus = cpus_of(is_first_version ? line_of(place / "cpu.cfs_quota_us") + ' ' +
                                                    line_of(place / "cpu.cfs_period_us")
                                              : line_of(place / "cpu.max"));
    if (cpus > 0) min = min == 0 ? cpus : std::min(min, cpus);
    if (folder.empty()) return min;
  }
}

void end(int signal) { std::_Exit(128 + signal); }

}  // namespace

int cpu_quota(const fs::path& root) {
  const fs::path trees = root / "sys/fs/cgroup";
  std::ifstream groups(root / "proc/self/cgroup");
  // ID:CONTROLLERS:PATH; those of the second version have no list.
  for (std::string line; std::getline(groups, line);) {
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos) continue;
    const std::string controllers = ',' + line.substr(first + 1, second - first - 1) + ',';
    const fs::path group = line.substr(second + 1);
    int cpus = 0;
    if (controllers == ",,")
      cpus = min_quota(trees, group, false);
    else if (controllers.find(",cpu,") != controllers.npos)
      cpus = min_quota(trees / "cpu", group, true);
    if (cpus > 0) return cpus;
  }
  return 0;
}

void limit_cpu_threads(int quota, int cores) {
  if (quota > 0 && quota < cores)
    setenv("POCL_MAX_PTHREAD_COUNT", std::to_string(quota).c_str(), 0);
}

void end_by_signals() {
  for (const int signal : {SIGHUP, SIGINT, SIGTERM})
    if (std::signal(signal, end) == SIG_IGN) std::signal(signal, SIG_IGN);
}

}  // namespace bertcl::tools
