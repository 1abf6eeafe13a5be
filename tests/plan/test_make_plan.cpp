// SPDX-License-Identifier: Apache-2.0
// Plans of small graphs: views, variants, notes on MatMuls that stay float, refusals.
#include "plans.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::plan {
namespace {

constexpr std::string_view linear = R"(graph g(%x: f32[batch, 4]) {
  const %w: f32[4, 2] = [1, 2, 3, 4, 5, 6, 7, 8]  const %b: f32[2] = [1, 2]
  %y: f32[batch, 2] = linear(%x, %w, %b) {activation = "gelu"}
  return %y as y
})";

constexpr std::string_view linear_in_half = R"(graph g(%x: f32[batch, 4]) {
  const %w: f32[4, 2] = [1, 2, 3, 4, 5, 6, 7, 8]  const %b: f32[2] = [1, 2]
  %y: f32[batch, 2] = linear(%x, %w, %b) {activation = "gelu", precision = "fp16"}
  return %y as y
})";

TEST(MakePlan, AViewSharesTheMemoryOfItsOperand) {
  const Plan plan = plan_of(R"(graph g(%x: f32[batch, 4]) {
  %r: f32[batch, 4] = Relu(%x)
  %a: f32[batch, 2, 2] = Reshape(%r)
  %b: f32[batch, 2, 2, 1] = Unsqueeze(%a) {axes = [3]}
  return %b as y
})");
  EXPECT_EQ(plan.steps.size(), 1u);
  const auto slot = [&](const std::string& name) {
    for (std::size_t i = 0; i < plan.slots.size(); ++i)
      if (plan.slots[i].name == name) return static_cast<int>(i);
    return -1;
  };
  ASSERT_GE(slot("b"), 0);
  EXPECT_EQ(plan.slots[slot("a")].root, slot("r"));
  EXPECT_EQ(plan.slots[slot("b")].root, slot("r"));  // the root, not the view before it
  EXPECT_EQ(plan.slots[slot("r")].root, slot("r"));
  EXPECT_EQ(plan.outputs[0].slot, slot("b"));
}

TEST(MakePlan, AViewOfAConstantIsRefusedByName) {
  const std::string message = refusal(R"(graph g(%x: f32[batch, 4]) {
  const %c: f32[2, 2] = [1, 2, 3, 4]
  %v: f32[4] = Reshape(%c)
  %y: f32[batch, 4] = Add(%x, %v)
  return %y as y
})");
  EXPECT_THAT(message, HasSubstr("Reshape (result 'v')"));
  EXPECT_THAT(message, HasSubstr("constant"));
}

TEST(GemmLibraries, HaveNames) {
  EXPECT_EQ(gemm_library_named("auto"), GemmLibrary::automatic);
  EXPECT_EQ(gemm_library_named("own"), GemmLibrary::own);
  EXPECT_EQ(gemm_library_named("clblast"), GemmLibrary::clblast);
  EXPECT_ERROR(HasSubstr("unknown GEMM library 'mkl' (choose from auto, own, clblast)"),
               gemm_library_named("mkl"));
}

// Its result has the node's name.
TEST(MakePlan, AnErrorThatOnlyQuotesTheNodeIsOfTheNode) {
  ir::Graph graph;
  ir::Value* constant = graph.add_constant("c", ir::Tensor::of<float>({2, 2}, {1, 2, 3, 4}));
  ir::Value* view =
      graph.add("Reshape", {constant}, {}, {ir::DType::f32, {ir::Dim(4)}}, nullptr, "Reshape 'x'");
  view->producer->sources = {"x"};
  graph.add_output("y", view);
  EXPECT_THAT(error_of([&] { make_plan(graph, device(), {}); }),
              StartsWith("Reshape 'x': 'Reshape 'x'' is a view of a constant"));
}

TEST(MakePlan, TheTableOfTokenIdsTellsTheVocabulary) {
  const auto words = [](const std::string& ids, const std::string& of) {
    return plan_of("graph g(%" + ids + R"(: i64[batch, seq]) {
  const %table: f32[6, 2] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]  const %one: i64[] = 1
)" + of + R"(
  %y: f32[batch, seq, 2] = Gather(%table, %chosen)
  return %y as y
})")
        .word_rows;
  };
  EXPECT_EQ(words("input_ids", "  %chosen: i32[batch, seq] = Cast(%input_ids)"), 6);
  EXPECT_EQ(words("input_ids", "  %chosen: i64[batch, seq] = Add(%input_ids, %one)"), 0);
  EXPECT_EQ(words("token_type_ids", "  %chosen: i32[batch, seq] = Cast(%token_type_ids)"), 0);
}

