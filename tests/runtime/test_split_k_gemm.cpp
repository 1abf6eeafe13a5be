// SPDX-License-Identifier: Apache-2.0
// int8 GEMMs whose K is divided among work-groups, with a norm after them, on NVIDIA's matrix units
// as tests/support/other_device.cpp and the emulated units pretend them; skipped without the
// former.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "plan/report.hpp"
#include "runtime/session.hpp"
#include "tests/support/environment.hpp"
#include "tests/support/files.hpp"
#include "tests/support/parse_graph.hpp"
#include "tests/support/scratch_folder.hpp"

namespace bertcl::runtime {
namespace {

using tests::ScopedVariable;

/// The norm of linear_q(x) + r, the terms in this order.
constexpr std::string_view gemm_and_norm =
    R"(graph g(%x: u8[rows, 1024], %r: f32[rows, 66]) {{
  const %w: i8[1024, 66] = ...  const %b: f32[66] = ...  const %xs: f32[] = 0.001
  const %xz: u8[] = 7  const %ws: f32[66] = ...  const %g: f32[66] = ...
  %y: f32[rows, 66] = linear_q(%x, %w, %b, %xs, %xz, %ws)
  %n: f32[rows, 66] = add_norm({}, %g, %b) {{epsilon = 0.5}}
  return %n as n{}
}})";

/// The graph with constants that differ by column, so that no column passes for another.
ir::Graph varied_graph(std::string_view terms, std::string_view outputs) {
  ir::Graph graph = ir::parse(fmt::format(gemm_and_norm, terms, outputs));
  std::vector<std::int8_t> weights;
  for (int i = 0; i < 1024 * 66; ++i)
    weights.push_back(static_cast<std::int8_t>(i * 7919 % 255 - 127));
  graph.find_value("w")->constant = ir::Tensor::of({1024, 66}, std::move(weights));
  const auto set = [&](const char* name, float first, float step) {
    std::vector<float> values;
    for (int column = 0; column < 66; ++column)
      values.push_back(first + step * static_cast<float>(column * 31 % 67));
    graph.find_value(name)->constant = ir::Tensor::of({66}, std::move(values));
  };
  set("b", -1, 0.03f);
  set("ws", 0.001f, 0.0003f);
  set("g", 0.5f, 0.02f);
  return graph;
}

class SplitKGemm : public testing::Test {
 protected:
  void SetUp() override {
    if (opencl::Context::create("")->info().is_cpu())
      GTEST_SKIP() << "there is no GPU; runs in test_runtime_gpu";
    const std::filesystem::path kernels = folder_ / "kernels";
    std::filesystem::copy(tests::source_file("kernels_cl"), kernels,
                          std::filesystem::copy_options::recursive);
    std::ifstream file(kernels / "units/matrix.clh");
    const std::string source(std::istreambuf_iterator<char>(file), {});
    folder_.write("kernels/units/matrix.clh",
                  "#undef MATRIX_EMULATED\n#define MATRIX_EMULATED 1\n" + source);
    kernels_.set(kernels.string());
  }

  static Session load(std::string_view terms, std::string_view outputs, const char* disabled = "") {
    SessionOptions options;
    options.disabled_kernels = disabled;
    return Session::compile(varied_graph(terms, outputs), options);
  }
  static int steps_of(const Session& session, const std::string& variant) {
    return static_cast<int>(std::ranges::count(session.plan().steps, variant,
                                               [](const plan::Step& s) { return s.variant; }));
  }
  static Tensors inputs_of(std::int64_t rows) {
    ir::Tensor x = ir::Tensor::zeros(ir::DType::u8, {rows, 1024});
    std::vector<float> r;
    for (std::size_t i = 0; i < x.mutable_bytes().size(); ++i)
      x.mutable_bytes()[i] = static_cast<std::byte>(i * 7919 % 251 * (i % 66 + 1));
    for (std::int64_t i = 0; i < rows * 66; ++i) r.push_back(static_cast<float>(i * 31 % 17) - 8);
    return {{"x", std::move(x)}, {"r", ir::Tensor::of({rows, 66}, std::move(r))}};
  }

