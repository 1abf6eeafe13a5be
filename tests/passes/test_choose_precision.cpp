// SPDX-License-Identifier: Apache-2.0
// What linear and attention compute in, and which values are stored in bf16.
#include <fmt/format.h>

#include "check.hpp"
#include "ops/interpret.hpp"
#include "tests/support/parse_graph.hpp"

namespace bertcl::passes {

Pass choose_precision(const Precision& precision);
namespace {

const Pass bf16 = choose_precision({ir::DType::bf16});

constexpr std::string_view two_norms = R"(graph g(%x: f32[batch, 4]) {
  const %w: f32[4, 4] = [1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8]
  const %g: f32[4] = [1, 1, 1, 1]
  %a: f32[batch, 4] = linear(%x, %w)
  %b: f32[batch, 4] = linear(%a, %w)
  %n: f32[batch, 4] = add_norm(%b, %x, %g, %g) {epsilon = 0.5}
  %c: f32[batch, 4] = linear(%n, %w)
  %m: f32[batch, 4] = add_norm(%c, %n, %g, %g) {epsilon = 0.5}
  %o: f32[batch, 4] = add_norm(%c, %x, %g, %g) {epsilon = 0.5}
  %p: f32[batch, 4] = linear(%o, %w)
  return %m as y, %p as z
})";

TEST(ChoosePrecision, ValuesThatOnlyLinearReadsAreStoredInBf16) {
  EXPECT_REWRITE(bf16, two_norms, R"(graph g(%x: f32[batch, 4]) {
  const %w: f32[4, 4] = [1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8]
  const %g: f32[4] = [1, 1, 1, 1]
  %a: bf16[batch, 4] = linear(%x, %w) {precision = "bf16"}
  %b: f32[batch, 4] = linear(%a, %w) {precision = "bf16"}
  %n: f32[batch, 4], %n16: bf16[batch, 4] = add_norm(%b, %x, %g, %g) {epsilon = 0.5}
  %c: f32[batch, 4] = linear(%n16, %w) {precision = "bf16"}
  %m: f32[batch, 4] = add_norm(%c, %n, %g, %g) {epsilon = 0.5}
  %o: f32[batch, 4], %o16: bf16[batch, 4] = add_norm(%c, %x, %g, %g) {epsilon = 0.5}
  %p: f32[batch, 4] = linear(%o16, %w) {precision = "bf16"}
  return %m as y, %p as z
})");
}

TEST(ChoosePrecision, Bf16KeepsEightBits) {
  const ops::Tensors inputs{
      {"x", ir::Tensor::of<float>({2, 4}, {0.5f, -1.25f, 3, 0.1f, 7, -0.3f, 2, 1})}};
  ir::Graph graph = ir::parse(two_norms);
  const auto exact = ops::interpret(graph, inputs);
  bf16.run(graph);
  const auto rounded = ops::interpret(graph, inputs);
  double largest = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    const auto a = exact[i].to_doubles(), b = rounded[i].to_doubles();
    for (std::size_t j = 0; j < a.size(); ++j) {
      EXPECT_NEAR(b[j], a[j], 0.02 * std::abs(a[j]) + 0.02);
      largest = std::max(largest, std::abs(b[j] - a[j]));
    }
  }
  EXPECT_GT(largest, 0);
}

/// Attention of 4 columns between two linears, its operands in one of 12.
std::string packed_attention(int heads, std::string_view extra_user) {
  return fmt::format(R"(graph g(%x: f32[tokens, 4], %offsets: i32[offsets], %mask: u8[tokens]) {{
  const %w: f32[4, 12] = ...  const %v: f32[4, 4] = ...
  %qkv: f32[tokens, 12] = linear(%x, %w)
  %a: f32[tokens, 4] = attention(%qkv, %qkv, %qkv, _, _, _, %offsets, %mask) {{heads = {}, offsets = [0, 4, 8], scale = 0.5}}
  %y: f32[tokens, 4] = linear(%a, %v)
  {}
}})",
                     heads, extra_user);
}

TEST(ChoosePrecision, AttentionBetweenLinearsIsInBf16) {
  EXPECT_REWRITE(bf16, packed_attention(2, "return %y as y"),
                 R"(graph g(%x: f32[tokens, 4], %offsets: i32[offsets], %mask: u8[tokens]) {
  const %w: f32[4, 12] = ...  const %v: f32[4, 4] = ...
  %qkv: bf16[tokens, 12] = linear(%x, %w) {precision = "bf16"}
  %a: bf16[tokens, 4] = attention(%qkv, %qkv, %qkv, _, _, _, %offsets, %mask) {heads = 2, offsets = [0, 4, 8], precision = "bf16", scale = 0.5}
  %y: f32[tokens, 4] = linear(%a, %v) {precision = "bf16"}
  return %y as y
})");
}

TEST(ChoosePrecision, AttentionTellsWhyItStaysInF32) {
  const auto after_of = [](int heads, const char* extra_user) {
    return after(bf16, packed_attention(heads, extra_user));
  };
  for (const auto& [heads, users, reason] :
       {std::tuple{4, "return %y as y", "bf16: its head size is odd"},
        std::tuple{2, "return %y as y, %a as z", "bf16: its result is read in fp32"},
        std::tuple{2, "return %y as y, %qkv as z",
                   "bf16: its operands are not results of linear with a single use"}}) {
    const std::string text = after_of(heads, users);
    EXPECT_THAT(text, HasSubstr(fmt::format("precision_reason = \"{}\"", reason)));
    EXPECT_THAT(text, Not(HasSubstr(": bf16[")));
  }
}

TEST(ChoosePrecision, Fp16IsAMatterOfKernels) {
  const Pass fp16 = choose_precision({ir::DType::f16});
  std::string text = after(fp16, two_norms);
  EXPECT_THAT(text, HasSubstr("linear(%x, %c0) {precision = \"fp16\"}"));
  text += after(fp16, packed_attention(2, "return %y as y"));
  EXPECT_THAT(text, HasSubstr("offsets = [0, 4, 8], precision = \"fp16\""));
  EXPECT_THAT(text, Not(HasSubstr(": f16[")));
}

TEST(ChoosePrecision, F32IsTheDefaultAndTellsWhyNothingElse) {
  EXPECT_UNCHANGED(choose_precision({}), two_norms);
  const std::string text = after(choose_precision({ir::DType::f32, "no unit"}), two_norms);
  EXPECT_THAT(text, HasSubstr("precision_reason = \"no unit\""));
  EXPECT_THAT(text, Not(HasSubstr("precision =")));
}

}  // namespace
}  // namespace bertcl::passes
