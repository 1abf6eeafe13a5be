// SPDX-License-Identifier: Apache-2.0
// The check of a device at the first load: it runs once, and a kernel that is wrong is refused.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "default_model.hpp"
#include "plan/builder.hpp"
#include "runtime/self_check.hpp"
#include "tests/support/environment.hpp"
#include "tests/support/failing_opencl.hpp"
#include "tests/support/files.hpp"
#include "tests/support/matchers.hpp"
#include "tests/support/parse_graph.hpp"
#include "tests/support/scratch_folder.hpp"

namespace bertcl::runtime {
namespace {

int files_of(const std::filesystem::path& folder) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    count += entry.path().filename().string().starts_with("self-check-");
  return count;
}

/// The programs that other tests have built: what is checked here is neither building nor storing.
void lend_programs(const tests::ScratchFolder& folder) {
  const char* cache = std::getenv("BERTCL_CACHE");
  if (!cache || !std::filesystem::is_directory(cache)) return;
  for (const auto& entry : std::filesystem::directory_iterator(cache))
    if (entry.path().extension() == ".clbin")
      std::filesystem::create_symlink(std::filesystem::absolute(entry.path()),
                                      folder / entry.path().filename().string());
}

/// The kernels of LayerNorm, with results that many times as large.
void write_kernels(const tests::ScratchFolder& folder, const std::string& times) {
  const std::filesystem::path rows = tests::source_file("kernels_cl") / "rows";
  std::filesystem::create_directory(folder / "rows");
  for (const char* name : {"add_norm.cl", "row_norm_group.clh"}) {
    std::ifstream file(rows / name);
    std::string text(std::istreambuf_iterator<char>(file), {});
    const std::size_t factor = text.find("factor = 1.0f / ");
    ASSERT_NE(factor, std::string::npos) << name;
    text.replace(factor, 16, "factor = " + times + " / ");
    folder.write(std::string("rows/") + name, text);
  }
  std::filesystem::copy_file(folder / "rows/add_norm.cl", folder / "add_norm.cl");
}

TEST(SelfCheck, RunsAtTheFirstLoadAndLeavesNothingButItsFile) {
  const tests::ScratchFolder folder;
  lend_programs(folder);
  const tests::ScopedVariable cache("BERTCL_CACHE", folder.path().string());
  for (int load = 0; load < 2; ++load) {
    const Session session = Session::load(model);
    EXPECT_EQ(session.statistics().tokens, 0);
    EXPECT_EQ(session.memory().values, 0);
    EXPECT_EQ(files_of(folder.path()), 1);
  }
}

TEST(SelfCheck, RefusesWrongKernelsAndForgetsThem) {
  const tests::ScratchFolder folder, wrong;
  write_kernels(wrong, "3.0f");
  lend_programs(folder);
  const tests::ScopedVariable cache("BERTCL_CACHE", folder.path().string());
  const tests::ScopedVariable kernels("BERTCL_KERNELS", wrong.path().string());
  for (int load = 0; load < 2; ++load)
    EXPECT_ERROR(AllOf(HasSubstr("computes wrong results: output '"), HasSubstr(model.string()),
                       HasSubstr("BERTCL_SELF_CHECK=off")),
                 Session::load(model));
  EXPECT_EQ(files_of(folder.path()), 0);
  const tests::ScopedVariable off("BERTCL_SELF_CHECK", "off");
  EXPECT_NO_THROW(Session::load(model));
}

TEST(SelfCheck, RunsOnceInAProcessWithoutACache) {
  const tests::ScratchFolder wrong, right;
  write_kernels(wrong, "3.0f");
  write_kernels(right, "1.00f");  // which no other test has loaded
  const tests::ScopedVariable cache("BERTCL_CACHE", "off");
  const auto reads_of_a_load = [] {
    const tests::FailingOpencl none("clEnqueueReadBuffer", 1, 0);
    Session::load(model);
    return tests::opencl_calls("clEnqueueReadBuffer");
  };
  tests::ScopedVariable kernels("BERTCL_KERNELS", wrong.path().string());
  for (int load = 0; load < 2; ++load)
    EXPECT_ERROR(HasSubstr("computes wrong results"), Session::load(model));
  kernels.set(right.path().string());
  const int first = reads_of_a_load(), second = reads_of_a_load();
  EXPECT_GE(first, second + 3) << "two outputs and the flag of ids outside their table";
}

TEST(SelfCheck, IsRememberedForTheOptionsOfPrograms) {
  for (const bool cached : {true, false}) {
    const tests::ScratchFolder folder;
    const tests::ScopedVariable cache("BERTCL_CACHE", cached ? folder.path().string() : "off");
    plan::Plan plan;
    plan.context = opencl::Context::create();
    const auto kernel_for = [&](int items) {
      return plan.context->unbuilt_kernel("add_norm", "add_norm", {{"ITEMS", items}});
    };
    plan::Step& step = plan.steps.emplace_back();
    step.kernel = kernel_for(1);
    EXPECT_TRUE(needs_check(plan));
    remember_check(plan);
    EXPECT_FALSE(needs_check(plan));
    step.kernel = kernel_for(2);
    EXPECT_TRUE(needs_check(plan)) << cached;
    step.kernel = kernel_for(1);
    step.alternatives.emplace_back().kernel = kernel_for(3);
    EXPECT_TRUE(needs_check(plan)) << cached;
    step.alternatives[0].kernel = kernel_for(1);
    EXPECT_FALSE(needs_check(plan)) << cached;
  }
}

TEST(SelfCheck, WhatRoundingLeavesOfZeroIsNoDifference) {
  const auto tensor = [](std::vector<float> values) {
    return ir::Tensor::of<float>({2}, std::move(values));
  };
  EXPECT_LT(relative_difference(tensor({1e-38f, 0}), tensor({0, 0})).value(), 1e-6);
  EXPECT_LT(relative_difference(tensor({3e-8f, 0}), tensor({0, 1e-8f})).value(), 0.1);
  EXPECT_GT(relative_difference(tensor({1e-3f, 0}), tensor({0, 0})).value(), 1);
  EXPECT_NEAR(relative_difference(tensor({3, 5}), tensor({3, 4})).value(), 0.2, 1e-9);
  EXPECT_FALSE(relative_difference(tensor({3, 4}), tensor({3, INFINITY})));
}

bool is_checked(const std::string& text) {
  const ir::Graph graph = ir::parse(text);
  plan::Plan plan = plan::make_plan(graph, opencl::Context::create(), {});
  Arenas arenas;
  Request request(plan, {}, arenas);
  return check_results(graph, plan, request, "g");
}

/// Checks a device that has other rows in the table than the graph for `wrong` of its ids.
bool is_checked_with(const std::set<std::int64_t>& wrong) {
  constexpr std::int64_t kRows = 50;
  const auto graph_of = [](const std::set<std::int64_t>& changed) {
    ir::Graph graph = ir::parse(R"(graph g(%input_ids: i64[batch, seq]) {
  const %table: f32[50, 1] = splat 1
  %y: f32[batch, seq, 1] = Gather(%table, %input_ids)
  return %y as y
})");
    std::vector<float> rows(kRows, 1);
    for (const std::int64_t row : changed) rows[row] = 9;
    graph.find_value("table")->constant = ir::Tensor::of<float>({kRows, 1}, rows);
    return graph;
  };
  const ir::Graph device = graph_of(wrong);
  plan::Plan plan = plan::make_plan(device, opencl::Context::create(), {});
  Arenas arenas;
  Request request(plan, {}, arenas);
  return check_results(graph_of({}), plan, request, "g");
}

