// SPDX-License-Identifier: Apache-2.0
// Quantization that is written out as arithmetic.
#include <fmt/format.h>

#include "check.hpp"

namespace bertcl::passes {

Pass find_quantize();
namespace {

/// `body` with %x f32[batch, 4] as its operand and %y f32[batch, 4] as its result.
std::string graph_of(std::string_view body) {
  return fmt::format("graph g(%x: f32[batch, 4]) {{\n{}  return %y as y\n}}", body);
}

/// Steps of 0.5 and back as f32 arithmetic: `whole` of x / 0.5, moved by `zero`, within the bounds.
std::string in_float(std::string_view low, std::string_view high, std::string_view zero = "3",
                     std::string_view whole = "Round") {
  return graph_of(fmt::format(R"(  const %s: f32[] = 0.5
  const %z: f32[] = {}  const %low: f32[] = {}  const %high: f32[] = {}
  %steps: f32[batch, 4] = Div(%x, %s)
  %whole: f32[batch, 4] = {}(%steps)
  %moved: f32[batch, 4] = Add(%whole, %z)
  %max: f32[batch, 4] = Max(%moved, %low)
  %q: f32[batch, 4] = Min(%max, %high)
  %d: f32[batch, 4] = Sub(%q, %z)
  %y: f32[batch, 4] = Mul(%d, %s)
)",
                              zero, low, high, whole));
}

/// The same in bytes, of %x or of what `bound` makes of it.
std::string in_bytes(std::string_view bound = "", std::string_view value = "%x") {
  return graph_of(fmt::format(R"({}  const %s: f32[] = 0.5
  const %z: i8[] = 3
  %q: i8[batch, 4] = QuantizeLinear({}, %s, %z)
  const %s_1: f32[] = 0.5  const %z_1: i8[] = 3
  %y: f32[batch, 4] = DequantizeLinear(%q, %s_1, %z_1)
)",
                              bound, value));
}

const std::string kThroughCasts = graph_of(R"(  const %inverse: f32[] = 2
  const %s: f32[] = 0.5  const %z: i32[] = 3  const %low: i32[] = -128  const %high: i32[] = 127
  %steps: f32[batch, 4] = Mul(%inverse, %x)
  %whole: f32[batch, 4] = Round(%steps)
  %ints: i32[batch, 4] = Cast(%whole) {to = "i32"}
  %moved: i32[batch, 4] = Add(%z, %ints)
  %min: i32[batch, 4] = Min(%moved, %high)
  %q: i32[batch, 4] = Max(%min, %low)
  %bytes: i8[batch, 4] = Cast(%q) {to = "i8"}
  %wide: i32[batch, 4] = Cast(%bytes) {to = "i32"}
  %d: i32[batch, 4] = Sub(%wide, %z)
  %f: f32[batch, 4] = Cast(%d) {to = "f32"}
  %y: f32[batch, 4] = Mul(%f, %s)
)");

const std::string kNarrowBytes = graph_of(R"(  const %s: f32[] = 0.5
  const %z: i8[] = 3  const %low: i32[] = -127  const %high: i32[] = 127
  %bytes: i8[batch, 4] = QuantizeLinear(%x, %s, %z)
  %wide: i32[batch, 4] = Cast(%bytes) {to = "i32"}
  %max: i32[batch, 4] = Max(%wide, %low)
  %min: i32[batch, 4] = Min(%max, %high)
  %q: i8[batch, 4] = Cast(%min) {to = "i8"}
  %s_1: f32[batch, 4] = Cast(%q) {to = "f32"}
  const %z_1: f32[] = 3
  %d: f32[batch, 4] = Sub(%s_1, %z_1)
  %y: f32[batch, 4] = Mul(%d, %s)
)");

// q >= -127 where x >= 0.5 * (-127 - 3)
const std::string kBounded = in_bytes(
    "  const %least: f32[] = -65\n  %bounded: f32[batch, 4] = Max(%x, %least)\n", "%bounded");

TEST(FindQuantize, EverySpellingBecomesOnePair) {
  const struct {
    const char* name;
    std::string before, after;
  } spellings[] = {
      {"in float", in_float("-128", "127"), in_bytes()},
      {"by the inverse of the scale, and through casts", kThroughCasts, in_bytes()},
      {"in float, with narrow bounds", in_float("-127", "127"), kBounded},
      {"in bytes, with narrow bounds", kNarrowBytes, kBounded},
  };
  for (const auto& spelling : spellings) {
    SCOPED_TRACE(spelling.name);
    EXPECT_REWRITE(find_quantize(), spelling.before, spelling.after);
  }
}

TEST(FindQuantize, WeightWithAScaleForEachRow) {
  EXPECT_REWRITE(find_quantize(), R"(graph g() {
  const %w: f32[2, 3] = [1, -2.5, 3.5, 200, -200, 0]  const %s: f32[2, 1] = [0.5, 0.25]
  const %low: f32[] = -128  const %high: f32[] = 127
  %whole: f32[2, 3] = Round(%w)
  %max: f32[2, 3] = Max(%whole, %low)
  %q: f32[2, 3] = Min(%max, %high)
  %y: f32[2, 3] = Mul(%q, %s)
  return %y as y
})",
                 R"(graph g() {
  const %w: f32[2, 3] = [1, -2.5, 3.5, 200, -200, 0]  const %one: f32[] = 1  const %z: i8[] = 0
  %q: i8[2, 3] = QuantizeLinear(%w, %one, %z)
  const %s: f32[2] = [0.5, 0.25]  const %z_1: i8[2] = [0, 0]
  %y: f32[2, 3] = DequantizeLinear(%q, %s, %z_1) {axis = 0}
  return %y as y
})");
}

constexpr std::string_view kOutside = R"(  const %s: f32[] = 0.5
  const %z: u8[] = 3  const %low: i32[] = {}  const %high: i32[] = {}
  %q: u8[batch, 4] = QuantizeLinear(%x, %s, %z)
  %i: i32[batch, 4] = Cast(%q) {{to = "i32"}}
  %max: i32[batch, 4] = Max(%i, %low)
  %min: i32[batch, 4] = Min(%max, %high)
  %y: f32[batch, 4] = Cast(%min) {{to = "f32"}}
)";

TEST(FindQuantize, OtherArithmeticStays) {
  const struct {
    const char* name;
    std::string graph;
  } others[] = {
      {"rounded down", in_float("-128", "127", "3", "Floor")},
      {"more than 8 bits", in_float("-128", "255")},
      {"bounds above 8 bits", graph_of(fmt::format(kOutside, "300", "400"))},
      {"bounds below 8 bits", graph_of(fmt::format(kOutside, "-20", "-5"))},
      {"the zero point is not an integer", in_float("-128", "127", "0.25")},
      {"the difference is taken in 8 bits, where it wraps around",
       graph_of(R"(  const %s: f32[] = 0.5
  const %z: i8[] = 3
  %q: i8[batch, 4] = QuantizeLinear(%x, %s, %z)
  %d: i8[batch, 4] = Sub(%q, %z)
  %f: f32[batch, 4] = Cast(%d) {to = "f32"}
  %y: f32[batch, 4] = Mul(%f, %f)
)")},
  };
  for (const auto& other : others) {
    SCOPED_TRACE(other.name);
    EXPECT_UNCHANGED(find_quantize(), other.graph);
  }
}

}  // namespace
}  // namespace bertcl::passes
