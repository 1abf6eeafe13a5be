// SPDX-License-Identifier: Apache-2.0
// Rows of padding dropped between the inputs and the heads.
#include <fmt/format.h>

#include <memory>
#include <set>

#include "check.hpp"
#include "tests/support/parse_graph.hpp"

namespace bertcl::passes {

Pass pack_tokens();
namespace {

TEST(PackTokens, EncoderWorksOnRowsAndTheHeadOnThePaddedBatch) {
  EXPECT_REWRITE(pack_tokens(), R"(graph g(%ids: i64[batch, seq], %mask: i64[batch, seq]) {
  const %word: f32[9, 4] = ...  const %position: f32[9, 4] = ...  const %gamma: f32[4] = ...
  const %beta: f32[4] = ...
  %e: f32[batch, seq, 4] = embed_norm(%ids, _, _, %word, _, %position, %gamma, %beta) {epsilon = 0.5}
  %a: f32[batch, seq, 4] = attention(%e, %e, %e, %mask) {heads = 1, p_type = "f32", scale = 0.5}
  const %w: f32[4, 2] = ...
  %h: f32[batch, seq, 2] = linear(%a, %w)
  %t: f32[batch, 2, seq] = Transpose(%h) {perm = [0, 2, 1]}
  return %t as y, %e as e
})",
                 R"(graph g(%ids: i64[batch, seq], %mask: i64[batch, seq]) {
  %0: i32[$tokens], %1: i32[$tokens], %2: i32[$offsets], %3: u8[$tokens] = pack_inputs(%ids, _, %mask)
  const %word: f32[9, 4] = ...  const %position: f32[9, 4] = ...  const %gamma: f32[4] = ...
  const %beta: f32[4] = ...
  %4: f32[$tokens, 4] = embed_norm(%0, _, %1, %word, _, %position, %gamma, %beta) {epsilon = 0.5}
  %5: f32[batch, seq, 4] = unpack(%4, %2)
  %6: f32[$tokens, 4] = attention(%4, %4, %4, _, _, _, %2, %3) {heads = 1, masked = 1, p_type = "f32", scale = 0.5}
  const %w: f32[4, 2] = ...
  %7: f32[$tokens, 2] = linear(%6, %w)
  %8: f32[batch, seq, 2] = unpack(%7, %2)
  %9: f32[batch, 2, seq] = Transpose(%8) {perm = [0, 2, 1]}
  return %9 as y, %5 as e
})");
}

TEST(PackTokens, OfImagesEveryRowCounts) {
  EXPECT_REWRITE(pack_tokens(), R"(graph g(%image: f32[batch, 4, side, side]) {
  %p: f32[batch, 4, side*side] = Reshape(%image)
  %x: f32[batch, side*side, 4] = Transpose(%p) {perm = [0, 2, 1]}
  %a: f32[batch, side*side, 4] = attention(%x, %x, %x, _) {heads = 1, p_type = "f32", scale = 0.5}
  %mean: f32[batch, 4] = ReduceMean(%a) {axes = [1], keepdims = 0}
  return %mean as y
})",
                 R"(graph g(%image: f32[batch, 4, side, side]) {
  %0: i32[$tokens], %1: i32[$tokens], %2: i32[$offsets], %3: u8[$tokens] = pack_inputs() {rows = "[batch, side*side]"}
  %4: f32[batch, 4, side*side] = Reshape(%image)
  %5: f32[batch, side*side, 4] = Transpose(%4) {perm = [0, 2, 1]}
  %6: f32[$tokens, 4] = pack(%5, %2)
  %7: f32[$tokens, 4] = attention(%6, %6, %6, _, _, _, %2, %3) {heads = 1, masked = 0, p_type = "f32", scale = 0.5}
  %8: f32[batch, side*side, 4] = unpack(%7, %2)
  %9: f32[batch, 4] = ReduceMean(%8) {axes = [1], keepdims = 0}
  return %9 as y
})");
  // Tokens of other sizes do not tell them.
  EXPECT_UNCHANGED(pack_tokens(),
                   R"(graph g(%x: f32[batch, seq, 4], %ids: i64[batch, words]) {
  %a: f32[batch, seq, 4] = attention(%x, %x, %x, _) {heads = 1, p_type = "f32", scale = 0.5}
  return %a as y
})");
}

