// SPDX-License-Identifier: Apache-2.0
// The program cache on disk: cold, warm, damaged, read-only, shared by processes, changed inputs.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>

#include "opencl/context.hpp"
#include "opencl/program/program_cache.hpp"
#include "tests/support/environment.hpp"
#include "tests/support/matchers.hpp"
#include "tests/support/scratch_folder.hpp"

namespace bertcl::opencl {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSource =
    "__kernel void f(__global int* out) { out[get_global_id(0)] = VALUE; }";

class ProgramCacheTest : public ::testing::Test {
 protected:
  void SetUp() override { cache_.set(folder_.string()); }

  void TearDown() override {
    std::error_code error;
    fs::permissions(folder_, fs::perms::owner_all, fs::perm_options::add, error);
  }

  // Runs the program in a fresh context and returns (its result, the cache's messages).
  std::pair<int, std::string> run(int value) {
    ::testing::internal::CaptureStderr();
    int result = 0;
    {
      auto context = Context::create("cpu");
      Buffer out = context->allocate(sizeof(int));
      out.fill(0xA5);
      Kernel kernel = context->kernel_from_source("cached", kSource, "f", {{"VALUE", value}});
      kernel.args(out);
      context->queue().launch(kernel, {1, 1, 1}, {1, 1, 1}, "cached");
      result = out.download<int>()[0];
    }
    return {result, ::testing::internal::GetCapturedStderr()};
  }

  std::vector<fs::path> files() const {
    std::vector<fs::path> found;
    if (fs::exists(folder_))
      for (const auto& entry : fs::directory_iterator(folder_)) found.push_back(entry.path());
    std::sort(found.begin(), found.end());
    return found;
  }

  static void edit(const fs::path& path, const std::function<void(std::string&)>& change) {
    std::string bytes;
    {
      std::ifstream in(path, std::ios::binary);
      bytes.assign(std::istreambuf_iterator<char>(in), {});
    }
    change(bytes);
    std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<long>(bytes.size()));
  }

  const tests::ScratchFolder scratch_;
  const fs::path folder_ = scratch_ / "cache";  // which the cache makes
  tests::ScopedVariable cache_{"BERTCL_CACHE"};
  tests::ScopedVariable debug_{"BERTCL_CACHE_DEBUG", "1"};
  tests::ScopedVariable kernels_{"BERTCL_KERNELS"};
};

TEST_F(ProgramCacheTest, ColdStoresAndWarmHits) {
  const auto cold = run(11);
  EXPECT_EQ(cold.first, 11);
  EXPECT_THAT(cold.second, HasSubstr("miss, no file"));
  EXPECT_THAT(cold.second, HasSubstr("stored"));
  ASSERT_EQ(files().size(), 1u);
  EXPECT_EQ(files()[0].extension(), ".clbin");
  EXPECT_EQ(files()[0].stem().string().size(), 64u);

  const auto warm = run(11);
  EXPECT_EQ(warm.first, 11);
  EXPECT_THAT(warm.second, HasSubstr("hit"));
  EXPECT_EQ(files().size(), 1u);
}

// PoCL would compile it for work-groups of any size, which takes seconds for a large one.
TEST_F(ProgramCacheTest, WorkGroupsWithBarriersAreNotStoredUnderPocl) {
  const std::string source =
      "__kernel void f(__global int* out) { out[0] = 18; barrier(CLK_GLOBAL_MEM_FENCE); }";
  const bool is_pocl = select_device("cpu").platform == "Portable Computing Language";
  for (int round = 0; round < 2; ++round) {
    ::testing::internal::CaptureStderr();
    {
      auto context = Context::create("cpu");
      Buffer out = context->allocate(sizeof(int));
      Kernel kernel =
          context->kernel_from_source("with_barrier", source, "f", {}, {.has_barriers = true});
      kernel.args(out);
      context->queue().launch(kernel, {4, 1, 1}, {4, 1, 1}, "with_barrier");
      EXPECT_EQ(out.download<int>()[0], 18);
    }
    const std::string messages = ::testing::internal::GetCapturedStderr();
    if (is_pocl) {
      EXPECT_THAT(messages, HasSubstr("not stored, its binary for any work-group"));
    }
    EXPECT_EQ(files().size(), is_pocl ? 0u : 1u);
  }
}

