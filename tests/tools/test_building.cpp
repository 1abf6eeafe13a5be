// SPDX-License-Identifier: Apache-2.0
// What a user sees while kernels are built for the first time. The driver's cache is empty, too:
// with what it holds, builds may end before the line is due. Without a cache of programs none is
// made into a binary at the end, for which the driver compiles it once more.
#include "program_runner.hpp"
#include "tests/support/matchers.hpp"
#include "tools/options/model_options.hpp"

namespace bertcl::tests {
namespace {

using BuildingTest = FolderTest;

TEST_F(BuildingTest, IsShownOnATerminalAndThenWipedAway) {
  const ProgramResult result = succeeded(
      run_bertcl_on_terminal({"inspect", kModel, "--seq", "16"},
                             {{"BERTCL_CACHE", "off"}, {"POCL_CACHE_DIR", path("pocl")}}));
  EXPECT_THAT(result.err, ContainsRegex("building kernels .*[1-9]/[0-9]+ programs"));
  EXPECT_TRUE(result.err.ends_with("\r\033[K")) << "the line is left: " << result.err;
  EXPECT_THAT(result.err, Not(HasSubstr("warning"))) << "of the compiler";
}

TEST_F(BuildingTest, IsShownInEachPassOfTheQuantizer) {
  const ProgramResult result = succeeded(
      run_bertcl_on_terminal({"quantize", kModel, "-o", path("int8.onnx"), "--data",
                              source_file("data/calibration.json"), "--samples", "2"},
                             {{"BERTCL_CACHE", "off"}, {"POCL_CACHE_DIR", path("pocl")}}));
  EXPECT_THAT(result.err, ContainsRegex("smooth .*0/2 questions, building kernels"));
  EXPECT_THAT(result.err, ContainsRegex("calibrate .*0/2 questions, building kernels"));
}

TEST_F(BuildingTest, IsToldToACallerWhoAsks) {
  runtime::SessionOptions options;
  std::size_t told = 0, last = 0;
  options.on_program = [&](std::size_t, std::size_t programs) { ++told, last = programs; };
  tools::load_model(kModel, options);
  EXPECT_GT(told, 0u);
  EXPECT_EQ(told, last);
}

}  // namespace
}  // namespace bertcl::tests