TEST(PackTokens, PoolingReadsRowsAndGivesSequences) {
  EXPECT_DIFF(pack_tokens(), R"(graph g(%ids: i64[batch, seq], %mask: i64[batch, seq]) {
+ %0: i32[$tokens], %1: i32[$tokens], %2: i32[$offsets], %3: u8[$tokens] = pack_inputs(%ids, _, %mask)
  const %word: f32[9, 4] = ...  const %position: f32[9, 4] = ...  const %gamma: f32[4] = ...
  const %beta: f32[4] = ...
- %e: f32[batch, seq, 4] = embed_norm(%ids, _, _, %word, _, %position, %gamma, %beta) {epsilon = 0.5}
- %a: f32[batch, seq, 4] = attention(%e, %e, %e, %mask) {heads = 1, p_type = "f32", scale = 0.5}
- %p: f32[batch, 3] = pool(%a, %mask) {columns = 3, kind = "mean", normalize = 1}
- return %p as y
+ %4: f32[$tokens, 4] = embed_norm(%0, _, %1, %word, _, %position, %gamma, %beta) {epsilon = 0.5}
+ %5: f32[$tokens, 4] = attention(%4, %4, %4, _, _, _, %2, %3) {heads = 1, masked = 1, p_type = "f32", scale = 0.5}
+ %6: f32[batch, 3] = pool(%5, _, %2, %3) {columns = 3, kind = "mean", masked = 1, normalize = 1}
+ return %6 as y
})");
}

TEST(PackTokens, PoolingByAnotherMaskThanTheEncodersIsLeftAlone) {
  const std::string text =
      after(pack_tokens(),
            R"(graph g(%ids: i64[batch, seq], %mask: i64[batch, seq], %other: i64[batch, seq]) {
  const %word: f32[9, 4] = ...  const %position: f32[9, 4] = ...  const %gamma: f32[4] = ...
  %e: f32[batch, seq, 4] = embed_norm(%ids, _, _, %word, _, %position, %gamma, _) {epsilon = 0.5}
  %a: f32[batch, seq, 4] = attention(%e, %e, %e, %mask) {heads = 1, p_type = "f32", scale = 0.5}
  %p: f32[batch, 4] = pool(%a, %other) {kind = "max"}
  return %p as y
})");
  EXPECT_THAT(text, Not(HasSubstr("pack_inputs")));
}

TEST(PackTokens, PoolingReadsTheMaskWhereAttentionCountsItsOnes) {
  EXPECT_REWRITE(pack_tokens(), R"(graph g(%x: f32[batch, seq, 4], %mask: i64[batch, seq]) {
  %a: f32[batch, seq, 4] = attention(%x, %x, %x, %mask) {heads = 1, mask_is_length = 1, p_type = "f32", scale = 0.5}
  %p: f32[batch, 4] = pool(%a, %mask) {kind = "mean"}
  return %p as y
})",
                 R"(graph g(%x: f32[batch, seq, 4], %mask: i64[batch, seq]) {
  %0: i32[$tokens], %1: i32[$tokens], %2: i32[$offsets], %3: u8[$tokens] = pack_inputs(%mask, _, %mask) {mask_is_length = 1}
  %4: f32[$tokens, 4] = pack(%x, %2)
  %5: f32[$tokens, 4] = attention(%4, %4, %4, _, _, _, %2, %3) {heads = 1, masked = 1, p_type = "f32", scale = 0.5}
  %6: bool[batch, seq] = Cast(%mask) {to = "bool"}
  %7: bool[$tokens] = pack(%6, %2)
  %8: f32[batch, 4] = pool(%5, _, %2, %7) {kind = "mean", masked = 1}
  return %8 as y
})");
}