TEST_F(ProgramCacheTest, EveryDamageMeansRebuild) {
  run(12);
  ASSERT_EQ(files().size(), 1u);
  const fs::path file = files()[0];
  const struct {
    const char* name;
    const char* message;
    std::function<void(std::string&)> change;
  } damages[] = {
      {"empty", "shorter than its header", [](std::string& bytes) { bytes.clear(); }},
      {"half a header", "shorter than its header", [](std::string& bytes) { bytes.resize(20); }},
      {"truncated", "length", [](std::string& bytes) { bytes.resize(bytes.size() / 2); }},
      {"one byte more", "length", [](std::string& bytes) { bytes += 'x'; }},
      {"flipped magic", "another format", [](std::string& bytes) { bytes[0] ^= 1; }},
      {"flipped format", "another format", [](std::string& bytes) { bytes[8] ^= 1; }},
      {"flipped length", "length", [](std::string& bytes) { bytes[16] ^= 1; }},
      {"flipped length, high", "length", [](std::string& bytes) { bytes[23] ^= 0x40; }},
      {"flipped checksum", "checksum", [](std::string& bytes) { bytes[24] ^= 1; }},
      {"flipped payload", "checksum", [](std::string& bytes) { bytes[bytes.size() / 2] ^= 1; }},
      {"flipped last byte", "checksum", [](std::string& bytes) { bytes.back() ^= 1; }},
  };
  for (const auto& damage : damages) {
    SCOPED_TRACE(damage.name);
    edit(file, damage.change);
    const auto repaired = run(12);
    EXPECT_EQ(repaired.first, 12);
    EXPECT_THAT(repaired.second, HasSubstr(damage.message));
    EXPECT_THAT(repaired.second, HasSubstr("stored"));
    EXPECT_EQ(files().size(), 1u);
  }
  EXPECT_THAT(run(12).second, HasSubstr("hit"));
}

// A file whose checksum fits but whose payload is not a binary: the driver refuses it.
TEST_F(ProgramCacheTest, BinaryRefusedByTheDriverMeansRebuild) {
  run(13);
  ASSERT_EQ(files().size(), 1u);
  const std::string key = files()[0].stem().string();
  const ProgramCache cache(select_device("cpu"));
  const std::vector<std::byte> nonsense(1000, std::byte{0x5A});
  cache.store(key, "nonsense", nonsense);
  const auto repaired = run(13);
  EXPECT_EQ(repaired.first, 13);
  EXPECT_THAT(repaired.second, HasSubstr("rejected by the driver"));
  EXPECT_THAT(run(13).second, HasSubstr("hit"));
}

TEST_F(ProgramCacheTest, AFileOfAnotherProgramMeansRebuild) {
  run(31);
  const fs::path other = files().at(0);
  const fs::path kept = scratch_ / "kept";
  fs::rename(other, kept);
  run(32);
  fs::copy_file(kept, files().at(0), fs::copy_options::overwrite_existing);
  const auto repaired = run(32);
  EXPECT_EQ(repaired.first, 32);
  EXPECT_THAT(repaired.second, HasSubstr("checksum"));
  EXPECT_THAT(run(32).second, HasSubstr("hit"));
}

// As of a driver that gave less than it was asked for.
TEST_F(ProgramCacheTest, ABinaryThatLacksAKernelMeansRebuild) {
  const auto add = [&](const std::string& name) {
    const std::string source = "__kernel void " + name + "(__global int* out) { out[0] += 5; }";
    ::testing::internal::CaptureStderr();
    int result = 0;
    {
      auto context = Context::create("cpu");
      Buffer out = context->allocate(sizeof(int));
      out.fill(0);
      const auto launch = [&](Kernel kernel) {
        kernel.args(out);
        context->queue().launch(kernel, {1, 1, 1}, {1, 1, 1}, "cached");
      };
      const Kernel first = context->kernel_from_source("cached", source, name);
      const Kernel early = first.duplicate();
      launch(first);
      launch(early);
      launch(first.duplicate());
      result = out.download<int>()[0];
    }
    return std::pair(result, ::testing::internal::GetCapturedStderr());
  };
  const ProgramCache cache(select_device("cpu"));
  add("g");
  const fs::path of_g = files().at(0);
  const auto binary = cache.load(of_g.stem().string(), "g");
  ASSERT_TRUE(binary);
  fs::remove(of_g);
  add("h");
  cache.store(files().at(0).stem().string(), "h", *binary);
  const auto repaired = add("h");
  EXPECT_EQ(repaired.first, 15);
  const size_t told = repaired.second.find("its binary lacks a kernel");
  EXPECT_NE(told, std::string::npos);
  EXPECT_EQ(repaired.second.find("its binary lacks a kernel", told + 1), std::string::npos);
  const auto warm = add("h");
  EXPECT_EQ(warm.first, 15);
  EXPECT_THAT(warm.second, Not(HasSubstr("lacks")));
}

