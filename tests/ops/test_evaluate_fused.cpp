// SPDX-License-Identifier: Apache-2.0
// Values of bertcl's own operators against small results worked out by hand from their definitions.
#include "bertcl/error.hpp"
#include "evaluated.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::ops {
namespace {

TEST(EvaluateFused, PoolTakesWhatTheMaskKeeps) {
  const auto pooled = [](const std::string& attributes) {
    const auto y =
        run("graph g(%x: f32[2, 3, 2], %m: i64[2, 3]) {"
            "%y: f32[] = pool(%x, %m) {" +
                attributes + "} return %y }",
            {{"x", floats({2, 3, 2}, {3, 8, 99, 99, 5, 2, 7, 7, 0, 0, 1, 1})},
             {"m", ints({2, 3}, {1, 0, 1, 0, 0, 0})}});
    return y[0].to_doubles();
  };
  EXPECT_THAT(pooled("kind = \"mean\""), ElementsAre(4, 5, 0, 0));
  EXPECT_THAT(pooled("kind = \"max\""), ElementsAre(5, 8, 0, 0));
  EXPECT_THAT(pooled("kind = \"cls\""), ElementsAre(3, 8, 0, 0));
  EXPECT_THAT(pooled("kind = \"last\", columns = 1"), ElementsAre(5, 0));
  EXPECT_THAT(pooled("kind = \"last\", columns = 1, normalize = 1"), ElementsAre(1, 0));
  EXPECT_THROW(pooled("kind = \"sum\""), Error);
  EXPECT_THROW(pooled("kind = \"mean\", columns = 3"), Error);
}

TEST(EvaluateFused, PackingBySizesAlone) {
  const auto y =
      run("graph g(%x: f32[batch, side, side]) { %i: i32[], %at: i32[], %y: i32[], %k: "
          "u8[] = pack_inputs() {rows = \"[batch, side*side]\"} return %at, %y }",
          {{"x", floats({2, 2, 2}, std::vector<float>(8))}});
  EXPECT_THAT(y[0].to_ints(), ElementsAre(0, 1, 2, 3, 0, 1, 2, 3));
  EXPECT_THAT(y[1].to_ints(), ElementsAre(0, 4, 8));
}

TEST(EvaluateFused, AttentionWithABiasAndAWindow) {
  // q = 0: the weights are those of the bias alone, here 0 or log 3, among keys in the window.
  const auto attended = [](const std::string& attributes) {
    const auto y =
        run("graph g(%q: f32[1, 3, 1], %v: f32[1, 3, 1], %bias: f32[1, 1, 3, 3]) {"
            "%y: f32[] = attention(%q, %q, %v, _, _, _, _, _, %bias) {heads = 1, p_type = \"f32\", "
            "scale = 1.0" +
                attributes + "} return %y }",
            {{"q", floats({1, 3, 1}, {0, 0, 0})},
             {"v", floats({1, 3, 1}, {4, 8, 12})},
             {"bias", floats({1, 1, 3, 3}, {0, std::log(3.0f), 0, 0, 0, 0, 0, 0, 0})}});
    return y[0].to_doubles();
  };
  EXPECT_THAT(attended(""),
              ElementsAre(DoubleNear(8, 1e-5), DoubleNear(8, 1e-5), DoubleNear(8, 1e-5)));
  EXPECT_THAT(attended(", window = 1"),
              ElementsAre(DoubleNear(7, 1e-5), DoubleNear(8, 1e-5), DoubleNear(10, 1e-5)));
  EXPECT_THROW(attended(", window = -1"), Error);
}

TEST(EvaluateFused, RotaryTurnsPairsOfAHead) {
  const auto y =
      run("graph g(%x: f32[1, 2, 4], %cos: f32[2, 2], %sin: f32[2, 2]) {"
          "%y: f32[] = rotary(%x, %cos, %sin) {heads = 2} return %y }",
          {{"x", floats({1, 2, 4}, {1, 2, 3, 4, 1, 2, 3, 4})},
           {"cos", floats({2, 2}, {1, 1, 0, 0})},
           {"sin", floats({2, 2}, {0, 0, 1, 1})}});
  EXPECT_THAT(y[0].to_doubles(), ElementsAre(1, 2, 3, 4, -2, 1, -4, 3));
}

TEST(EvaluateFused, RotaryTurnsByTheTableOfTheSequence) {
  const auto turned = [](const std::string& x, ir::Sizes shape, const std::string& operands) {
    return run("graph g(" + x + R"(, %cos: f32[2, 1, 2, 2], %sin: f32[2, 1, 2, 2]) {
  const %o: i32[3] = [0, 1, 3]
  %y: f32[] = rotary)" +
                   operands + " {heads = 1} return %y }",
               {{"x", floats(std::move(shape), {1, 2, 1, 2, 1, 2})},
                {"cos", floats({2, 1, 2, 2}, {1, 1, 9, 9, 0, 0, 2, 2})},
                {"sin", floats({2, 1, 2, 2}, {0, 0, 9, 9, 1, 1, 0, 0})}})
        .at(0)
        .to_doubles();
  };
  EXPECT_THAT(turned("%x: f32[3, 2]", {3, 2}, "(%x, %cos, %sin, %o)"),
              ElementsAre(1, 2, -2, 1, 2, 4));
  EXPECT_THROW(turned("%x: f32[3, 1, 2]", {3, 1, 2}, "(%x, %cos, %sin)"), Error);
  const auto padded = [](const std::string& table, ir::Sizes sizes) {
    return run("graph g(%x: f32[2, 2, 2], %cos: f32[" + table + "], %sin: f32[2, 1, 2, 2]) {" +
                   "%y: f32[] = rotary(%x, %cos, %sin) {heads = 1} return %y }",
               {{"x", floats({2, 2, 2}, {1, 2, 1, 2, 1, 2, 1, 2})},
                {"cos", floats(std::move(sizes), {1, 1, 3, 3, 0, 0, 2, 2})},
                {"sin", floats({2, 1, 2, 2}, {0, 0, 0, 0, 1, 1, 0, 0})}})
        .at(0)
        .to_doubles();
  };
  EXPECT_THAT(padded("2, 1, 2, 2", {2, 1, 2, 2}), ElementsAre(1, 2, 3, 6, -2, 1, 2, 4));
  EXPECT_THROW(padded("1, 1, 4, 2", {1, 1, 4, 2}), Error);
  EXPECT_THROW(padded("1, 2, 2, 2", {1, 2, 2, 2}), Error);
}