TEST(PackTokens, PoolingReadsTheMaskWhereAttentionHasNone) {
  EXPECT_DIFF(pack_tokens(), R"(graph g(%x: f32[batch, seq, 4], %mask: i64[batch, seq]) {
- %a: f32[batch, seq, 4] = attention(%x, %x, %x) {heads = 1, p_type = "f32", scale = 0.5}
- %p: f32[batch, 4] = pool(%a, %mask) {kind = "max"}
+ %0: i32[$tokens], %1: i32[$tokens], %2: i32[$offsets], %3: u8[$tokens] = pack_inputs(%mask, _, _)
+ %4: f32[$tokens, 4] = pack(%x, %2)
+ %5: f32[$tokens, 4] = attention(%4, %4, %4, _, _, _, %2, %3) {heads = 1, masked = 0, p_type = "f32", scale = 0.5}
+ %6: bool[batch, seq] = Cast(%mask) {to = "bool"}
+ %7: bool[$tokens] = pack(%6, %2)
+ %p: f32[batch, 4] = pool(%5, _, %2, %7) {kind = "max", masked = 1}
  return %p as y
})");
}

TEST(PackTokens, PositionsOfTheCallerArePackedToo) {
  const std::string text =
      after(pack_tokens(), R"(graph g(%ids: i64[batch, seq], %position_ids: i64[batch, seq]) {
  const %word: f32[9, 4] = ...  const %position: f32[9, 4] = ...  const %gamma: f32[4] = ...
  %e: f32[batch, seq, 4] = embed_norm(%ids, _, %position_ids, %word, _, %position, %gamma, _) {epsilon = 0.5}
  return %e as e
})");
  EXPECT_THAT(text, HasSubstr("= pack_inputs(%ids, _, _, %position_ids)"));
  EXPECT_THAT(text, HasSubstr("embed_norm(%0, _, %1, "));
}

TEST(PackTokens, UnpackedValuesStandInTheOrderOfTheGraph) {
  const std::string_view before = R"(graph g(%ids: i64[batch, seq]) {
  const %word: f32[9, 4] = ...  const %position: f32[9, 4] = ...  const %gamma: f32[4] = ...
  const %beta: f32[4] = ...  const %s: f32[] = 0.5  const %z: u8[] = 128
  %e: f32[batch, seq, 4], %q: u8[batch, seq, 4] = embed_norm(%ids, _, _, %word, _, %position, %gamma, %beta, %s, %z) {epsilon = 0.5}
  %r: f32[batch, seq, 4] = Relu(%e)
  return %r as r, %q as q, %e as e
})";
  std::set<std::string> results;
  std::vector<std::unique_ptr<char[]>> holes;
  for (std::size_t i = 0; i < 50; ++i) {  // values lie elsewhere each time
    for (std::size_t n = 0; n < 40; ++n)
      holes.push_back(std::make_unique<char[]>(sizeof(ir::Value) + 8 * (n % 3)));
    for (std::size_t n = i; n < holes.size(); n += 1 + i % 3) holes[n].reset();
    results.insert(after(pack_tokens(), before));
  }
  ASSERT_EQ(results.size(), 1u);
  const std::string& text = *results.begin();
  EXPECT_LT(text.find("f32[batch, seq, 4] = unpack("), text.find("u8[batch, seq, 4] = unpack("));
}