TEST_F(ProgramCacheTest, WhatKilledWritersHaveLeftIsRemoved) {
  run(33);
  const std::string key(64, 'a');
  const auto touch = [&](const std::string& name, int hours) {
    std::ofstream(folder_ / name) << "x";
    fs::last_write_time(folder_ / name,
                        fs::file_time_type::clock::now() - std::chrono::hours(hours));
  };
  touch(key + ".123.0.tmp", 2);
  touch(key + ".124.0.tmp", 0);  // which another process may be writing
  touch(key + ".clbin", 2);
  touch("notes.tmp", 2);
  touch(key.substr(1) + ".123.0.tmp", 2);
  run(34);
  EXPECT_FALSE(fs::exists(folder_ / (key + ".123.0.tmp")));
  EXPECT_EQ(files().size(), 6u);
}

TEST_F(ProgramCacheTest, ReadOnlyFolderStoresNothing) {
  fs::create_directories(folder_);
  fs::permissions(folder_, fs::perms::owner_read | fs::perms::owner_exec);
  if (access(folder_.c_str(), W_OK) == 0) {
    // The superuser writes everywhere: a folder below a file cannot be made by anybody.
    std::ofstream(folder_ / "file") << "x";
    cache_.set((folder_ / "file" / "cache").string());
  }
  const auto result = run(14);
  EXPECT_EQ(result.first, 14);
  EXPECT_THAT(result.second, HasSubstr("not stored"));
}

TEST_F(ProgramCacheTest, OffMeansNoFile) {
  cache_.set("off");
  const auto result = run(15);
  EXPECT_EQ(result.first, 15);
  EXPECT_THAT(result.second, Not(HasSubstr("program cache")));
  EXPECT_TRUE(files().empty());
}

TEST_F(ProgramCacheTest, ChangedOptionIsAnotherProgram) {
  EXPECT_EQ(run(16).first, 16);
  EXPECT_EQ(run(17).first, 17);
  EXPECT_EQ(files().size(), 2u);
  EXPECT_EQ(run(16).first, 16);
}

TEST_F(ProgramCacheTest, ChangedIncludeIsAnotherProgram) {
  const fs::path sources = folder_ / "sources";
  fs::create_directories(sources);
  kernels_.set(sources.string());
  std::ofstream(sources / "changing.cl")
      << "#include \"value.clh\"\n#include \"value.clh\"\n"
      << "__kernel void f(__global int* out) { out[0] = value(); }\n";
  for (int value : {21, 22}) {
    std::ofstream(sources / "value.clh") << "int value() { return " << value << "; }\n";
    auto context = Context::create("cpu");
    Buffer out = context->allocate(sizeof(int));
    Kernel kernel = context->kernel("changing", "f");
    kernel.args(out);
    context->queue().launch(kernel, {1, 1, 1}, {1, 1, 1}, "changing");
    EXPECT_EQ(out.download<int>()[0], value);
  }
}

TEST_F(ProgramCacheTest, SourcesAreNotLookedForWhereThereIsNoFolder) {
  std::ofstream(scratch_ / "file") << "x";
  for (const fs::path& folder : {scratch_ / "absent", scratch_ / "file"}) {
    kernels_.set(folder.string());
    EXPECT_ERROR(HasSubstr("BERTCL_KERNELS names '" + folder.string() + "', which is not a folder"),
                 Context::create("cpu"));
  }
}

