// SPDX-License-Identifier: Apache-2.0
// Fewer, larger launches.
#include <memory>
#include <set>

#include "check.hpp"

namespace bertcl::passes {
namespace {

TEST(FuseActivation, GeluMovesIntoTheProduct) {
  EXPECT_REWRITE(fuse_activation(), R"(graph g(%x: f32[batch, 4]) {
  const %w: f32[4, 8] = ...
  %a: f32[batch, 8] = linear(%x, %w)
  %y: f32[batch, 8] = Gelu(%a) {approximate = "tanh"}
  return %y as y
})",
                 R"(graph g(%x: f32[batch, 4]) {
  const %w: f32[4, 8] = ...
  %y: f32[batch, 8] = linear(%x, %w) {activation = "gelu_tanh"}
  return %y as y
})");
}

TEST(FuseActivation, AProductThatIsReadElsewhereStays) {
  EXPECT_UNCHANGED(fuse_activation(), R"(graph g(%x: f32[batch, 4]) {
  const %w: f32[4, 8] = ...
  %a: f32[batch, 8] = linear(%x, %w)
  %y: f32[batch, 8] = Tanh(%a)
  return %y as y, %a as a
})");
}

TEST(FuseQuantize, ProductWritesBytes) {
  EXPECT_REWRITE(fuse_quantize(), R"(graph g(%x: u8[batch, 4]) {
  const %w: i8[4, 8] = ...
  const %s: f32[] = 0.5
  %a: f32[batch, 8] = linear_q(%x, %w, _, %s, _, %s)
  const %os: f32[] = 0.25
  const %oz: u8[] = 9
  %y: u8[batch, 8] = QuantizeLinear(%a, %os, %oz)
  return %y as y
})",
                 R"(graph g(%x: u8[batch, 4]) {
  const %w: i8[4, 8] = ...
  const %s: f32[] = 0.5
  const %os: f32[] = 0.25
  const %oz: u8[] = 9
  %y: u8[batch, 8] = linear_q(%x, %w, _, %s, _, %s, %os, %oz)
  return %y as y
})");
}

TEST(FuseQuantize, NormGivesFloatAndBytes) {
  EXPECT_REWRITE(fuse_quantize(), R"(graph g(%x: f32[batch, 4]) {
  const %gamma: f32[4] = ...
  const %beta: f32[4] = ...
  %a: f32[batch, 4] = add_norm(%x, _, %gamma, %beta) {epsilon = 0.5}
  const %s: f32[] = 0.25
  %y: i8[batch, 4] = QuantizeLinear(%a, %s)
  return %y as y, %a as a
})",
                 R"(graph g(%x: f32[batch, 4]) {
  const %gamma: f32[4] = ...
  const %beta: f32[4] = ...
  const %s: f32[] = 0.25
  %a: f32[batch, 4], %y: i8[batch, 4] = add_norm(%x, _, %gamma, %beta, _, _, _, _, %s, _) {epsilon = 0.5}
  return %y as y, %a as a
})");
}

TEST(FuseQuantize, ProductWritesBytesWithAScaleForEachColumn) {
  EXPECT_REWRITE(fuse_quantize(), R"(graph g(%x: u8[batch, 4]) {
  const %w: i8[4, 2] = ...
  const %s: f32[] = 0.5
  %a: f32[batch, 2] = linear_q(%x, %w, _, %s, _, %s) {activation = "gelu"}
  const %os: f32[2] = [0.25, 0.5]
  const %oz: u8[2] = [9, 8]
  %y: u8[batch, 2] = QuantizeLinear(%a, %os, %oz) {axis = 1}
  return %y as y
})",
                 R"(graph g(%x: u8[batch, 4]) {
  const %w: i8[4, 2] = ...
  const %s: f32[] = 0.5
  const %os: f32[2] = [0.25, 0.5]
  const %oz: u8[2] = [9, 8]
  %y: u8[batch, 2] = linear_q(%x, %w, _, %s, _, %s, %os, %oz) {activation = "gelu"}
  return %y as y
})");
}