TEST(MakePlan, AnOperatorWithoutKernelIsNamed) {
  EXPECT_THAT(refusal(R"(graph g(%x: f32[batch, 4]) {
  %y: i64[batch, 1] = ArgMin(%x) {axis = 1}
  return %y as y
})"),
              HasSubstr("ArgMin (result 'y'): this operator has no OpenCL kernel; "
                        "docs/operators.md lists those that have one"));
}

TEST(MakePlan, ASizeThatNoInputTellsIsRefusedWithItsNode) {
  const std::string message = refusal(R"(graph g(%x: f32[batch, 4]) {
  %r: f32[n2, 4] = Relu(%x)
  return %r as y
})");
  EXPECT_THAT(message, HasSubstr("Relu (result 'r')"));
  EXPECT_THAT(message, HasSubstr("'n2'"));
}

TEST(MakePlan, RefusalsInsideOfALoweringNameTheNode) {
  EXPECT_THAT(
      refusal(R"(graph g(%x: f32[batch, 4]) {
  const %w: f32[4, 2] = [1, 2, 3, 4, 5, 6, 7, 8]
  %y: f32[batch, 2] = linear(%x, %w) {activation = "swish"}
  return %y as y
})"),
      HasSubstr("linear (result 'y'): unknown activation 'swish' (choose from gelu, gelu_tanh, "
                "relu, tanh)"));
}

TEST(MakePlan, IntegerLinearsThatCouldOverflowAreRefused) {
  EXPECT_THAT(refusal(R"(graph g(%x: u8[batch, 65794]) {
  const %w: i8[65794, 1] = ...  const %s: f32[] = 0.5
  %y: f32[batch, 1] = linear_q(%x, %w, _, %s, _, %s)
  return %y as y
})"),
              HasSubstr("linear_q (result 'y'): K = 65794 can overflow"));
}

TEST(MakePlan, IntegerNormsAreRefusedByName) {
  EXPECT_THAT(refusal(R"(graph g(%x: i64[batch, 4]) {
  %y: i64[batch, 1] = ReduceL2(%x) {axes = [1], keepdims = 1}
  return %y as y
})"),
              HasSubstr("ReduceL2 (result 'y'): no kernel for element type i64"));
}

TEST(MakePlan, AnEmbeddingOutsideOfPackedTokensIsRefused) {
  EXPECT_THAT(refusal(R"(graph g(%ids: i64[batch, seq]) {
  const %word: f32[9, 4] = ...  const %gamma: f32[4] = ...
  %e: f32[batch, seq, 4] = embed_norm(%ids, _, _, %word, _, %word, %gamma, _) {epsilon = 0.5}
  return %e as e
})"),
              HasSubstr("embed_norm (result 'e'): an embedding needs packed tokens"));
}

// GPUs pad the first two axes of a grid to whole groups; the kernel reads offsets by its third.
TEST(MakePlan, ClblastIsTakenWhereItIsAskedFor) {
  Options options;
  EXPECT_NE(plan_of(linear).steps.back().variant, "clblast");
  EXPECT_THAT(plan_of(linear).steps.back().why_not_faster, Not(HasSubstr("clblast")))
      << "a choice of the user, and no faster kernel of the variants";
  options.gemm = GemmLibrary::clblast;
  const Plan plan = plan_of(linear, options);
  ASSERT_EQ(plan.steps.size(), 3u);  // bias, linear, activation
  EXPECT_EQ(plan.steps[1].variant, "clblast");
  EXPECT_EQ(plan.steps[1].type.str(), "fp32");
}

TEST(MakePlan, ClblastCanBeSwitchedOff) {
  Options options;
  options.gemm = GemmLibrary::clblast;
  options.disabled = {"clblast"};
  const Plan plan = plan_of(linear, options);
  ASSERT_EQ(plan.steps.size(), 1u);
  EXPECT_NE(plan.steps[0].variant, "clblast");
  EXPECT_THAT(plan.steps[0].why_not_faster, HasSubstr("clblast: disabled"));
}