TEST_F(ProgramCacheTest, BuildLogNamesTheIncludedFileAndLine) {
  const fs::path sources = folder_ / "sources";
  fs::create_directories(sources);
  kernels_.set(sources.string());
  std::ofstream(sources / "outer.cl") << "// a line\n#include \"inner.clh\"\n"
                                      << "__kernel void f() {}\n";
  std::ofstream(sources / "inner.clh") << "// a line\n// a line\nint broken() { return wrong; }\n";
  auto context = Context::create("cpu");
  EXPECT_ERROR(HasSubstr("inner.clh:3"), context->kernel("outer", "f"));
  std::ofstream(sources / "outer.cl") << "#include \"absent.clh\"\n";
  EXPECT_ERROR(AllOf(HasSubstr("absent.clh"), HasSubstr("outer.cl")),
               Context::create("cpu")->kernel("outer", "f"));
}

TEST_F(ProgramCacheTest, KeysDifferInEachPart) {
  DeviceInfo device = select_device("cpu");
  const ProgramCache cache(device);
  const std::string key = cache.key("source", "options");
  EXPECT_EQ(key, cache.key("source", "options"));
  EXPECT_NE(key, cache.key("sourceo", "ptions"));
  EXPECT_NE(key, cache.key("source", "options "));
  for (std::string DeviceInfo::*field :
       {&DeviceInfo::name, &DeviceInfo::driver, &DeviceInfo::version, &DeviceInfo::platform,
        &DeviceInfo::platform_version, &DeviceInfo::type}) {
    DeviceInfo other = device;
    other.*field += "2";
    EXPECT_NE(key, ProgramCache(other).key("source", "options"));
  }
}

// Writers and readers of one key at once: a reader sees nothing or a whole payload.
TEST_F(ProgramCacheTest, ManyProcessesShareOneFolder) {
  debug_.set(std::nullopt);
  const DeviceInfo device = select_device("cpu");
  std::vector<pid_t> children;
  for (int child = 0; child < 4; ++child) {
    const pid_t pid = fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) {
      const ProgramCache cache(device);
      bool whole = true;
      for (int round = 0; round < 200; ++round) {
        const std::vector<std::byte> payload(static_cast<size_t>(1000 * (child + 1) + round),
                                             static_cast<std::byte>(child));
        cache.store("shared", "shared", payload);
        const auto seen = cache.load("shared", "shared");
        whole = whole && seen.has_value();  // stored at least once, by this process
        if (seen) {
          const auto first = seen->front();
          whole = whole && std::all_of(seen->begin(), seen->end(),
                                       [&](std::byte byte) { return byte == first; });
          whole = whole && seen->size() / 1000 == static_cast<size_t>(first) + 1;
        }
      }
      _exit(whole ? 0 : 1);
    }
    children.push_back(pid);
  }
  for (pid_t pid : children) {
    int status = -1;
    waitpid(pid, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  ASSERT_EQ(files().size(), 1u);  // no temporary file is left
  EXPECT_TRUE(ProgramCache(device).load("shared", "shared").has_value());
}

// Two processes build the same program into an empty folder at once.
TEST_F(ProgramCacheTest, TwoProcessesBuildAtOnce) {
  // The profile test has a context of its own, which stores its programs when it ends.
  const std::string one = "'" + fs::read_symlink("/proc/self/exe").string() +
                          "' --gtest_filter=Profile.CountsLaunchesByLabelAndKernel >/dev/null 2>&1";
  const std::string both = one + " & first=$!; " + one + "; second=$?; wait $first && exit $second";
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(std::system(both.c_str()), 0);
    ASSERT_EQ(files().size(), 1u);
  }
  EXPECT_TRUE(ProgramCache(select_device("cpu")).load(files()[0].stem().string(), "add"));
}

TEST_F(ProgramCacheTest, ARelativePathOfXdgIsIgnored) {
  cache_.set("");
  tests::ScopedVariable base("XDG_CACHE_HOME"), home("HOME");
  home.set((folder_ / "home").string());
  base.set("relative");
  run(1);
  EXPECT_FALSE(fs::exists("relative"));
  EXPECT_TRUE(fs::exists(folder_ / "home" / ".cache" / "bertcl"));
  base.set((folder_ / "xdg").string());
  run(2);
  EXPECT_TRUE(fs::exists(folder_ / "xdg" / "bertcl"));
}

}  // namespace
}  // namespace bertcl::opencl