TEST(FuseQuantize, NormQuantizesForTwoKindsOfReadersAndNoMore) {
  EXPECT_REWRITE(fuse_quantize(), R"(graph g(%x: f32[batch, 2]) {
  const %gamma: f32[2] = ...
  %a: f32[batch, 2] = add_norm(%x, _, %gamma, _) {epsilon = 0.5}
  const %s: f32[] = 0.25
  %y: i8[batch, 2] = QuantizeLinear(%a, %s)
  const %s2: f32[2] = [0.5, 1]
  const %z2: u8[2] = [1, 2]
  %y2: u8[batch, 2] = QuantizeLinear(%a, %s2, %z2) {axis = 1}
  const %s3: f32[] = 2
  %y3: u8[batch, 2] = QuantizeLinear(%a, %s3)
  return %y as y, %y2 as y2, %y3 as y3
})",
                 R"(graph g(%x: f32[batch, 2]) {
  const %gamma: f32[2] = ...
  const %s: f32[] = 0.25
  const %s2: f32[2] = [0.5, 1]
  const %z2: u8[2] = [1, 2]
  %a: f32[batch, 2], %y: i8[batch, 2], %y2: u8[batch, 2] = add_norm(%x, _, %gamma, _, _, _, _, _, %s, _, %s2, %z2) {epsilon = 0.5}
  const %s3: f32[] = 2
  %y3: u8[batch, 2] = QuantizeLinear(%a, %s3)
  return %y as y, %y2 as y2, %y3 as y3
})");
}

TEST(FuseQuantize, AttentionTakesOneScale) {
  EXPECT_UNCHANGED(fuse_quantize(), R"(graph g(%q: u8[batch, seq, 2], %m: i64[batch, seq]) {
  const %s: f32[] = 0.5
  %a: f32[batch, seq, 2] = attention_q(%q, %q, %q, %m, %s, %s, _, %s, _, %s, _) {heads = 1, p_type = "u8", scale = 0.5}
  const %os: f32[2] = [0.25, 0.5]
  %y: u8[batch, seq, 2] = QuantizeLinear(%a, %os) {axis = 2}
  return %y as y
})");
}

TEST(FuseQuantize, AFloatResultThatIsNeededStays) {
  EXPECT_UNCHANGED(fuse_quantize(), R"(graph g(%x: u8[batch, 4]) {
  const %w: i8[4, 8] = ...
  const %s: f32[] = 0.5
  %a: f32[batch, 8] = linear_q(%x, %w, _, %s, _, %s)
  %y: u8[batch, 8] = QuantizeLinear(%a, %s)
  return %y as y, %a as a
})");
}

TEST(FuseQkv, WeightsAndParametersSideBySide) {
  EXPECT_REWRITE(fuse_qkv(), R"(graph g(%x: u8[batch, seq, 2], %m: i64[batch, seq]) {
  const %s: f32[] = 0.5
  const %z: u8[] = 3
  const %wq: i8[2, 2] = [1, 2, 3, 4]
  const %bq: f32[2] = [0.5, 1]
  const %wk: i8[2, 2] = [5, 6, 7, 8]
  const %bk: f32[2] = [1.5, 2]
  const %wv: i8[2, 2] = [9, 10, 11, 12]
  const %bv: f32[2] = [2.5, 3]
  const %sk: f32[2] = [0.25, 0.125]
  const %z2: u8[] = 4
  %q: u8[batch, seq, 2] = linear_q(%x, %wq, %bq, %s, %z, %s, %s, %z)
  %k: u8[batch, seq, 2] = linear_q(%x, %wk, %bk, %s, %z, %sk, %s, %z2)
  %v: u8[batch, seq, 2] = linear_q(%x, %wv, %bv, %s, %z, %s, %s, _)
  %y: f32[batch, seq, 2] = attention_q(%q, %k, %v, %m, %s, %s, %z, %s, %z, %s, %z) {heads = 1, p_type = "u8", scale = 0.5}
  return %y as y
})",
                 R"(graph g(%x: u8[batch, seq, 2], %m: i64[batch, seq]) {
  const %wq.qkv: i8[2, 6] = ...
  const %bq.qkv: f32[6] = [0.5, 1, 1.5, 2, 2.5, 3]
  const %s: f32[] = 0.5
  const %z: u8[] = 3
  const %s_0.qkv: f32[6] = [0.5, 0.5, 0.25, 0.125, 0.5, 0.5]
  const %s_1.qkv: f32[6] = [0.5, 0.5, 0.5, 0.5, 0.5, 0.5]
  const %z_0.qkv: u8[6] = [3, 3, 4, 4, 0, 0]
  %qkv: u8[batch, seq, 6] = linear_q(%x, %wq.qkv, %bq.qkv, %s, %z, %s_0.qkv, %s_1.qkv, %z_0.qkv)
  %y: f32[batch, seq, 2] = attention_q(%qkv, %qkv, %qkv, %m, %s, %s, %z, %s, %z, %s, %z) {heads = 1, offsets = [0, 2, 4], p_type = "u8", scale = 0.5}
  return %y as y
})");
}

