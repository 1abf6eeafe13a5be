// SPDX-License-Identifier: Apache-2.0
// CPU quotas, in made-up trees of cgroups.
#include "tools/container.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>

#include "program_runner.hpp"

namespace bertcl::tools {
namespace {

class CpuQuota : public tests::FolderTest {
 protected:
  void put(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
    write(name, text);
  }
  int quota() const { return cpu_quota(path("")); }
};

TEST_F(CpuQuota, OfAContainer) {
  EXPECT_EQ(quota(), 0) << "no cgroups at all";
  put("proc/self/cgroup", "0::/\n");
  EXPECT_EQ(quota(), 0);
  put("sys/fs/cgroup/cpu.max", "max 100000\n");
  EXPECT_EQ(quota(), 0);
  put("sys/fs/cgroup/cpu.max", "200000 100000\n");
  EXPECT_EQ(quota(), 2);
  put("sys/fs/cgroup/cpu.max", "210000 100000\n");
  EXPECT_EQ(quota(), 3) << "rounded up";
  put("sys/fs/cgroup/cpu.max", "10000 100000\n");
  EXPECT_EQ(quota(), 1);
}

TEST_F(CpuQuota, TheLeastOfAGroupAndThoseAboveIt) {
  put("proc/self/cgroup", "0::/kube/pod/main\n");
  put("sys/fs/cgroup/kube/pod/main/cpu.max", "max 100000\n");
  put("sys/fs/cgroup/kube/pod/cpu.max", "400000 100000\n");
  EXPECT_EQ(quota(), 4);
  put("sys/fs/cgroup/kube/cpu.max", "300000 100000\n");
  EXPECT_EQ(quota(), 3);
  put("sys/fs/cgroup/kube/pod/main/cpu.max", "50000 25000\n");
  EXPECT_EQ(quota(), 2);
  put("proc/self/cgroup", "0::/docker/gone\n");
  put("sys/fs/cgroup/cpu.max", "500000 100000\n");
  EXPECT_EQ(quota(), 5) << "the mounted tree begins at the container's own group";
}

TEST_F(CpuQuota, OfTheFirstVersion) {
  put("proc/self/cgroup", "5:cpuset:/a\n4:cpu,cpuacct:/docker/a\n0::/\n");
  put("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  put("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota(), 0);
  put("sys/fs/cgroup/cpu/docker/a/cpu.cfs_quota_us", "150000\n");
  put("sys/fs/cgroup/cpu/docker/a/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota(), 2);
}

TEST(CpuThreads, AreLimitedUnlessTheUserSaysHowMany) {
  const char* name = "POCL_MAX_PTHREAD_COUNT";
  const char* before = std::getenv(name);
  const std::optional<std::string> kept =
      before ? std::optional<std::string>(before) : std::nullopt;
  const auto after = [&](int quota, int cores) {
    limit_cpu_threads(quota, cores);
    const char* value = std::getenv(name);
    return std::string(value ? value : "");
  };
  unsetenv(name);
  EXPECT_EQ(after(0, 8), "") << "no quota";
  EXPECT_EQ(after(8, 8), "");
  EXPECT_EQ(after(2, 8), "2");
  setenv(name, "5", 1);
  EXPECT_EQ(after(2, 8), "5");
  unsetenv(name);
  if (kept) setenv(name, kept->c_str(), 1);
}

}  // namespace
}  // namespace bertcl::tools
