// SPDX-License-Identifier: Apache-2.0
// Calibration meets NaN: the message names the nodes whose exclusion helps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bertcl/error.hpp"
#include "quant/calibrated_model.hpp"
#include "tests/quant/planted.hpp"

namespace bertcl::quant {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

class Nonfinite : public tests::PlantedTest {
 protected:
  /// What the head reads is infinite.
  void SetUp() override {
    PlantedTest::SetUp();
    tests::TinyBert bert;
    for (const char* end : {"weight", "bias"})
      change(bert.builder().graph(), std::string("bert.encoder.layer.0.output.LayerNorm.") + end,
             [](std::vector<float>& values) { values[0] = 3e38f; });
    Model::of(std::move(bert.builder().model()), "bert").save(options_.model);
  }
};

TEST_F(Nonfinite, TheNodesToExcludeAreNamed) {
  const auto names_the_head =
      ThrowsMessage<Error>(HasSubstr("; exclude '/qa_outputs/MatMul' ('exclude') or correct"));
  EXPECT_THAT([&] { calibrated(); }, names_the_head);
  options_.accuracy.smooth = true;
  EXPECT_THAT([&] { calibrated(); }, names_the_head);
  options_.placement.exclude = {"/qa_outputs/MatMul"};
  EXPECT_EQ(calibrated().write().quantized_nodes, 8);
}

}  // namespace
}  // namespace bertcl::quant