TEST(FuseQkv, ColumnsOfTheWeightsAlternateByRow) {
  ir::Graph g = ir::parse(R"(graph g(%x: f32[batch, seq, 2]) {
  const %wq: f32[2, 2] = [1, 2, 3, 4]
  const %wk: f32[2, 2] = [5, 6, 7, 8]
  const %wv: f32[2, 2] = [9, 10, 11, 12]
  %q: f32[batch, seq, 2] = linear(%x, %wq)
  %k: f32[batch, seq, 2] = linear(%x, %wk)
  %v: f32[batch, seq, 2] = linear(%x, %wv)
  %y: f32[batch, seq, 2] = attention(%q, %k, %v, _) {heads = 1, p_type = "f32", scale = 0.5}
  return %y as y
})");
  ASSERT_TRUE(fuse_qkv().run(g));
  g.remove_dead();
  EXPECT_EQ(g.nodes().front()->inputs[1]->constant->to_doubles(),
            (std::vector<double>{1, 2, 5, 6, 9, 10, 3, 4, 7, 8, 11, 12}));
}

TEST(FuseQkv, PartsOfOneProductAreReadInPlace) {
  const std::string split = R"(graph g(%x: f32[batch, seq, 2]) {
  const %w: f32[2, 6] = ...
  %qkv: f32[batch, seq, 6] = linear(%x, %w)
  %q: f32[batch, seq, 2], %k: f32[batch, seq, 2], %v: f32[batch, seq, 2] = Split(%qkv) {axis = 2, split = [2, 2, 2]}
)";
  const auto in_place = [](const std::string& offsets) {
    return R"(graph g(%x: f32[batch, seq, 2]) {
  const %w: f32[2, 6] = ...
  %qkv: f32[batch, seq, 6] = linear(%x, %w)
  %y: f32[batch, seq, 2] = attention(%qkv, %qkv, %qkv, _) {heads = 1, offsets = [)" +
           offsets + R"(], p_type = "f32", scale = 0.5}
  return %y as y
})";
  };
  for (const auto& [operands, offsets] :
       {std::pair("%q, %k, %v", "0, 2, 4"), std::pair("%v, %q, %k", "4, 0, 2")})
    EXPECT_REWRITE(fuse_qkv(),
                   split + "  %y: f32[batch, seq, 2] = attention(" + operands +
                       ", _) {heads = 1, p_type = \"f32\", scale = 0.5}\n  return %y as y\n}",
                   in_place(offsets));
  EXPECT_UNCHANGED(
      fuse_qkv(),
      split +
          R"(  %y: f32[batch, seq, 2] = attention(%q, %k, %x, _) {heads = 1, p_type = "f32", scale = 0.5}
  return %y as y
})");
}

TEST(FuseQkv, ProductsOfDifferentOperandsStay) {
  EXPECT_UNCHANGED(fuse_qkv(), R"(graph g(%x: f32[batch, seq, 2], %o: f32[batch, seq, 2]) {
  const %w: f32[2, 2] = ...
  %q: f32[batch, seq, 2] = linear(%x, %w)
  %k: f32[batch, seq, 2] = linear(%o, %w)
  %v: f32[batch, seq, 2] = linear(%o, %w)
  %y: f32[batch, seq, 2] = attention(%q, %k, %v, _) {heads = 1, p_type = "f32", scale = 0.5}
  return %y as y
})");
}