TEST(PackTokens, SumsOfPackedValuesArePacked) {
  const std::string text = after(pack_tokens(), R"(graph g(%ids: i64[batch, seq]) {
  const %word: f32[9, 4] = ...  const %position: f32[9, 4] = ...  const %gamma: f32[4] = ...
  const %w: f32[4, 4] = ...  const %s: f32[] = 0.5
  %e: f32[batch, seq, 4] = embed_norm(%ids, _, _, %word, _, %position, %gamma, _) {epsilon = 0.5}
  %h: f32[batch, seq, 4] = linear(%e, %w)
  %sum: f32[batch, seq, 4] = Add(%h, %e)
  %q: u8[batch, seq, 4] = QuantizeLinear(%sum, %s)
  %d: f32[batch, seq, 4] = DequantizeLinear(%q, %s)
  %n: f32[batch, seq, 4] = add_norm(%d, _, %gamma) {epsilon = 0.5}
  return %n as y
})");
  EXPECT_THAT(text, HasSubstr("f32[$tokens, 4] = Add("));
  EXPECT_THAT(text, Not(HasSubstr("= pack(")));
  EXPECT_EQ(text.find("= unpack("), text.rfind("= unpack(")) << "one, of the result:\n" << text;
}

TEST(PackTokens, ScalesOfColumnsStayWithPackedRowsButNotThoseOfTokens) {
  const auto packed = [](std::string_view scales, std::string_view axis) {
    return after(pack_tokens(), fmt::format(R"(graph g(%ids: i64[batch, 4]) {{
  const %word: f32[9, 4] = ...  const %position: f32[9, 4] = ...  const %gamma: f32[4] = ...
  const %s: f32[{0}] = ...
  %e: f32[batch, 4, 4] = embed_norm(%ids, _, _, %word, _, %position, %gamma, _) {{epsilon = 0.5}}
  %product: f32[batch, 4, 4] = Mul(%e, %e)
  %q: i8[batch, 4, 4] = QuantizeLinear(%product, %s) {{axis = {1}}}
  %d: f32[batch, 4, 4] = DequantizeLinear(%q, %s) {{axis = {1}}}
  return %d as y
}})",
                                            scales, axis));
  };
  for (const char* axis : {"2", "-1"}) {
    const std::string text = packed("4", axis);
    EXPECT_THAT(text, HasSubstr("i8[$tokens, 4] = QuantizeLinear("));
    EXPECT_THAT(text, HasSubstr("f32[$tokens, 4] = DequantizeLinear("));
    EXPECT_THAT(text, HasSubstr("{axis = -1}"));
  }
  for (const char* axis : {"1", "-2"}) {
    const std::string text = packed("4", axis);
    EXPECT_THAT(text, Not(HasSubstr("i8[$tokens")));
  }
}

TEST(PackTokens, ASumWithAValueOfTheWholeBatchIsNot) {
  const std::string text =
      after(pack_tokens(), R"(graph g(%ids: i64[batch, seq], %x: f32[batch, 1, 4]) {
  const %word: f32[9, 4] = ...  const %position: f32[9, 4] = ...  const %gamma: f32[4] = ...
  %e: f32[batch, seq, 4] = embed_norm(%ids, _, _, %word, _, %position, %gamma, _) {epsilon = 0.5}
  %sum: f32[batch, seq, 4] = Add(%e, %x)
  return %sum as y
})");
  EXPECT_THAT(text, HasSubstr("f32[batch, seq, 4] = Add("));
}

