// SPDX-License-Identifier: Apache-2.0
// Sections of a plan, and what its steps cost.
#include "plan/report.hpp"

#include <fmt/ranges.h>

#include <utility>

#include "passes/pass.hpp"
#include "plan/builder.hpp"
#include "tests/support/matchers.hpp"
#include "tests/support/parse_graph.hpp"
#include "tests/support/variants_before.hpp"

namespace bertcl::plan {
namespace {

Plan plan_of_ops(const std::vector<std::string>& ops) {
  Plan plan;
  for (const std::string& op : ops) {
    Step step;
    step.op = op;
    plan.steps.push_back(std::move(step));
  }
  return plan;
}

std::vector<std::string> titles(const Plan& plan) {
  std::vector<std::string> found;
  for (const Section& s : sections_of(plan))
    found.push_back(s.title + " " + std::to_string(s.steps.front()) + "-" +
                    std::to_string(s.steps.back()));
  return found;
}

TEST(Sections, EmbeddingsLayersAndHead) {
  EXPECT_THAT(
      titles(plan_of_ops({"embed_norm", "linear_q", "attention_q", "linear_q", "add_norm",
                          "linear_q", "linear_q", "add_norm", "linear_q", "attention_q", "linear_q",
                          "add_norm", "linear_q", "linear_q", "add_norm", "linear_q", "unpack"})),
      ElementsAre("embeddings 0-0", "layer 0 1-7", "layer 1 8-14", "head 15-16"));
}

/// Each step reads what the one before it writes.
Plan plan_of_sequence(const std::vector<std::string>& ops) {
  Plan plan = plan_of_ops(ops);
  for (int i = 0; i < static_cast<int>(ops.size()); ++i) {
    plan.slots.push_back({"", {}, i});
    plan.steps[i].arguments = {Writes{i}};
    if (i > 0) plan.steps[i].arguments.emplace_back(Reads{i - 1});
  }
  return plan;
}

TEST(Sections, UnfusedAttention) {
  EXPECT_THAT(titles(plan_of_sequence({"Gather", "add_norm", "QuantizeLinear", "linear_q", "MatMul",
                                       "Softmax", "Where", "QuantizeLinear", "MatMulInteger",
                                       "add_norm", "linear", "add_norm", "Split"})),
              ElementsAre("embeddings 0-1", "layer 0 2-11", "head 12-12"));
}

// Not that of attention: no MatMul reads what it makes, though one follows.
TEST(Sections, ASoftmaxBeforeAnotherMatMulIsInTheHead) {
  EXPECT_THAT(titles(plan_of_sequence({"embed_norm", "attention", "add_norm", "linear", "add_norm",
                                       "Softmax", "ReduceMax", "MatMul"})),
              ElementsAre("embeddings 0-0", "layer 0 1-4", "head 5-7"));
}

TEST(Sections, ASoftmaxThatEndsTheModelIsInTheHead) {
  EXPECT_THAT(titles(plan_of_ops({"embed_norm", "attention", "add_norm", "linear", "add_norm",
                                  "linear", "unpack", "Softmax"})),
              ElementsAre("embeddings 0-0", "layer 0 1-4", "head 5-7"));
  EXPECT_THAT(titles(plan_of_ops({"linear", "Softmax"})), ElementsAre("model 0-1"));
}

TEST(Sections, WithoutAttention) {
  EXPECT_THAT(titles(plan_of_ops({"linear", "Relu"})), ElementsAre("model 0-1"));
  EXPECT_TRUE(sections_of({}).empty());
}

// Split-K: a norm for few rows that adds up the sums follows the one for more.
TEST(Sections, ANormForFewRowsIsNoSecondNorm) {
  Plan plan = plan_of_ops({"embed_norm", "attention_q", "linear_q", "add_norm", "linear_q",
                           "add_norm", "add_norm", "attention_q", "linear_q", "add_norm",
                           "add_norm", "linear_q", "add_norm", "add_norm", "linear_q"});
  for (const std::size_t i : {6, 10, 13}) plan.steps[i].up_to_rows = 96;
  EXPECT_THAT(titles(plan),
              ElementsAre("embeddings 0-0", "layer 0 1-6", "layer 1 7-13", "head 14-14"));
}

TEST(Sections, SameLaunches) {
  Plan plan = plan_of_ops({"linear", "Relu", "linear", "Relu", "linear"});
  const Section a{"", {0, 1}}, b{"", {2, 3}}, shorter{"", {4}};
  EXPECT_TRUE(same_launches(plan, a, b));
  EXPECT_FALSE(same_launches(plan, a, shorter));
  plan.steps[3].why_not_faster = "another reason";
  EXPECT_FALSE(same_launches(plan, a, b));
  plan.steps[3].why_not_faster = "";
  plan.steps[2].operations_per_unit = 12;
  EXPECT_FALSE(same_launches(plan, a, b)) << "a linear of another size";
}

TEST(StepCost, OfALinear) {
  const Plan plan = make_plan(ir::parse(R"(graph g(%x: f32[batch, 4]) {
  const %w: f32[4, 2] = [1, 2, 3, 4, 5, 6, 7, 8]  const %b: f32[2] = [1, 2]
  %y: f32[batch, 2] = linear(%x, %w, %b)
  return %y as y
})"),
                              opencl::Context::create("cpu"), {});
  ASSERT_EQ(plan.steps.size(), 1u);
  const StepCost cost = cost_of(plan, plan.steps[0], {{"batch", 3}});
  EXPECT_EQ(cost.operations, 2.0 * 3 * 4 * 2);
  EXPECT_EQ(cost.activation_bytes, 4.0 * 3 * (4 + 2));
  EXPECT_GE(cost.weight_bytes, 4.0 * (4 * 2 + 2)) << "panels may be padded";
  EXPECT_EQ(cost_of(plan, plan.steps[0], {}).operations, 0) << "no size, no cost";
}

// As q, k and v of attention may be columns of one tensor.
TEST(StepCost, AnOperandThatIsReadTwiceCountsOnce) {
  const Plan plan = make_plan(ir::parse(R"(graph g(%x: f32[batch, 4]) {
  %y: f32[batch, 4] = Mul(%x, %x)
  return %y as y
})"),
                              opencl::Context::create("cpu"), {});
  EXPECT_EQ(cost_of(plan, plan.steps.at(0), {{"batch", 3}}).activation_bytes, 4.0 * 3 * (4 + 4));
}

