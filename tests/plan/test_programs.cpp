// SPDX-License-Identifier: Apache-2.0
// Programs of a plan: asked for by all its nodes first, then built, with count and blame.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "bertcl/error.hpp"
#include "ir/text.hpp"
#include "plan/builder.hpp"

namespace bertcl::plan {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr std::string_view kGraph = R"(graph g(%x: f32[batch, 4]) {
  const %w: f32[4, 4] = [1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8]
  const %v: f32[4, 4] = [8, 7, 6, 5, 4, 3, 2, 1, 8, 7, 6, 5, 4, 3, 2, 1]
  %r: f32[batch, 4] = Relu(%x)
  %a: f32[batch, 4] = linear(%r, %w)
  %b: f32[batch, 4] = linear(%a, %v)
  %y: f32[batch, 4] = Sigmoid(%b)
  return %y as y
})";

TEST(Programs, EachIsCountedOnceAndAllAreKnownBeforeTheFirst) {
  std::vector<std::pair<std::size_t, std::size_t>> calls;
  Options options;
  options.on_program = [&](std::size_t built, std::size_t programs) {
    calls.emplace_back(built, programs);
  };
  const auto context = opencl::Context::create("cpu");
  const Plan plan = make_plan(ir::parse(kGraph), context, options);
  std::set<std::string> programs{"pack"};  // of the weights, in no step
  for (const Step& step : plan.steps) programs.insert(step.kernel.program_name());
  ASSERT_EQ(programs.size(), 3u) << "one of products, one for Relu and Sigmoid";
  ASSERT_EQ(calls.size(), programs.size());
  for (std::size_t i = 0; i < calls.size(); ++i)
    EXPECT_EQ(calls[i], std::make_pair(i, programs.size()));
}

TEST(Programs, WhatDoesNotBuildIsToldWithItsNode) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("bertcl_plan_programs_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "elementwise_unary.cl") << "__kernel void unary_f32() { undeclared = 1; }";
  setenv("BERTCL_KERNELS", folder.c_str(), 1);
  std::string message = "no refusal";
  try {
    make_plan(ir::parse(kGraph), opencl::Context::create("cpu"), {});
  } catch (const Error& error) {
    message = error.what();
  }
  unsetenv("BERTCL_KERNELS");
  std::filesystem::remove_all(folder);
  EXPECT_THAT(message, AllOf(testing::StartsWith("Relu (result 'r'): "),
                             HasSubstr("elementwise_unary.cl"), HasSubstr("undeclared")));
}

}  // namespace
}  // namespace bertcl::plan