  const tests::ScratchFolder folder_;
  const ScopedVariable vendor_{"OTHER_VENDOR", "NVIDIA Corporation"}, units_{"OTHER_UNITS", "8"};
  ScopedVariable kernels_{"BERTCL_KERNELS"};
};

TEST_F(SplitKGemm, ANormAddsTheSumsWhicheverTermTheyAre) {
  for (const char* terms : {"%y, %r", "%r, %y"}) {
    Session fused = load(terms, ""), apart = load(terms, "", "mma_norm"),
            whole = load(terms, "", "mma_split_k");
    EXPECT_EQ(steps_of(fused, "mma_norm"), 1);
    EXPECT_EQ(steps_of(fused, "mma_reduce"), 0);
    EXPECT_EQ(steps_of(apart, "mma_reduce"), 1);
    EXPECT_EQ(steps_of(whole, "mma_split_k"), 0);
    EXPECT_EQ(steps_of(load(terms, "", "mma_reduce"), "mma_split_k"), 0);
    // 8 units and 2 columns of tiles: divided up to 3 tiles down, 96 rows.
    for (const std::int64_t rows : {1, 31, 33, 96, 97}) {
      const Tensors inputs = inputs_of(rows), expected = whole.run(inputs);
      EXPECT_EQ(fused.run(inputs), expected) << terms << ", " << rows << " rows";
      EXPECT_EQ(apart.run(inputs), expected) << terms << ", " << rows << " rows";
    }
  }
}

// Of the launches that run, however many rows there are.
TEST_F(SplitKGemm, ReportsCountArithmeticAndWeightsOnce) {
  for (const char* disabled : {"", "mma_norm", "mma_split_k"}) {
    const Session session = load("%y, %r", "", disabled);
    for (const std::int64_t rows : {32, 200}) {
      const ir::Bindings sizes{{"rows", rows}};
      double operations = 0, weights = 0;
      for (const plan::Step& step : session.plan().steps) {
        if (!plan::runs(step, sizes)) continue;
        const plan::StepCost cost = plan::cost_of(session.plan(), step, sizes);
        operations += cost.operations;
        weights += cost.weight_bytes;
      }
      EXPECT_EQ(operations, 2.0 * 1024 * 66 * static_cast<double>(rows)) << disabled << rows;
      EXPECT_GE(weights, 1024 * 66) << disabled << rows;
      EXPECT_LT(weights, 2 * 1024 * 66) << disabled << rows;
    }
  }
}

TEST_F(SplitKGemm, SumsOfPartsAreTraffic) {
  const Session session = load("%y, %r", "");
  const auto& steps = session.plan().steps;
  const auto partial = std::ranges::find(steps, "mma_split_k", &plan::Step::variant);
  ASSERT_NE(partial, steps.end());
  const auto splits = static_cast<double>(partial->global[2].evaluate({}));
  EXPECT_GT(splits, 1);
  EXPECT_EQ(plan::cost_of(session.plan(), *partial, {{"rows", 32}}).activation_bytes,
            32.0 * 1024 + splits * 32 * 66 * 4)
      << "a in bytes, and sums in int32";
}

TEST_F(SplitKGemm, AResultThatOthersReadIsWritten) {
  Session session = load("%y, %r", ", %y as y"), whole = load("%y, %r", ", %y as y", "mma_split_k");
  EXPECT_EQ(steps_of(session, "mma_norm"), 0);
  EXPECT_EQ(steps_of(session, "mma_reduce"), 1);
  EXPECT_EQ(session.run(inputs_of(5)), whole.run(inputs_of(5)));
}

TEST_F(SplitKGemm, WithoutGroupsOfRowsTheSumsAreAddedFirst) {
  Session session = load("%y, %r", "", "group,subgroup"),
          whole = load("%y, %r", "", "group,subgroup,mma_split_k");
  EXPECT_EQ(steps_of(session, "mma_norm"), 0);
  EXPECT_EQ(steps_of(session, "mma_reduce"), 1);
  EXPECT_EQ(session.run(inputs_of(5)), whole.run(inputs_of(5)));
}

}  // namespace
}  // namespace bertcl::runtime
