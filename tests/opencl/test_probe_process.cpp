// SPDX-License-Identifier: Apache-2.0
// Probes in a process of their own: what its end means for this one.
#include <filesystem>
#include <string>

#include "opencl/context.hpp"
#include "opencl/device/capabilities.hpp"
#include "opencl/probe/probe.hpp"
#include "tests/support/environment.hpp"
#include "tests/support/matchers.hpp"
#include "tests/support/scratch_folder.hpp"

namespace bertcl::opencl {
namespace {

namespace fs = std::filesystem;

/// In place of bertcl-probe: a shell script that knows what the real one finds (`found`), and does
/// `deed` where a probe of that name is not among the skipped ones, its arguments from the third
/// on.
class ProbeProcess : public testing::Test {
 protected:
  void SetUp() override {
    const DeviceInfo device = Context::create("cpu")->info();
    const ChildProbes real = probe_in_child(find_probe_program(), device);
    ASSERT_TRUE(real.found) << real.failure;
    real_ = *real.found;
    folder_.write("found", to_text(real_));
    cache_.set((folder_ / "cache").string());
  }

  void replace_program(const std::string& probe, const std::string& deed) {
    const fs::path script = folder_.write(
        "probe", "#!/bin/sh\necho run >>" + (folder_ / "runs").string() +
                     "\ncase \" $* \" in *\" " + probe + " \"*) ;; *)\n  echo 'begin " + probe +
                     "' >&3\n  " + deed + " ;;\nesac\necho found >&3\ncat " +
                     (folder_ / "found").string() + " >&3\n");
    fs::permissions(script, fs::perms::owner_all);
    program_.set(script.string());
  }
  /// Of a new context, as a new process would find them.
  static Capabilities find() { return Context::create("cpu")->capabilities(); }
  std::size_t runs() const {
    return fs::exists(folder_ / "runs") ? fs::file_size(folder_ / "runs") / 4 : 0;
  }

  tests::ScratchFolder folder_;
  tests::ScopedVariable disable_{"BERTCL_DISABLE"}, cache_{"BERTCL_CACHE", "off"},
      program_{"BERTCL_PROBE"};
  Capabilities real_;
};

// The script leaves the flag as it was found: what it tells after the crash is not asked here.
TEST_F(ProbeProcess, AProbeThatCrashesIsTriedNoMore) {
  replace_program("persistent_kernel", "kill -ABRT $$");
  real_.persistent_kernel = false;
  real_.notes["persistent_kernel"] = "skipped";
  folder_.write("found", to_text(real_));
  const Capabilities found = find();
  EXPECT_EQ(found.list(), real_.list());
  EXPECT_EQ(found.notes.at("persistent_kernel"),
            "the probe was stopped: the driver crashed (SIGABRT)");
  EXPECT_EQ(runs(), 2u);
  EXPECT_EQ(find().notes, found.notes);
  EXPECT_EQ(runs(), 2u) << "it is remembered";
}

TEST_F(ProbeProcess, ADriverThatExitsIsNamed) {
  replace_program("fp64", "exit 7");
  real_.fp64 = false;
  real_.notes["fp64"] = "skipped";
  folder_.write("found", to_text(real_));
  EXPECT_THAT(find().notes.at("fp64"), HasSubstr("the driver ended the process with exit code 7"));
}

// By a user, or by a system without memory.
TEST_F(ProbeProcess, AProbeKilledFromOutsideIsTriedByTheNextProcess) {
  replace_program("persistent_kernel", "kill -KILL $$");
  find();
  EXPECT_EQ(runs(), 2u);
  find();
  EXPECT_EQ(runs(), 4u);
}

TEST_F(ProbeProcess, WithoutItOnlyHarmlessProbesRun) {
  for (const char* program : {"off", "/nowhere/bertcl-probe", "/etc/passwd"}) {
    program_.set(program);
    const Capabilities found = find();
    for (const auto& [name, present] : found.list()) {
      if (name == "persistent_kernel" || name == "assembly_binaries" || name == "command_buffer") {
        EXPECT_FALSE(present) << program << ", " << name;
      } else {
        EXPECT_EQ(present, real_.notes.count(name) == 0) << program << ", " << name;
      }
    }
    if (real_.persistent_kernel) {
      EXPECT_THAT(
          found.notes.at("persistent_kernel"),
          HasSubstr("BERTCL_PROBE is '" + std::string(program) + "', which is not a program"));
    }
  }
}

TEST_F(ProbeProcess, AProgramThatEndsBeforeTheFirstProbeCountsForNothing) {
  replace_program("x86", "");
  folder_.write("found", "no line of a result");
  const Capabilities found = find();
  EXPECT_EQ(found.avx2, real_.avx2);
  EXPECT_FALSE(found.persistent_kernel);
  find();
  EXPECT_GE(runs(), 2u) << "it is not remembered";
}

}  // namespace
}  // namespace bertcl::opencl
