// SPDX-License-Identifier: Apache-2.0
// What is known of the embedded sources.
#include "opencl/program/sources.hpp"

#include <filesystem>
#include <regex>
#include <string>
#include <tuple>
#include <vector>

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

// Of the final sources: a word in an included file would offer kernels of every program.
TEST(Sources, OfferTheirMergeableKernels) {
  static const std::regex offered(R"(\n(MERGEABLE|ALWAYS_MERGED)\((\w+),)");
  using Offer = std::tuple<std::string, std::string, bool>;
  std::vector<Offer> in_sources, listed;
  for (const std::string& program : program_names()) {
    const std::string text = final_source(program).text;
    for (std::sregex_iterator it(text.begin(), text.end(), offered), end; it != end; ++it)
      in_sources.emplace_back(program, (*it)[2], (*it)[1] == "ALWAYS_MERGED");
  }
  for (const MergeableKernel& m : mergeable_kernels())
    listed.emplace_back(m.program, m.kernel, m.always);
  EXPECT_THAT(listed, UnorderedElementsAreArray(in_sources));
  EXPECT_THAT(listed, IsSupersetOf({Offer{"gemm_s8_portable", "gemm_s8", false},
                                    Offer{"copy_strided", "copy_strided_4", true}}));
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