TEST(StepCost, OfEachTableAsManyRowsAsAreLookedUp) {
  ir::Graph graph = ir::parse(R"(graph g(%input_ids: i64[batch, seq]) {
  const %words: f32[50, 4] = splat 1  const %places: f32[20, 4] = splat 1
  const %gamma: f32[4] = [1, 2, 3, 4]  const %beta: f32[4] = [1, 2, 3, 4]
  %y: f32[batch, seq, 4] = embed_norm(%input_ids, _, _, %words, _, %places, %gamma, %beta) {epsilon = 0.5}
  return %y as y
})");
  passes::compile(graph, {});
  const Plan plan = make_plan(std::move(graph), opencl::Context::create("cpu"), {});
  ASSERT_EQ(plan.steps.front().op, "embed_norm");
  const double rows = 4.0 * 8 * 4, absent = 4;
  EXPECT_EQ(cost_of(plan, plan.steps.front(), sizes_of_batch(plan, 1, 8)).weight_bytes,
            2 * rows + 2 * 4.0 * 4 + absent);
}

TEST(SizesOfBatch, BindTheOwnNamesOfAnInput) {
  const Plan plan = make_plan(ir::parse(R"(graph g(%x: f32[texts, words, 4]) {
  %y: f32[texts, words, 4] = Relu(%x)
  return %y as y
})"),
                              opencl::Context::create("cpu"), {});
  const StepCost cost = cost_of(plan, plan.steps.at(0), sizes_of_batch(plan, 2, 5));
  EXPECT_EQ(cost.activation_bytes, 4.0 * 2 * 5 * (4 + 4));
}

