// SPDX-License-Identifier: Apache-2.0
// Probes: what they find agrees with the CPU, what is disabled is absent.
#include <string>

#include "opencl/capabilities.hpp"
#include "opencl/context.hpp"
#include "opencl/cpu_features.hpp"
#include "tests/support/environment.hpp"
#include "tests/support/matchers.hpp"
#include "tests/support/scratch_folder.hpp"

namespace bertcl::opencl {
namespace {

class Probes : public ::testing::Test {
 protected:
  tests::ScopedVariable disable_{"BERTCL_DISABLE"};
};

TEST_F(Probes, EveryAbsentCapabilityHasANote) {
  auto context = Context::create("cpu");
  const Capabilities& found = context->capabilities();
  EXPECT_EQ(found.list().size(), 29u);
  for (const auto& [name, present] : found.list())
    EXPECT_EQ(found.notes.count(name), present ? 0u : 1u) << name;
}

TEST_F(Probes, NeverClaimInstructionsThatTheCpuLacks) {
  auto context = Context::create("cpu");
  const Capabilities& found = context->capabilities();
  const CpuFeatures cpu = cpu_features();
  EXPECT_LE(found.avx2, cpu.avx2);
  EXPECT_LE(found.avx512, cpu.avx512);
  EXPECT_LE(found.avx512_vnni, cpu.avx512_vnni);
  EXPECT_LE(found.avx_vnni, cpu.avx_vnni);
  EXPECT_LE(found.avx512_bf16, cpu.avx512_bf16);
  EXPECT_LE(found.arm_sdot, cpu.arm_sdot);
}

TEST_F(Probes, FindTheInstructionsOfTheCpuOnPocl) {
  auto context = Context::create("cpu");
  if (context->info().platform != "Portable Computing Language") GTEST_SKIP() << "not PoCL";
  const Capabilities& found = context->capabilities();
  const CpuFeatures cpu = cpu_features();
  EXPECT_TRUE(found.in_process_cpu);
  EXPECT_EQ(found.avx2, cpu.avx2);
  EXPECT_EQ(found.avx512, cpu.avx512);
  EXPECT_EQ(found.avx512_vnni, cpu.avx512_vnni);
  EXPECT_EQ(found.avx_vnni, cpu.avx_vnni);
  EXPECT_EQ(found.avx512_bf16, cpu.avx512_bf16);
  EXPECT_EQ(found.arm_sdot, cpu.arm_sdot);
}

TEST_F(Probes, DisabledCapabilitiesAreAbsent) {
  disable_.set("avx512_vnni,avx2,fp64");
  auto context = Context::create("cpu");
  const Capabilities& found = context->capabilities();
  EXPECT_FALSE(found.avx512_vnni);
  EXPECT_FALSE(found.avx2);
  EXPECT_FALSE(found.fp64);
  disable_.set(std::nullopt);
  auto open = Context::create("cpu");
  for (const auto& [name, present] : open->capabilities().list()) {
    if (present && (name == "avx512_vnni" || name == "avx2" || name == "fp64")) {
      EXPECT_EQ(found.notes.at(name), "disabled by BERTCL_DISABLE");
    }
  }
}

TEST_F(Probes, UnknownNameToHideIsAnError) {
  disable_.set("avx1024");
  EXPECT_ERROR(AllOf(HasSubstr("avx1024"), HasSubstr("avx512_vnni")), Context::create("cpu"));
}

// What is stored from one process and read by the next is what the probes found.
TEST_F(Probes, AreReadBackFromTheCache) {
  tests::ScopedVariable cache("BERTCL_CACHE", "off");
  const Capabilities probed = Context::create("cpu")->capabilities();
  const tests::ScratchFolder folder;
  cache.set((folder / "cache").string());
  for (const char* round : {"probed and stored", "read back"}) {
    const Capabilities found = Context::create("cpu")->capabilities();
    EXPECT_EQ(found.list(), probed.list()) << round;
    EXPECT_EQ(found.notes, probed.notes) << round;
  }
}

}  // namespace
}  // namespace bertcl::opencl