// As a tie does, which int8 layers amplify.
TEST(SelfCheck, AnotherSequenceIsTriedWhereOneDiffers) {
  std::set<std::int64_t> all;
  for (std::int64_t row = 0; row < 50; ++row) {
    EXPECT_TRUE(is_checked_with({row})) << row;
    all.insert(row);
  }
  EXPECT_ERROR(HasSubstr("computes wrong results"), is_checked_with(all));
}

// Ids in the place of the mask would divide by 0, or have no root.
TEST(SelfCheck, AMaskNeedsNoName) {
  EXPECT_TRUE(is_checked(R"(graph g(%input.1: i64[batch, seq], %input.2: f32[batch, seq]) {
  const %table: f32[50, 4] = splat 0.5
  const %two: f32[] = 2.0
  %rows: f32[batch, seq, 4] = Gather(%table, %input.1)
  %column: f32[batch, seq, 1] = Unsqueeze(%input.2) {axes = [2]}
  %rest: f32[batch, seq, 1] = Sub(%two, %column)
  %root: f32[batch, seq, 1] = Sqrt(%rest)
  %y: f32[batch, seq, 4] = Mul(%rows, %root)
  return %y as y
})"));
  EXPECT_TRUE(is_checked(R"(graph g(%input.1: i64[batch, seq], %input.2: i64[batch, seq]) {
  const %table: f32[50, 4] = splat 0.5
  const %one: i64[] = 1
  %rows: f32[batch, seq, 4] = Gather(%table, %input.1)
  %keep: bool[batch, seq] = Equal(%input.2, %one)
  %mask: f32[batch, seq] = Cast(%keep) {to = "f32"}
  %column: f32[batch, seq, 1] = Unsqueeze(%mask) {axes = [2]}
  %y: f32[batch, seq, 4] = Div(%rows, %column)
  return %y as y
})"));
}

TEST(SelfCheck, ModelsThatReadNoTokensAreNotChecked) {
  EXPECT_FALSE(is_checked(R"(graph g(%x: f32[n, 3, 3]) {
  %y: f32[n, 3, 3] = Relu(%x)
  return %y as y
})"));
}

}  // namespace
}  // namespace bertcl::runtime