TEST(MakePlan, WeightsInHalfStayInHalfUnderClblast) {
  Options options;
  options.gemm = GemmLibrary::clblast;
  const Plan plan = plan_of(linear_in_half, options);
  if (device()->capabilities().fp16) {
    ASSERT_EQ(plan.steps.size(), 5u);  // x to half, bias, linear, result to float, activation
    EXPECT_EQ(plan.steps[2].variant, "clblast");
    EXPECT_EQ(plan.steps[2].type.str(), "fp16");
  } else {
    ASSERT_EQ(plan.steps.size(), 1u);
    EXPECT_EQ(plan.steps[0].type.str(), "fp16w");
    EXPECT_THAT(plan.steps[0].why_not_faster, HasSubstr("clblast: fp16 weights"));
  }
}

TEST(MakePlan, WhatTheGraphStoresInBf16IsReadAndWrittenSo) {
  if (!device()->capabilities().avx512_bf16) GTEST_SKIP() << "this device has no avx512_bf16";
  constexpr std::string_view text = R"(graph g(%x: f32[batch, 4]) {
  const %w: f32[4, 4] = [1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8]
  const %g: f32[4] = [1, 1, 1, 1]
  %a: bf16[batch, 4] = linear(%x, %w) {precision = "bf16"}
  %b: f32[batch, 4] = linear(%a, %w) {precision = "bf16"}
  %n: f32[batch, 4], %n16: bf16[batch, 4] = add_norm(%b, %x, %g, %g) {epsilon = 0.5}
  %c: f32[batch, 4] = linear(%n16, %w) {precision = "bf16"}
  %m: f32[batch, 4] = add_norm(%c, %x, %g, %g) {epsilon = 0.5}
  return %m as y
})";
  std::map<std::string, ir::DType> slots;
  std::map<std::string, std::string> types;
  const Plan plan = plan_of(text);
  for (const Slot& slot : plan.slots) slots[slot.name] = slot.type.dtype;
  for (const Step& step : plan.steps) types[step.name] = step.type.str();
  EXPECT_EQ(slots.at("a"), ir::DType::bf16);
  EXPECT_EQ(slots.at("n16"), ir::DType::bf16);
  EXPECT_FALSE(slots.contains("n")) << "nothing reads it";
  EXPECT_THAT(types, ElementsAre(Pair("a", "bf16"), Pair("b", "bf16"), Pair("c", "bf16"),
                                 Pair("m", "fp32"), Pair("n", "fp32 > bf16")));
}

TEST(MakePlan, ADeviceHasASayInThePrecision) {
  Options options;
  opencl::Context& context = *device();
  EXPECT_EQ(precision_on(context, ir::DType::f16, options).type, ir::DType::f16);
  EXPECT_THROW(precision_on(context, ir::DType::i8, options), Error);
  const passes::Precision bf16 = precision_on(context, ir::DType::bf16, options);
  if (context.capabilities().avx512_bf16) {
    EXPECT_EQ(bf16.type, ir::DType::bf16);
  } else {
    EXPECT_EQ(bf16.type, ir::DType::f32);
    EXPECT_THAT(bf16.reason, HasSubstr("avx512_bf16"));
  }
  options.disabled = {"x86_bf16"};
  EXPECT_EQ(precision_on(context, ir::DType::bf16, options).type, ir::DType::f32);
  EXPECT_EQ(precision_on(context, ir::DType::bf16, options).reason, "x86_bf16: disabled");
}

TEST(MakePlan, AnUnknownVariantIsRefusedWithTheNearest) {
  EXPECT_ERROR(HasSubstr("'x86_avx3' (did you mean x86_avx2?)"),
               variants_to_disable("x86_avx2,x86_avx3"));
  EXPECT_ERROR(HasSubstr("'fastest' (nearest: "), variants_to_disable("fastest"));
  EXPECT_ERROR(HasSubstr("empty element in 'x86,,ref'"), variants_to_disable("x86,,ref"));
  EXPECT_THAT(variants_to_disable(""), IsEmpty());
}

// What a Q/DQ file asks to be int8 and runs in float.
TEST(Notes, ALinearSaysItsReason) {
  const Plan plan = plan_of(R"(graph g(%x: f32[batch, 4]) {
  const %w: f32[4, 2] = [1, 2, 3, 4, 5, 6, 7, 8]
  %y: f32[batch, 2] = linear(%x, %w) {float_reason = "its weight is not quantized"}
  return %y as y
})");
  EXPECT_THAT(plan.notes,
              ElementsAre("linear (result 'y') runs in fp32: its weight is not quantized"));
  EXPECT_EQ(plan.steps.back().why_not_faster, "its weight is not quantized");
}

