// SPDX-License-Identifier: Apache-2.0
// Which implementation of an op is taken, and what the report says of those above it.
#include "plan/ladder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/text.hpp"
#include "plan/requirements.hpp"

namespace bertcl::plan {
namespace {

using testing::HasSubstr;

struct Rung {
  std::string name;
  WhyNot why_not;
};

std::string no_wings(Builder&) { return "the device has no wings"; }

const std::vector<Rung> ladder{{"flying", no_wings}, {"running", always}, {"ref", always}};

struct Ladder : testing::Test {
  Choice<Rung> choose_without(const std::string& disabled,
                              const std::vector<Rung>& rungs = ladder) {
    Plan plan;
    Options options;
    options.disabled = disabled;
    Builder builder(plan, options);
    return choose(builder, *graph.nodes().front(), rungs);
  }

  ir::Graph graph = ir::parse(R"(graph g(%x: f32[4]) {
  %y: f32[4] = Relu(%x)
  return %y as y
})");
};

TEST_F(Ladder, TheFirstThatAppliesIsTaken) {
  const auto choice = choose_without("");
  EXPECT_EQ(choice.rung->name, "running");
  EXPECT_EQ(choice.why_not_faster, "flying: the device has no wings");
}

TEST_F(Ladder, OneThatIsSwitchedOffIsPassedOver) {
  const auto choice = choose_without("running");
  EXPECT_EQ(choice.rung->name, "ref");
  EXPECT_EQ(choice.why_not_faster, "flying: the device has no wings; running: switched off");
}

TEST_F(Ladder, NamesAreComparedWhole) {
  EXPECT_EQ(choose_without("run").rung->name, "running");
  EXPECT_EQ(choose_without("ref,flying").rung->name, "running");
}

TEST_F(Ladder, TheFastestHasNoReason) {
  EXPECT_EQ(choose_without("", {{"running", always}, {"ref", always}}).why_not_faster, "");
}

TEST_F(Ladder, WhatIsMadeForAnotherKindOfDeviceIsNoReason) {
  const WhyNot for_gpus = [](Builder&) { return std::string(kMadeForGpus); };
  EXPECT_EQ(
      choose_without("", {{"mma", for_gpus}, {"flying", no_wings}, {"ref", always}}).why_not_faster,
      "flying: the device has no wings");
  try {
    choose_without("ref", {{"mma", for_gpus}, {"ref", always}});
    FAIL() << "an implementation for another device was taken";
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("mma: made for GPUs; ref: switched off"));
  }
}

TEST_F(Ladder, TheReferenceIsNotTakenAgainstTheWishOfTheCaller) {
  try {
    choose_without("running,ref");
    FAIL() << "an implementation that is switched off was taken";
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("Relu (result 'y')"));
    EXPECT_THAT(e.what(), HasSubstr("flying: the device has no wings; running: switched off; "
                                    "ref: switched off"));
  }
}

}  // namespace
}  // namespace bertcl::plan