TEST(EvaluateFused, ScoresOfPositionsOfRowsAndOfKeys) {
  // One head of one column: x * table[index]. Row 0 with key 1 takes index[0][1] of x[0], or of
  // keys index[1][0] of x[1].
  const auto scores = [](const std::string& x, const std::string& operands,
                         const std::string& attributes, Tensors more,
                         const std::string& table = "f32") {
    more.emplace("p", floats({1, 1, 4}, {1, 10, 100, 1000}));
    more.emplace("i",
                 ir::Tensor::of<std::int32_t>({1, 2, 2}, std::vector<std::int32_t>{0, 1, 2, -1}));
    return run("graph g(" + x + ", %p: " + table +
                   "[1, 1, 4], %i: i32[1, 2, 2]) { %y: f32[] = position_scores(%x, %p, "
                   "%i" +
                   operands + ") {heads = 1, scale = 0.5" + attributes + "} return %y }",
               std::move(more))[0]
        .to_doubles();
  };
  const auto x = floats({1, 2, 1}, {2, 4});
  EXPECT_THAT(scores("%x: f32[1, 2, 1]", "", "", {{"x", x}}), ElementsAre(1, 10, 200, 2000));
  EXPECT_THAT(scores("%x: f32[1, 2, 1]", "", ", of_keys = 1", {{"x", x}}),
              ElementsAre(1, 200, 10, 2000));
  EXPECT_THAT(scores("%x: f32[1, 2, 1], %a: f32[1, 1, 2, 2]", ", %a", "",
                     {{"x", x}, {"a", floats({1, 1, 2, 2}, {1, 2, 3, 4})}}),
              ElementsAre(2, 12, 203, 2004));
  EXPECT_THAT(
      scores(
          "%x: u8[1, 2, 2], %s: f32[], %z: u8[]", ", _, %s, %z", ", offset = 1",
          {{"x", ir::Tensor::of<std::uint8_t>({1, 2, 2}, std::vector<std::uint8_t>{9, 7, 9, 11})},
           {"s", floats({}, {0.5f})},
           {"z", ir::Tensor::of<std::uint8_t>({}, std::vector<std::uint8_t>{3})}}),
      ElementsAre(1, 10, 200, 2000));
  const ir::Tensor bytes =
      ir::Tensor::of<std::int8_t>({1, 1, 4}, std::vector<std::int8_t>{-3, -2, 0, 10});
  EXPECT_THAT(scores("%x: f32[1, 2, 1], %t: f32[], %u: i8[]", ", _, _, _, _, %t, %u", "",
                     {{"x", x},
                      {"p", bytes},
                      {"t", floats({}, {0.5f})},
                      {"u", ir::Tensor::of<std::int8_t>({}, std::vector<std::int8_t>{-4})}},
                     "i8"),
              ElementsAre(0.5, 1, 4, 14));
  EXPECT_THROW(scores("%x: f32[1, 2, 1]", "", "", {{"x", x}, {"p", bytes}}, "i8"), Error);
  EXPECT_THROW(scores("%x: f32[1, 2, 1]", "", ", offset = 1", {{"x", x}}), Error);
}

}  // namespace
}  // namespace bertcl::ops