TEST(PackTokens, PaddingStaysWhereTokensAreMixedWithoutMask) {
  const auto keeps = [](const std::string& factor,
                        const std::string& reduction =
                            "f32[batch, 4] = ReduceMean(%m) {axes = [1], keepdims = 0}") {
    return after(pack_tokens(), R"(graph g(%x: f32[batch, seq, 4], %mask: i64[batch, seq]) {
  %a: f32[batch, seq, 4] = attention(%x, %x, %x, %mask) {heads = 1, p_type = "f32", scale = 0.5}
  %real: f32[batch, seq] = Cast(%mask) {to = "f32"}
  %column: f32[batch, seq, 1] = Unsqueeze(%real) {axes = [2]}
  const %half: f32[] = 0.5
  %m: f32[batch, seq, 4] = Mul(%a, )" +
                                    factor + ")\n  %y: " + reduction + R"(
  return %y as y
})")
               .find("padding_reader = \"ReduceMean") != std::string::npos;
  };
  EXPECT_TRUE(keeps("%half"));
  EXPECT_FALSE(keeps("%column"));
  EXPECT_TRUE(keeps("%half", "f32[] = ReduceMean(%m) {keepdims = 0}")) << "of all axes";
  EXPECT_TRUE(
      keeps("%half)\n  %b: f32[batch, seq, 5] = Concat(%m, %column) {axis = 2}\n"
            "  %unused: f32[batch, seq, 4] = Mul(%a, %half",
            "f32[batch, 5] = ReduceMean(%b) {axes = [1], keepdims = 0}"))
      << "beside the mask";
}

TEST(PackTokens, TheMeaningOfTheMaskGoesToTheInputs) {
  const auto packed = [](const std::string& meaning) {
    return after(pack_tokens(), R"(graph g(%x: f32[batch, seq, 4], %mask: i64[batch, seq]) {
  %a: f32[batch, seq, 4] = attention(%x, %x, %x, %mask) {heads = 1, p_type = "f32", scale = 0.5}
  %b: f32[batch, seq, 4] = attention(%a, %a, %a, %mask) {)" +
                                    meaning + R"(heads = 1, p_type = "f32", scale = 0.5}
  return %b as y
})");
  };
  EXPECT_THAT(packed(""), Not(HasSubstr("mask_is_length")));
  EXPECT_THAT(packed("mask_is_length = 1, "), Not(HasSubstr("pack_inputs")));
  const std::string text =
      after(pack_tokens(), R"(graph g(%x: f32[batch, seq, 4], %mask: i64[batch, seq]) {
  %a: f32[batch, seq, 4] = attention(%x, %x, %x, %mask) {mask_is_length = 1, heads = 1, p_type = "f32", scale = 0.5}
  return %a as y
})");
  EXPECT_THAT(text, HasSubstr("= pack_inputs(%mask, _, %mask) {mask_is_length = 1}"));
  EXPECT_EQ(text.find("mask_is_length"), text.rfind("mask_is_length")) << text;
}

TEST(PackTokens, TheWidthOfARowIsNoMultipleOfAFixedSequence) {
  const auto keeps = [](const std::string& op) {
    return after(pack_tokens(), R"(graph g(%x: f32[2, 4, 8], %mask: i64[2, 4]) {
  %a: f32[2, 4, 8] = attention(%x, %x, %x, %mask) {heads = 1, p_type = "f32", scale = 0.5}
  const %w: f32[8, 8] = ...
  %t: f32[2, 8, 4] = Transpose(%a) {perm = [0, 2, 1]}
  %flat: f32[2, 32] = Reshape(%a) {shape = [2, 32]}
  %y: )" + op + R"(
  return %y as y
})")
               .find("padding_reader") != std::string::npos;
  };
  EXPECT_FALSE(keeps("f32[2, 4] = ReduceMean(%a) {axes = [2], keepdims = 0}"));
  EXPECT_FALSE(keeps("f32[2, 4, 8] = Softmax(%a) {axis = -1}"));
  EXPECT_FALSE(keeps("f32[2, 4, 8] = MatMul(%a, %w)"));
  EXPECT_TRUE(keeps("f32[2, 8] = ReduceMean(%a) {axes = [1], keepdims = 0}"));
  EXPECT_TRUE(keeps("f32[2, 8] = ReduceMean(%t) {axes = [2], keepdims = 0}"));
  EXPECT_TRUE(keeps("f32[2, 32] = Softmax(%flat) {axis = 1}"));
}

