// SPDX-License-Identifier: Apache-2.0
// The fewest ops in float within a bound.
#include <cmath>
#include <functional>
#include <numeric>

#include "quant/analysis/float_fallback.hpp"
#include "quant/analysis/output_error.hpp"
#include "quant/analysis/sensitivity.hpp"
#include "tests/quant/planted.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::quant::tests {
namespace {

class FloatFallbacks : public PlantedTest {
 protected:
  static std::vector<std::size_t> all_of(const CalibratedModel& model) {
    std::vector<std::size_t> order(model.ops().size());
    std::iota(order.begin(), order.end(), 0);
    return order;
  }
  static RankOps in_order(const CalibratedModel& model) {
    return [order = all_of(model)](bool) { return order; };
  }
};

/// The number of MatMuls that read quantized values, as the drop.
double quantized_matmuls(const Model& model) {
  const GraphIndex index(model.graph());
  int count = 0;
  for (const auto& node : model.graph().node()) {
    if (!is_op(node, "MatMul")) continue;
    const int producer = index.producer(node.input(0));
    count += producer >= 0 && is_op(index.node(producer), "DequantizeLinear");
  }
  return count;
}

TEST_F(FloatFallbacks, LeavesThePlantedOpAlone) {
  plant();
  const CalibratedModel model = calibrated();
  const Sensitivity s = measure_sensitivity(model, samples_);
  const std::size_t first = s.order(false)[0];
  ASSERT_EQ(model.ops()[first].node, kOutlier);
  const OutputError error(options_.model, opencl::ContextFuture::open(""), samples_);
  const double most = 1.5 * s.ops[0].errors.without;
  ASSERT_LT(most, s.all);
  const FloatFallback found = find_float_fallback(
      model, [&](bool unnormalize) { return s.order(unnormalize); }, {most}, std::cref(error));
  EXPECT_THAT(found.float_ops, ElementsAre(first));
  EXPECT_LE(found.drop, most);
}

TEST_F(FloatFallbacks, FindsTheFewestForEveryBound) {
  const CalibratedModel model = calibrated();
  const auto order = all_of(model);
  ASSERT_EQ(order.size(), 9u);
  for (int most = 1; most <= 9; ++most) {
    std::size_t last = 0;
    const FloatFallback found = find_float_fallback(
        model, in_order(model), {1.0 * most}, quantized_matmuls, [&](const FallbackTrial& step) {
          ++last;
          EXPECT_EQ(step.drop, 9.0 - static_cast<double>(step.float_ops));
        });
    EXPECT_EQ(found.drop, most);
    EXPECT_EQ(found.float_ops, std::vector(order.begin(), order.end() - most)) << most;
    EXPECT_EQ(found.steps.size(), last);
    EXPECT_LE(last, 3u + 4u) << "bisection";
    EXPECT_FALSE(found.unnormalized) << "it does not help";
  }
  EXPECT_THAT(files(), ElementsAre("model.onnx"));
}

TEST_F(FloatFallbacks, LeavesNothingWhereAllHolds) {
  const CalibratedModel model = calibrated();
  bool ranked = false;
  const RankOps rank = [&](bool) {
    ranked = true;
    return all_of(model);
  };
  FloatFallback found = find_float_fallback(model, rank, {9.5}, quantized_matmuls);
  EXPECT_THAT(found.float_ops, IsEmpty());
  EXPECT_EQ(found.steps.size(), 1u);
  EXPECT_FALSE(ranked) << "which takes minutes";
  found = find_float_fallback(model, rank, {8.5}, quantized_matmuls);
  EXPECT_EQ(found.float_ops.size(), 1u);
  EXPECT_TRUE(ranked);
}

TEST_F(FloatFallbacks, UnnormalizesSoftmaxBeforeAnOpStaysInFloat) {
  CalibratedModel model = calibrated();
  ASSERT_TRUE(model.can_unnormalize());
  const auto softmaxes = [](const Model& part) {
    return find_node(part.graph(), "Softmax") ? 1.0 : 0.0;
  };
  const FloatFallback found = find_float_fallback(model, in_order(model), {0.5}, softmaxes);
  EXPECT_TRUE(found.unnormalized);
  EXPECT_THAT(found.float_ops, IsEmpty());
  ASSERT_EQ(found.steps.size(), 2u);
  EXPECT_EQ(model.write({}, found.unnormalized).unnormalized_softmaxes, 1);

  options_.softmax = Softmax::plain;
  EXPECT_FALSE(calibrated().can_unnormalize()) << "asked for";

  // It is the model that the option gives.
  const auto unnormalized = options_.output;
  options_.output = folder_ / "r.onnx";
  options_.softmax = Softmax::unnormalized;
  CalibratedModel asked = calibrated();
  EXPECT_FALSE(asked.can_unnormalize());
  asked.write();
  EXPECT_EQ(OutputError(unnormalized, opencl::ContextFuture::open(""),
                        samples_)(Model::load(options_.output)),
            0.0);
}

TEST_F(FloatFallbacks, RefusesABoundThatFloatMisses) {
  const CalibratedModel model = calibrated();
  const auto find = [&](double most, double drop) {
    find_float_fallback(model, in_order(model), {most}, [&](const auto&) { return drop; });
  };
  EXPECT_ERROR(AllOf(HasSubstr("-0.25"), HasSubstr("all 9 ops in float")), find(-0.25, 0.0));
  EXPECT_ERROR(HasSubstr("nan"), find(1.0, NAN));
  EXPECT_THAT(files(), ElementsAre("model.onnx"));
}

/// What is left then is the float model.
TEST_F(FloatFallbacks, RefusesABoundThatLeavesNothingToQuantize) {
  const CalibratedModel model = calibrated();
  EXPECT_ERROR(AllOf(HasSubstr("nothing to quantize"), HasSubstr("drop within 0.5:"),
                     HasSubstr("is 1 with 8 of 9 ops in float")),
               find_float_fallback(model, in_order(model), {0.5}, quantized_matmuls));
  EXPECT_ERROR(
      AllOf(HasSubstr("error within 0.5 %:"), HasSubstr("is 1 % with 8 of 9 ops in float")),
      find_float_fallback(model, in_order(model), {0.5, "error", "%"}, quantized_matmuls));
  // The least was reached before.
  EXPECT_ERROR(HasSubstr("is 0.75 with 4 of 9 ops in float"),
               find_float_fallback(model, in_order(model), {0.5}, [](const Model& part) {
                 const auto left = 9 - static_cast<int>(quantized_matmuls(part));
                 return left == 9 ? 0.0 : left == 4 ? 0.75 : 2.0;
               }));
  EXPECT_THAT(files(), ElementsAre("model.onnx"));
}

/// Where more ops in float are worse by chance, what is chosen still was measured and holds.
TEST_F(FloatFallbacks, HoldsAlsoWhereTheDropIsNotMonotone) {
  const CalibratedModel model = calibrated();
  const FloatFallback found =
      find_float_fallback(model, in_order(model), {1.0}, [](const Model& part) {
        const auto left = 9 - static_cast<int>(quantized_matmuls(part));
        return left == 2 || left == 6 || left == 9 ? 0.5 : 2.0;
      });
  EXPECT_EQ(found.drop, 0.5);
  EXPECT_THAT(found.float_ops.size(), AnyOf(2u, 6u, 9u));
}

}  // namespace
}  // namespace bertcl::quant::tests
