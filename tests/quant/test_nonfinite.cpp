// SPDX-License-Identifier: Apache-2.0
// Calibration meets NaN: the message names the nodes whose exclusion helps.
#include "quant/calibrated_model.hpp"
#include "tests/quant/planted.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::quant::tests {
namespace {

class Nonfinite : public PlantedTest {
 protected:
  /// What the head reads is infinite.
  void SetUp() override {
    PlantedTest::SetUp();
    TinyBert bert;
    for (const char* end : {"weight", "bias"})
      change(bert.builder().graph(), std::string("bert.encoder.layer.0.output.LayerNorm.") + end,
             [](std::vector<float>& values) { values[0] = 3e38f; });
    Model::of(std::move(bert.builder().model()), "bert").save(options_.model);
  }
};

TEST_F(Nonfinite, TheNodesToExcludeAreNamed) {
  const auto names_the_head = HasSubstr("; exclude '/qa_outputs/MatMul' ('exclude') or correct");
  EXPECT_ERROR(names_the_head, calibrated());
  options_.accuracy.smooth = true;
  EXPECT_ERROR(names_the_head, calibrated());
  options_.placement.exclude = {"/qa_outputs/MatMul"};
  EXPECT_EQ(calibrated().write().quantized_nodes, 8);
}

}  // namespace
}  // namespace bertcl::quant::tests
