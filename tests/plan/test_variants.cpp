// SPDX-License-Identifier: Apache-2.0
// Which variant of an op is taken, and what the report says of those above it.
#include "plan/variants.hpp"

#include <functional>
#include <set>
#include <string>
#include <utility>

#include "plan/gemm_variants.hpp"
#include "tests/support/matchers.hpp"
#include "tests/support/parse_graph.hpp"

namespace bertcl::plan {
namespace {

struct Variant {
  std::string name;
  kernels::Refusal refusal = {};
};

const kernels::Refusal no_wings{"the device has no wings"}, for_gpus{"GPUs only", true};

const std::vector<Variant> all_variants{{"flying", no_wings}, {"running"}, {"ref"}};

struct Variants : testing::Test {
  Choice<Variant> choose_without(std::set<std::string, std::less<>> disabled,
                                 const std::vector<Variant>& variants = all_variants) {
    Plan plan;
    Options options;
    options.disabled = std::move(disabled);
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
  const auto choice = choose_without({});
  EXPECT_EQ(choice.variant->name, "running");
  EXPECT_EQ(choice.why_not_faster, "flying: the device has no wings");
}

TEST_F(Variants, OneThatIsSwitchedOffIsPassedOver) {
  const auto choice = choose_without({"running"});
  EXPECT_EQ(choice.variant->name, "ref");
  EXPECT_EQ(choice.why_not_faster, "flying: the device has no wings; running: disabled");
}

TEST_F(Variants, NamesAreComparedWhole) {
  EXPECT_EQ(choose_without({"run"}).variant->name, "running");
  EXPECT_EQ(choose_without({"ref", "flying"}).variant->name, "running");
}

TEST_F(Variants, TheFastestHasNoReason) {
  EXPECT_EQ(choose_without({}, {{"running"}, {"ref"}}).why_not_faster, "");
}

TEST_F(Variants, WhatIsMadeForAnotherKindOfDeviceIsNoReason) {
  EXPECT_EQ(choose_without({}, {{"mma", for_gpus}, {"flying", no_wings}, {"ref"}}).why_not_faster,
            "flying: the device has no wings");
  EXPECT_ERROR(HasSubstr("mma: GPUs only; ref: disabled"),
               choose_without({"ref"}, {{"mma", for_gpus}, {"ref"}}));
}

TEST_F(Variants, TheReferenceIsNotTakenAgainstTheWishOfTheCaller) {
  EXPECT_ERROR(
      AllOf(HasSubstr("Relu (result 'y')"),
            HasSubstr("flying: the device has no wings; running: disabled; ref: disabled")),
      choose_without({"running", "ref"}));
}

// 12 tiles of 128 x 128 for each 128 rows of a GEMM with 1536 columns.
TEST(Alternatives, OfSmallerTilesWhereGroupsWouldLeaveUnitsIdle) {
  const auto rows = ir::Dim::symbol("rows");
  Step step;
  step.variant = "128x128",
  step.global = {SizeExpr{ir::Dim(256)}, SizeExpr{rows, 128}, SizeExpr{ir::Dim(12)}};
  step.local = {256, 1, 1};
  step.alternatives.resize(1);
  step.alternatives[0].variant = "32x64", step.alternatives[0].local = {64, 1, 1};
  const auto variant_for = [&](const opencl::DeviceInfo& device, std::int64_t m) {
    return chosen_kernel(step, {{"rows", m}}, device).variant;
  };
  opencl::DeviceInfo device;
  device.type = "gpu", device.vendor = "a vendor", device.compute_units = 108;
  EXPECT_EQ(variant_for(device, 8 * 128), "32x64");
  EXPECT_EQ(variant_for(device, 9 * 128), "128x128");
  // 512 EUs: a group has 32 threads of 8 lanes, and so occupies four of them.
  device.vendor = "Intel(R) Corporation", device.compute_units = 512;
  device.min_subgroup_width = 8;
  EXPECT_EQ(device.units_of_group(256), 4u);
  EXPECT_EQ(variant_for(device, 10 * 128), "32x64");
  EXPECT_EQ(variant_for(device, 11 * 128), "128x128");
  device.min_subgroup_width = 16;
  EXPECT_EQ(device.units_of_group(256), 2u);
  EXPECT_EQ(device.units_of_group(64), 1u);
  EXPECT_EQ(device.units_of_group(257), 3u);
  EXPECT_EQ(variant_for(device, 11 * 128), "32x64");
  EXPECT_EQ(variant_for(device, 22 * 128), "128x128");
  device.type = "cpu";
  EXPECT_EQ(device.units_of_group(256), 1u);
}

// NVIDIA takes 65,535 groups along another axis than the first; the others are short.
TEST(Grids, RowsOfAGemmAreGroupsOfTheFirstAxis) {
  const ir::Bindings sizes{{"rows", 10'000'000}};
  int of_groups = 0;
  for (const auto& variants : {kernels::gemm_s8_variants(), kernels::gemm_f32_variants()})
    for (const kernels::GemmVariant& variant : variants) {
      if (variant.items == 1) continue;
      ++of_groups;
      const auto grid = grid_of(variant, ir::Dim::symbol("rows"), 64);
      EXPECT_EQ(grid[0].evaluate(sizes), 78'125 * variant.items) << variant.name;
      EXPECT_EQ(grid[1].evaluate(sizes), 1) << variant.name;
      EXPECT_EQ(grid[2].evaluate(sizes), 1) << variant.name;
    }
  EXPECT_GE(of_groups, 7);
}

}  // namespace
}  // namespace bertcl::plan
