// SPDX-License-Identifier: Apache-2.0
// Which variant of an op is taken, and what the report says of those above it.
#include "plan/variants.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/text.hpp"

namespace bertcl::plan {
namespace {

using testing::HasSubstr;

struct Variant {
  std::string name;
  kernels::Refusal refusal = {};
};

const kernels::Refusal no_wings{"the device has no wings"}, for_gpus{"GPUs only", true};

const std::vector<Variant> all_variants{{"flying", no_wings}, {"running"}, {"ref"}};

struct Variants : testing::Test {
  Choice<Variant> choose_without(const std::string& disabled,
                                 const std::vector<Variant>& variants = all_variants) {
    Plan plan;
    Options options;
    options.disabled = disabled;
    Builder builder(plan, options);
    return choose(builder, *graph.nodes().front(), variants,
                  [](const Variant& variant) { return variant.refusal; });
  }

  ir::Graph graph = ir::parse(R"(graph g(%x: f32[4]) {
  %y: f32[4] = Relu(%x)
  return %y as y
})");
};

TEST_F(Variants, TheFirstThatAppliesIsTaken) {
  const auto choice = choose_without("");
  EXPECT_EQ(choice.variant->name, "running");
  EXPECT_EQ(choice.why_not_faster, "flying: the device has no wings");
}

TEST_F(Variants, OneThatIsSwitchedOffIsPassedOver) {
  const auto choice = choose_without("running");
  EXPECT_EQ(choice.variant->name, "ref");
  EXPECT_EQ(choice.why_not_faster, "flying: the device has no wings; running: disabled");
}

TEST_F(Variants, NamesAreComparedWhole) {
  EXPECT_EQ(choose_without("run").variant->name, "running");
  EXPECT_EQ(choose_without("ref,flying").variant->name, "running");
}

TEST_F(Variants, TheFastestHasNoReason) {
  EXPECT_EQ(choose_without("", {{"running"}, {"ref"}}).why_not_faster, "");
}

TEST_F(Variants, WhatIsMadeForAnotherKindOfDeviceIsNoReason) {
  EXPECT_EQ(choose_without("", {{"mma", for_gpus}, {"flying", no_wings}, {"ref"}}).why_not_faster,
            "flying: the device has no wings");
  try {
    choose_without("ref", {{"mma", for_gpus}, {"ref"}});
    FAIL() << "a variant for another device was taken";
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("mma: GPUs only; ref: disabled"));
  }
}

TEST_F(Variants, TheReferenceIsNotTakenAgainstTheWishOfTheCaller) {
  try {
    choose_without("running,ref");
    FAIL() << "a variant that is disabled was taken";
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("Relu (result 'y')"));
    EXPECT_THAT(e.what(),
                HasSubstr("flying: the device has no wings; running: disabled; ref: disabled"));
  }
}

}  // namespace
}  // namespace bertcl::plan
