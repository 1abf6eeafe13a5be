// SPDX-License-Identifier: Apache-2.0
// Overrides of individual tensors: what a file may say, and what becomes of it.
#include <fstream>

#include "quant/encoding/encode.hpp"
#include "tests/quant/graphs.hpp"
#include "tests/support/matchers.hpp"
#include "tests/support/scratch_folder.hpp"

namespace bertcl::quant::tests {
namespace {

/// The overrides of a file with this text.
Overrides read(const std::string& text) {
  const bertcl::tests::ScratchFolder folder;
  std::ofstream(folder / "overrides.json") << text;
  return read_overrides(folder / "overrides.json");
}

TEST(ReadOverrides, EveryKey) {
  const Overrides all = read(R"({
    "x": [{"quant_type": "QUInt8", "scale": [0.5], "zero_point": 3}],
    "w": [{"axis": -1, "quant_type": "QInt8", "symmetric": true, "reduce_range": false,
           "rmin": -1, "rmax": 2}, {"rmin": -3, "rmax": 4}]})");
  const TensorOverride& x = all.at("x");
  EXPECT_FALSE(x.axis);
  ASSERT_EQ(x.channels.size(), 1u);
  EXPECT_EQ(x.channels[0].type, ir::DType::u8);
  EXPECT_EQ(x.channels[0].parameters, (Parameters{0.5f, 3}));
  const TensorOverride& w = all.at("w");
  EXPECT_EQ(w.axis, -1);
  ASSERT_EQ(w.channels.size(), 2u);
  EXPECT_EQ(w.channels[1].type, ir::DType::i8) << "said by the first";
  EXPECT_EQ(w.channels[1].symmetric, true);
  EXPECT_EQ(w.channels[1].reduced, false);
  EXPECT_EQ(w.channels[1].low, -3.0f);
  EXPECT_EQ(w.channels[1].high, 4.0f);
}

TEST(ReadOverrides, MessagesNameThePlace) {
  const auto refusal = [](const std::string& text) { return error_of([&] { read(text); }); };
  EXPECT_THAT(refusal("[]"), HasSubstr("is of type array, expected object"));
  EXPECT_THAT(refusal("{"), HasSubstr(".json: invalid JSON: unexpected end"));
  EXPECT_THAT(refusal(R"({"x": [{"rmin": 1e999}]})"), HasSubstr(".json: invalid JSON"));
  EXPECT_THAT(refusal(R"({"x": 1})"), HasSubstr("x is of type number, expected array"));
  EXPECT_THAT(refusal(R"({"x": []})"), HasSubstr("x is empty, expected a list"));
  EXPECT_THAT(refusal(R"({"x": [4]})"), HasSubstr("x[0] is of type number, expected object"));
  EXPECT_THAT(refusal(R"({"x": [{"convert": {}}]})"), HasSubstr("x[0].convert is an unknown key"));
  EXPECT_THAT(refusal(R"({"x": [{"quant_type": "QInt4"}]})"),
              HasSubstr("x[0].quant_type is \"QInt4\""));
  EXPECT_THAT(refusal(R"({"x": [{"rmin": "low"}]})"),
              HasSubstr("x[0].rmin is of type string, expected number"));
  EXPECT_THAT(refusal(R"({"x": [{"rmin": 1e300}]})"), HasSubstr("x[0].rmin is 1e+300, expected"));
  EXPECT_THAT(refusal(R"({"x": [{"scale": 1, "zero_point": 1e6}]})"),
              HasSubstr("expected integer"));
  EXPECT_THAT(refusal(R"({"x": [{"scale": 1, "zero_point": 1000000}]})"),
              HasSubstr("x[0].zero_point is 1000000, expected"));
  EXPECT_THAT(refusal(R"({"x": [{"rmin": 1, "rmax": 0}]})"), HasSubstr("above rmax"));
  EXPECT_THAT(refusal(R"({"x": [{"scale": 1}]})"), HasSubstr("x[0].scale needs both"));
  EXPECT_THAT(refusal(R"({"x": [{"zero_point": 1}]})"), HasSubstr(".zero_point needs both"));
  EXPECT_THAT(refusal(R"({"x": [{"scale": 0, "zero_point": 1}]})"), HasSubstr("above 0"));
  EXPECT_THAT(refusal(R"({"x": [{"scale": 1, "zero_point": 1.5}]})"),
              HasSubstr("x[0].zero_point is of type number, expected integer"));
  EXPECT_THAT(refusal(R"({"x": [{"scale": 1, "zero_point": 1, "symmetric": true}]})"),
              HasSubstr("x[0].symmetric has no effect"));
  EXPECT_THAT(refusal(R"({"x": [{}, {}]})"), HasSubstr("x[0] needs an axis"));
  EXPECT_THAT(refusal(R"({"x": [{"axis": 0, "rmin": 0}]})"), HasSubstr(".rmin needs both"));
  EXPECT_THAT(refusal(R"({"x": [{"axis": 0}, {"axis": 1}]})"), HasSubstr("x[1].axis differs"));
  EXPECT_THAT(refusal(R"({"x": [{"axis": 0}, {"quant_type": "QInt8"}]})"),
              HasSubstr("x[1].quant_type differs"));
  EXPECT_THAT(refusal(R"({"x": [{"axis": 0, "scale": 1, "zero_point": 0}, {}]})"),
              HasSubstr("x[1] and entry 0"));
  EXPECT_ERROR(HasSubstr("/no/such/file.json: cannot open"), read_overrides("/no/such/file.json"));
  EXPECT_ERROR(HasSubstr("/tmp: is a directory"), read_overrides("/tmp"));
}

/// x -> MatMul(w) -> y with w = [[1, -2], [3, 4]].
Encodings encoded(const std::string& overrides, EncodeOptions options = {}) {
  GraphBuilder g;
  g.input("x", {2, 2});
  g.node("MatMul", {"x", g.weight("w", {2, 2}, {1, -2, 3, 4})}, "y");
  g.output("y");
  Analysed a(std::move(g));
  Placement p = place(a);
  options.overrides = read(overrides);
  return encode(p, a.index, a.constants, {{"x", {-1.0f, 2.0f}}}, options);
}
const std::pair<std::string, Role> kX{"x", Role::activation}, kW{"w", Role::weight};

TEST(Overrides, OfAnActivation) {
  auto x = encoded(R"({"x": [{"scale": 0.5, "zero_point": 3}]})").at(kX);
  EXPECT_EQ(x.parameters, (Parameters{0.5f, 3}));
  EXPECT_EQ(x.type, ir::DType::u8);
  EXPECT_EQ(x.range, (Range{-1.5f, 126.0f}));
  x = encoded(R"({"x": [{"rmax": 4.1}]})").at(kX);
  EXPECT_EQ(x.range, (Range{-1.0f, 4.1f}));
  EXPECT_EQ(x.parameters.scale, 0.02f);
  x = encoded(R"({"x": [{"quant_type": "QInt8", "symmetric": true}]})").at(kX);
  EXPECT_EQ(x.type, ir::DType::i8);
  EXPECT_EQ(x.parameters, (Parameters{2.0f / 127.0f, 0}));
}

TEST(Overrides, OfAWeight) {
  auto w = encoded(R"({"w": [{"symmetric": false}]})").at(kW).constant;
  EXPECT_THAT(w.scales, ElementsAre(6.0f / 255.0f)) << "without an axis: per tensor";
  EXPECT_EQ(w.axis, -1);
  w = encoded(R"({"w": [{"axis": 0}]})").at(kW).constant;
  EXPECT_THAT(w.scales, ElementsAre(2.0f / 127.0f, 4.0f / 127.0f));
  EXPECT_EQ(w.axis, 0);
  w = encoded(R"({"w": [{"axis": -1, "reduce_range": true}]})").at(kW).constant;
  EXPECT_THAT(w.scales, ElementsAre(3.0f / 64.0f, 4.0f / 64.0f));
  w = encoded(R"({"w": [{"axis": 1, "quant_type": "QUInt8"}]})").at(kW).constant;
  EXPECT_EQ(w.values.dtype(), ir::DType::u8);
  EXPECT_THAT(w.scales, ElementsAre(6.0f / 255.0f, 8.0f / 255.0f));
  EXPECT_THAT(w.zero_points, ElementsAre(128, 128)) << "symmetric, as onnxruntime";
  w = encoded(R"({"w": [{"axis": 1, "quant_type": "QUInt8", "symmetric": false}]})")
          .at(kW)
          .constant;
  EXPECT_THAT(w.scales, ElementsAre(3.0f / 255.0f, 6.0f / 255.0f));
  EXPECT_THAT(w.zero_points, ElementsAre(0, 85));
  w = encoded(R"({"w": [{"quant_type": "QUInt8"}]})").at(kW).constant;
  EXPECT_THAT(w.scales, ElementsAre(6.0f / 255.0f)) << "asymmetric, as onnxruntime";
  w = encoded(R"({"w": [{"axis": 1, "rmin": -1, "rmax": 1}, {"rmin": -5.08, "rmax": 0}]})")
          .at(kW)
          .constant;
  EXPECT_THAT(w.scales, ElementsAre(1.0f / 127.0f, 0.04f));
  EXPECT_THAT(w.values.to_ints(), ElementsAre(127, -50, 127, 100)) << "saturated";
  w = encoded(R"({"w": [{"scale": 1, "zero_point": -2}]})").at(kW).constant;
  EXPECT_THAT(w.values.to_ints(), ElementsAre(-1, -4, 1, 2));
  EncodeOptions four;
  four.weights.scheme.bits = 4;
  w = encoded(R"({"w": [{"scale": 0.25, "zero_point": 0}]})", four).at(kW).constant;
  EXPECT_THAT(w.values.to_ints(), ElementsAre(4, -7, 7, 7)) << "4 bits";
}

TEST(Overrides, WhatDoesNotFitTheTensor) {
  const auto refusal = [](const std::string& overrides) {
    return error_of([&] { encoded(overrides); });
  };
  EXPECT_THAT(refusal(R"({"z": [{"symmetric": true}]})"),
              HasSubstr("\"z\": no tensor of this name is quantized"));
  EXPECT_THAT(refusal(R"({"x": [{"axis": 0}]})"), HasSubstr("an axis is for weights"));
  EXPECT_THAT(refusal(R"({"x": [{"reduce_range": true}]})"), HasSubstr("reduce_range"));
  EXPECT_THAT(refusal(R"({"x": [{"scale": 1, "zero_point": 256}]})"),
              HasSubstr("its zero_point is 256, but u8 ranges from 0 to 255"));
  EXPECT_THAT(refusal(R"({"w": [{"rmin": 5}]})"),
              HasSubstr("\"w\": [5, 4] is not a range that can be quantized"));
  EXPECT_THAT(refusal(R"({"x": [{"rmin": 5}]})"), HasSubstr("\"x\": [5, 2] is not"));
  EXPECT_THAT(refusal(R"({"w": [{"axis": 2}]})"), HasSubstr("2 dimensions"));
  EXPECT_THAT(refusal(R"({"w": [{"axis": 0}, {}, {}]})"), HasSubstr("3 entries for 2 channels"));
  EXPECT_THAT(refusal(R"({"w": [{"scale": 1, "zero_point": -200}]})"), HasSubstr("i8 ranges from"));
}

}  // namespace
}  // namespace bertcl::quant::tests
