// SPDX-License-Identifier: Apache-2.0
// What is known of the embedded sources.
#include "opencl/program/sources.hpp"

#include <filesystem>

#include "opencl/program/ptx.hpp"
#include "tests/support/environment.hpp"
#include "tests/support/matchers.hpp"
#include "tests/support/scratch_folder.hpp"

namespace bertcl::opencl {
namespace {

TEST(Sources, TraitsAreThoseOfTheText) {
  for (const std::string& program : program_names()) {
    const FinalSource source = final_source(program);
    const auto has = [&](std::string_view word) {
      return source.text.find(word) != std::string::npos;
    };
    EXPECT_EQ(source.traits.has_assembly, has("__asm__")) << program;
    EXPECT_EQ(source.traits.has_barriers, has("barrier(")) << program;
    EXPECT_EQ(source.traits.has_sm_90a, has(kSm90aComment)) << program;
  }
  EXPECT_EQ(final_source("gemm_s8_ref").traits, SourceTraits());
  EXPECT_EQ(final_source("gemm_s8_x86_vnni").traits, SourceTraits{.has_assembly = true});
  EXPECT_EQ(final_source("gemm_f32_group").traits, SourceTraits{.has_barriers = true});
  EXPECT_EQ(final_source("gemm_s8_wgmma").traits, (SourceTraits{true, true, true}));
}

TEST(Sources, OfAFolderHaveTheTraitsOfTheirText) {
  const tests::ScratchFolder folder;
  const tests::ScopedVariable kernels("BERTCL_KERNELS", folder.path().string());
  std::filesystem::create_directory(folder / "gemm");
  folder.write("gemm/gemm_s8_wgmma.cl", "// mine\n");
  folder.write("new.cl", "barrier(0); __asm__(\"\"); /*sm_90a: wgmma*/\n");
  EXPECT_EQ(final_source("gemm_s8_wgmma").text, "#line 1 \"gemm/gemm_s8_wgmma.cl\"\n// mine\n");
  EXPECT_EQ(final_source("gemm_s8_wgmma").traits, SourceTraits());
  EXPECT_EQ(final_source("new").traits, (SourceTraits{true, true, true}));
}

}  // namespace
}  // namespace bertcl::opencl