TEST(PackTokens, AnEncoderWithoutEmbeddingIsPackedOnItsWayIn) {
  const std::string text =
      after(pack_tokens(), R"(graph g(%x: f32[batch, seq, 4], %mask: i64[batch, seq]) {
  %a: f32[batch, seq, 4] = attention(%x, %x, %x, %mask) {heads = 1, p_type = "f32", scale = 0.5}
  return %a as y
})");
  EXPECT_THAT(text, HasSubstr("f32[$tokens, 4] = pack(%x, "));
  EXPECT_EQ(text.find("= pack("), text.rfind("= pack(")) << "once for three operands\n" << text;
  EXPECT_THAT(text, HasSubstr("f32[batch, seq, 4] = unpack("));
}

TEST(PackTokens, ScoresOfPositionsHaveTheRowsOfKeys) {
  const std::string text =
      after(pack_tokens(), R"(graph g(%x: f32[batch, seq, 4], %mask: i64[batch, seq]) {
  const %p: f32[2, 2, 9] = ...  const %i: i32[1, 1, 1] = [0]
  %index: i32[1, seq, seq] = Expand(%i)
  %c: f32[batch, 2, seq, seq] = position_scores(%x, %p, %index) {heads = 2, scale = 0.5}
  %b: f32[batch, 2, seq, seq] = position_scores(%x, %p, %index, %c) {heads = 2, of_keys = 1, scale = 0.5}
  %y: f32[batch, seq, 4] = attention(%x, %x, %x, %mask, _, _, _, _, %b) {heads = 2, masks_rows = 1, p_type = "f32", scale = 0.5}
  return %y as y
})");
  EXPECT_EQ(text, normal(R"(graph g(%x: f32[batch, seq, 4], %mask: i64[batch, seq]) {
  %0: i32[$tokens], %1: i32[$tokens], %2: i32[$offsets], %3: u8[$tokens] = pack_inputs(%mask, _, %mask)
  const %p: f32[2, 2, 9] = ...  const %i: i32[1, 1, 1] = [0]
  %4: i32[1, seq, seq] = Expand(%i)
  %5: f32[$tokens, 4] = pack(%x, %2)
  %6: f32[2, $tokens, $longest] = position_scores(%5, %p, %4, _, _, _, %2) {heads = 2, scale = 0.5}
  %7: f32[2, $tokens, $longest] = position_scores(%5, %p, %4, %6, _, _, %2) {heads = 2, of_keys = 1, scale = 0.5}
  %8: f32[$tokens, 4] = attention(%5, %5, %5, _, _, _, %2, %3, %7) {heads = 2, masked = 1, p_type = "f32", scale = 0.5}
  %9: f32[batch, seq, 4] = unpack(%8, %2)
  return %9 as y
})"));
}

TEST(PackTokens, RowsThatTheMaskHidesCannotBeMixed) {
  const auto pack = [](const std::string& y) {
    ir::Graph g = ir::parse(R"(graph g(%x: f32[batch, seq, 4], %mask: i64[batch, seq]) {
  %a: f32[batch, seq, 4] = attention(%x, %x, %x, %mask) {heads = 1, masks_rows = 1, p_type = "f32", scale = 0.5}
  %y: )" + y + "\n  return %y as y\n}");
    pack_tokens().run(g);
  };
  EXPECT_NO_THROW(pack("f32[batch, seq, 4] = Relu(%a)"));
  EXPECT_EQ(error_of([&] { pack("f32[batch, 4] = ReduceMean(%a) {axes = [1], keepdims = 0}"); }),
            "ReduceMean (result 'y'): its result depends on padding rows, which the attention "
            "mask hides; apply the mask here, too, or disable the compiler passes "
            "find_attention and drop_row_mask");
}