TEST(Launched, SmallTilesWhereTheLargeOnesAreTooFew) {
  const auto context = opencl::Context::create("cpu");
  Options options;
  options.disabled = variants_to_disable(tests::s8_variants_before("dot4"));
  const Plan plan = make_plan(ir::parse(R"(graph g(%x: u8[batch, 4]) {
  const %s: f32[] = [0.5]  const %w: i8[4, 2] = [1, 2, 3, 4, 5, 6, 7, 8]
  %y: f32[batch, 2] = linear_q(%x, %w, _, %s, _, %s)
  return %y as y
})"),
                              context, options);
  ASSERT_EQ(plan.steps.size(), 1u);
  const Step& step = plan.steps[0];
  if (step.alternatives.empty())
    GTEST_SKIP() << "this device has no kernel with two sizes of tiles";
  const std::int64_t units = context->info().compute_units;
  // 128 rows of two columns are one large tile.
  EXPECT_EQ(launched_by(plan, step, {{"batch", 128 * units}}).variant, "dot4");
  // As many rows but one large tile are enough small ones where there are two units or more.
  if (units > 1) {
    EXPECT_EQ(launched_by(plan, step, {{"batch", 128 * (units - 1)}}).variant, "dot4_64x128");
  }
  const Launched few = launched_by(plan, step, {{"batch", units > 1 ? 1 : 0}});
  EXPECT_EQ(few.variant, "dot4_32x64");
  EXPECT_EQ(few.program, "gemm_s8_dot4");
  EXPECT_EQ(few.kernel, "gemm_s8");
  EXPECT_EQ(launched_by(plan, step, {}).variant, "dot4") << "no size";
}

// y[batch, columns] = x[batch, 1] * w.
Step linear_of_columns(const std::shared_ptr<opencl::Context>& context, bool int8,
                       std::int64_t columns, const Options& options = {}) {
  const std::vector<int> w(static_cast<std::size_t>(columns), 3);
  const std::string text = int8 ? R"(graph g(%x: u8[batch, 1]) {{
  const %s: f32[] = [0.5]  const %w: i8[1, {0}] = [{1}]
  %y: f32[batch, {0}] = linear_q(%x, %w, _, %s, _, %s)
  return %y as y
}})"
                                : R"(graph g(%x: f32[batch, 1]) {{
  const %w: f32[1, {0}] = [{1}]
  %y: f32[batch, {0}] = linear(%x, %w)
  return %y as y
}})";
  return make_plan(ir::parse(fmt::format(fmt::runtime(text), columns, fmt::join(w, ", "))), context,
                   options)
      .steps.at(0);
}

TEST(PrecisionOf, IsThatOfLinearsAndAttentionAlone) {
  const auto precision = [](const std::vector<std::pair<Arithmetic, int>>& types) {
    Plan plan;
    for (const auto& [type, operations] : types) {
      Step& step = plan.steps.emplace_back();
      step.type = type;
      step.operations_per_unit = operations;
    }
    return precision_of(plan).str();
  };
  using A = Arithmetic;
  EXPECT_EQ(precision({}), "fp32");
  EXPECT_EQ(precision({{A::fp32, 2}, {A::elements(ir::DType::f16), 0}}), "fp32");
  EXPECT_EQ(precision({{A::fp32, 2}, {A::fp16_weights, 2}}), "fp16");
  EXPECT_EQ(precision({{A::fp16, 2}, {A::bf16, 2}}), "bf16");
  EXPECT_EQ(precision({{A::bf16, 2}, {A::int8, 2}}), "int8");
}

TEST(Launched, AKernelOfItsOwnForFewRowsOnIntelsCpusAlone) {
  const auto context = opencl::Context::create("cpu");
  const std::int64_t enough = 2 * 48 * context->info().compute_units;  // two panels for each unit
  for (const bool int8 : {false, true}) {
    const Step step = linear_of_columns(context, int8, enough);
    const std::string program = step.kernel.program_name();
    if (context->info().vendor != "GenuineIntel" ||
        (program != "gemm_f32_x86" && program != "gemm_s8_x86_vnni")) {
      EXPECT_TRUE(step.alternatives.empty()) << context->info().vendor << ", " << step.variant;
      continue;
    }
    const auto of_rows = [&](std::int64_t rows) {
      return chosen_kernel(step, {{"batch", rows}}, context->info()).kernel.program_name();
    };
    const std::int64_t few = step.variant == "x86_avx2" ? 24 : 32;  // four tiles
    EXPECT_EQ(of_rows(1), program + "_small_m");
    EXPECT_EQ(of_rows(few), program + "_small_m");
    EXPECT_EQ(of_rows(few + 1), program);
    EXPECT_TRUE(linear_of_columns(context, int8, 16).alternatives.empty())
        << "a panel is for one unit";
    Options without;
    without.disabled = {step.variant + "_small_m"};
    EXPECT_TRUE(linear_of_columns(context, int8, enough, without).alternatives.empty());
  }
}

}  // namespace
}  // namespace bertcl::plan
