// SPDX-License-Identifier: Apache-2.0
// Probes: what they find agrees with the CPU, what is hidden is absent.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "bertcl/error.hpp"
#include "opencl/capabilities.hpp"
#include "opencl/context.hpp"
#include "opencl/cpu_features.hpp"

namespace bertcl::opencl {
namespace {

using ::testing::HasSubstr;

class Probes : public ::testing::Test {
 protected:
  void TearDown() override { unsetenv("BERTCL_DISABLE"); }
};

TEST_F(Probes, EveryAbsentCapabilityHasANote) {
  auto context = Context::create("cpu");
  const Capabilities& found = context->capabilities();
  EXPECT_EQ(found.list().size(), 14u);
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
}

TEST_F(Probes, HiddenCapabilitiesAreAbsent) {
  setenv("BERTCL_DISABLE", "avx512_vnni,avx2,fp64", 1);
  auto context = Context::create("cpu");
  const Capabilities& found = context->capabilities();
  EXPECT_FALSE(found.avx512_vnni);
  EXPECT_FALSE(found.avx2);
  EXPECT_FALSE(found.fp64);
  unsetenv("BERTCL_DISABLE");
  auto open = Context::create("cpu");
  for (const auto& [name, present] : open->capabilities().list()) {
    if (present && (name == "avx512_vnni" || name == "avx2" || name == "fp64")) {
      EXPECT_EQ(found.notes.at(name), "hidden by BERTCL_DISABLE");
    }
  }
}

TEST_F(Probes, UnknownNameToHideIsAnError) {
  setenv("BERTCL_DISABLE", "avx1024", 1);
  auto context = Context::create("cpu");
  try {
    context->capabilities();
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("avx1024"));
    EXPECT_THAT(error.what(), HasSubstr("avx512_vnni"));
  }
}

}  // namespace
}  // namespace bertcl::opencl