TEST(PackTokens, RowsBeforeAttentionThatHidesRowsMayBeMixed) {
  const std::string text =
      after(pack_tokens(), R"(graph g(%x: f32[batch, seq, 4], %mask: i64[batch, seq]) {
  const %gamma: f32[4] = ...
  %n: f32[batch, seq, 4] = add_norm(%x, _, %gamma) {epsilon = 0.5}
  %a: f32[batch, seq, 4] = attention(%n, %n, %n, %mask) {heads = 1, masks_rows = 1, p_type = "f32", scale = 0.5}
  %y: f32[batch, 4] = ReduceMean(%n) {axes = [1], keepdims = 0}
  return %a as a, %y as y
})");
  EXPECT_THAT(text, HasSubstr("padding_reader = \"ReduceMean"));
}

TEST(PackTokens, ConstantRowsOfTokensArePacked) {
  const std::string text = after(pack_tokens(), R"(graph g(%x: f32[1, 6, 4], %mask: i64[1, 6]) {
  const %position: f32[1, 6, 4] = ...  const %gamma: f32[4] = ...
  %e: f32[1, 6, 4] = add_norm(%x, %position, %gamma) {epsilon = 0.5}
  %a: f32[1, 6, 4] = attention(%e, %e, %e, %mask) {heads = 1, p_type = "f32", scale = 0.5}
  return %a as y
})");
  EXPECT_THAT(text, HasSubstr("%5: f32[$tokens, 4] = pack(%c0, "));
  EXPECT_THAT(text, HasSubstr("add_norm(%4, %5, "));
}

TEST(PackTokens, AScaleIsNoRow) {
  const std::string text = after(pack_tokens(), R"(graph g(%x: f32[1, 1, 4], %mask: i64[1, 1]) {
  const %s: f32[1, 1, 1] = ...
  %a: f32[1, 1, 4] = attention(%x, %x, %x, %mask) {heads = 1, p_type = "f32", scale = 0.5}
  %q: u8[1, 1, 4] = QuantizeLinear(%a, %s)
  return %q as q
})");
  EXPECT_THAT(text, HasSubstr("u8[$tokens, 4] = QuantizeLinear(%5, %c0)"));
}

TEST(PackTokens, RowsThatNoAttentionReadsAreNotThoseOfTokens) {
  const std::string text =
      after(pack_tokens(),
            R"(graph g(%x: f32[1, 6, 4], %image: f32[1, 6, 4], %mask: i64[1, 6]) {
  const %gamma: f32[4] = ...
  %e: f32[1, 6, 4] = add_norm(%x, _, %gamma) {epsilon = 0.5}
  %h: f32[1, 6, 4] = Relu(%e)
  %a: f32[1, 6, 4] = attention(%h, %h, %h, %mask) {heads = 1, p_type = "f32", scale = 0.5}
  %i: f32[1, 6, 4] = add_norm(%image, _, %gamma) {epsilon = 0.5}
  return %a as y, %i as i
})");
  EXPECT_THAT(text, HasSubstr("= pack(%x, "));
  EXPECT_THAT(text, HasSubstr("f32[1, 6, 4] = add_norm(%image, "));
}

TEST(PackTokens, OnlyABatchOfSequencesIsPacked) {
  EXPECT_UNCHANGED(pack_tokens(), R"(graph g(%ids: i64[seq]) {
  const %word: f32[9, 4] = ...  const %position: f32[9, 4] = ...  const %gamma: f32[4] = ...
  %e: f32[seq, 4] = embed_norm(%ids, _, _, %word, _, %position, %gamma, _) {epsilon = 0.5}
  return %e as e
})");
}

TEST(PackTokens, AnInputWithTheRowsOfAttentionTellsTheSizes) {
  const std::string text =
      after(pack_tokens(),
            R"(graph g(%n: i64[batch, k], %ids: i64[batch, seq], %x: f32[batch, seq, 4]) {
  %a: f32[batch, seq, 4] = attention(%x, %x, %x, _) {heads = 1, p_type = "f32", scale = 0.5}
  return %a as y
})");
  EXPECT_THAT(text, HasSubstr("= pack_inputs(%ids, "));
}

}  // namespace
}  // namespace bertcl::passes