TEST(Notes, ALinearOfDequantizedValuesIsNotedAfterMovesToo) {
  const Plan plan = plan_of(R"(graph g(%x: u8[batch, 4, 4], %f: f32[batch, 4, 4]) {
  const %s: f32[] = 0.5
  %d: f32[batch, 4, 4] = DequantizeLinear(%x, %s)
  %t: f32[batch, 4, 4] = Transpose(%d) {perm = [0, 2, 1]}
  %y: f32[batch, 4, 4] = MatMul(%f, %t)
  return %y as y
})");
  ASSERT_EQ(plan.notes.size(), 1u);
  EXPECT_THAT(plan.notes[0], HasSubstr("MatMul (result 'y') runs in fp32"));
}

TEST(Notes, FloatAttentionOfDequantizedValuesIsNoted) {
  const Plan plan = plan_of(R"(graph g(%ids: i64[batch, seq], %m: i64[batch, seq]) {
  const %table: u8[2, 8] = [1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8]  const %s: f32[] = 0.5
  %0: i32[$tokens], %1: i32[$tokens], %2: i32[$offsets], %3: u8[$tokens] = pack_inputs(%ids, _, %m)
  %4: u8[$tokens, 8] = Gather(%table, %0)
  %5: f32[$tokens, 8] = DequantizeLinear(%4, %s)
  %6: f32[$tokens, 8] = attention(%5, %5, %5, _, _, _, %2, %3) {heads = 2, masked = 1, p_type = "f32", scale = 0.5}
  %7: f32[batch, seq, 8] = unpack(%6, %2)
  return %7 as y
})");
  ASSERT_EQ(plan.notes.size(), 1u);
  EXPECT_EQ(plan.notes[0],
            "attention (result '6') runs in fp32: it has a quantized operand, but its "
            "probabilities are not quantized");
}

TEST(Notes, FloatModelsHaveNone) {
  EXPECT_THAT(plan_of(linear).notes, IsEmpty());
  EXPECT_THAT(plan_of(R"(graph g(%a: f32[batch, 4, 4], %b: f32[batch, 4, 4]) {
  %y: f32[batch, 4, 4] = MatMul(%a, %b)
  return %y as y
})")
                  .notes,
              IsEmpty());
}

TEST(MakePlan, QuantizationThatStayedUnfusedSaysWhy) {
  const Plan plan = plan_of(R"(graph g(%x: f32[batch, 4]) {
  const %s: f32[] = 0.5  const %z: u8[] = 3
  %r: f32[batch, 4] = Relu(%x)
  %q: u8[batch, 4] = QuantizeLinear(%r, %s, %z)
  %d: f32[batch, 4] = DequantizeLinear(%q, %s, %z)
  %y: f32[batch, 4] = Sigmoid(%d)
  return %y as y
})");
  ASSERT_EQ(plan.steps.size(), 4u);
  EXPECT_THAT(plan.steps[0].why_not_faster, HasSubstr("quantizes its result"));
  EXPECT_THAT(plan.steps[1].why_not_faster, HasSubstr("comes from Relu"));
  EXPECT_THAT(plan.steps[2].why_not_faster, HasSubstr("read by Sigmoid"));
  EXPECT_THAT(plan.steps[3].why_not_faster, HasSubstr("quantizes its operands"));
}

TEST(MakePlan, AQuantizedSumOfANormSaysWhy) {
  const Plan plan = plan_of(R"(graph g(%x: f32[batch, 4], %r: f32[batch, 4]) {
  const %gamma: f32[4] = [1, 2, 3, 4]  const %s: f32[] = 0.5  const %z: u8[] = 3
  %a: f32[batch, 4], %b: f32[batch, 4] = add_norm(%x, %r, %gamma, _) {epsilon = 0.5, rms = 1, sum = 1}
  %q: u8[batch, 4] = QuantizeLinear(%b, %s, %z)
  return %a as a, %q as q
})");
  ASSERT_EQ(plan.steps.size(), 2u);
  EXPECT_EQ(plan.steps[1].why_not_faster,
            "its operand is the sum of add_norm, which is written in f32 only");
}

}  // namespace
}  // namespace bertcl::plan