TEST(PackTokens, EncoderWorksOnRowsAndTheHeadOnThePaddedBatch) {
  EXPECT_REWRITE(pack_tokens(), R"(graph g(%ids: i64[batch, seq], %mask: i64[batch, seq]) {
  const %word: f32[9, 4] = ...
  const %position: f32[9, 4] = ...
  const %gamma: f32[4] = ...
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
  const %word: f32[9, 4] = ...
  const %position: f32[9, 4] = ...
  const %gamma: f32[4] = ...
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

TEST(PackTokens, PositionsOfTheCallerArePackedToo) {
  const std::string text =
      after(pack_tokens(), R"(graph g(%ids: i64[batch, seq], %position_ids: i64[batch, seq]) {
  const %word: f32[9, 4] = ...
  const %position: f32[9, 4] = ...
  const %gamma: f32[4] = ...
  %e: f32[batch, seq, 4] = embed_norm(%ids, _, %position_ids, %word, _, %position, %gamma, _) {epsilon = 0.5}
  return %e as e
})");
  EXPECT_NE(text.find("= pack_inputs(%ids, _, _, %position_ids)"), std::string::npos) << text;
  EXPECT_NE(text.find("embed_norm(%0, _, %1, "), std::string::npos) << text;
}

TEST(PackTokens, UnpackedValuesStandInTheOrderOfTheGraph) {
  const std::string_view before = R"(graph g(%ids: i64[batch, seq]) {
  const %word: f32[9, 4] = ...
  const %position: f32[9, 4] = ...
  const %gamma: f32[4] = ...
  const %beta: f32[4] = ...
  const %s: f32[] = 0.5
  const %z: u8[] = 128
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
  const %word: f32[9, 4] = ...
  const %position: f32[9, 4] = ...
  const %gamma: f32[4] = ...
  const %w: f32[4, 4] = ...
  const %s: f32[] = 0.5
  %e: f32[batch, seq, 4] = embed_norm(%ids, _, _, %word, _, %position, %gamma, _) {epsilon = 0.5}
  %h: f32[batch, seq, 4] = linear(%e, %w)
  %sum: f32[batch, seq, 4] = Add(%h, %e)
  %q: u8[batch, seq, 4] = QuantizeLinear(%sum, %s)
  %d: f32[batch, seq, 4] = DequantizeLinear(%q, %s)
  %n: f32[batch, seq, 4] = add_norm(%d, _, %gamma) {epsilon = 0.5}
  return %n as y
})");
  EXPECT_NE(text.find("f32[$tokens, 4] = Add("), std::string::npos) << text;
  EXPECT_EQ(text.find("= pack("), std::string::npos) << text;
  EXPECT_EQ(text.find("= unpack("), text.rfind("= unpack(")) << "one, of the result:\n" << text;
}

TEST(PackTokens, ASumWithAValueOfTheWholeBatchIsNot) {
  const std::string text =
      after(pack_tokens(), R"(graph g(%ids: i64[batch, seq], %x: f32[batch, 1, 4]) {
  const %word: f32[9, 4] = ...
  const %position: f32[9, 4] = ...
  const %gamma: f32[4] = ...
  %e: f32[batch, seq, 4] = embed_norm(%ids, _, _, %word, _, %position, %gamma, _) {epsilon = 0.5}
  %sum: f32[batch, seq, 4] = Add(%e, %x)
  return %sum as y
})");
  EXPECT_NE(text.find("f32[batch, seq, 4] = Add("), std::string::npos) << text;
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
               .find("keeps_padding = \"ReduceMean") != std::string::npos;
  };
  EXPECT_TRUE(keeps("%half"));
  EXPECT_FALSE(keeps("%column"));
  EXPECT_TRUE(keeps("%half", "f32[] = ReduceMean(%m) {keepdims = 0}")) << "of all axes";
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
  EXPECT_EQ(packed("").find("mask_is_length"), std::string::npos);
  EXPECT_EQ(packed("mask_is_length = 1, ").find("pack_inputs"), std::string::npos);
  const std::string text =
      after(pack_tokens(), R"(graph g(%x: f32[batch, seq, 4], %mask: i64[batch, seq]) {
  %a: f32[batch, seq, 4] = attention(%x, %x, %x, %mask) {mask_is_length = 1, heads = 1, p_type = "f32", scale = 0.5}
  return %a as y
})");
  EXPECT_NE(text.find("= pack_inputs(%mask, _, %mask) {mask_is_length = 1}"), std::string::npos)
      << text;
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
               .find("keeps_padding") != std::string::npos;
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
  EXPECT_NE(text.find("f32[$tokens, 4] = pack(%x, "), std::string::npos) << text;
  EXPECT_EQ(text.find("= pack("), text.rfind("= pack(")) << "once for three operands\n" << text;
  EXPECT_NE(text.find("f32[batch, seq, 4] = unpack("), std::string::npos) << text;
}

}  // namespace
}  // namespace bertcl::passes
