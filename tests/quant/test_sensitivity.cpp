// SPDX-License-Identifier: Apache-2.0
// Parts of a calibrated model, and what its ops cost.
#include <algorithm>
#include <limits>
#include <set>

#include "quant/analysis/output_error.hpp"
#include "quant/analysis/sensitivity.hpp"
#include "quant/calibrated_model.hpp"
#include "tests/quant/planted.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::quant::tests {
namespace {

class Sensitivities : public PlantedTest {};

TEST_F(Sensitivities, KindsAndLayersAreThoseOfABert) {
  const CalibratedModel model = calibrated();
  std::multiset<std::string> kinds;
  for (const QuantizedOp& op : model.ops()) {
    kinds.insert(op.kind_name());
    EXPECT_EQ(op.layer, op.kind == OpKind::head ? std::nullopt : std::optional(0)) << op.node;
  }
  EXPECT_THAT(kinds, ElementsAre("attention output", "context", "feed-forward in",
                                 "feed-forward out", "head", "qkv", "qkv", "qkv", "scores"));
}

TEST_F(Sensitivities, RanksAPlantedOutlierFirst) {
  plant();
  const CalibratedModel model = calibrated();
  std::size_t last = 0, all = 0;
  const Sensitivity s = measure_sensitivity(model, samples_, [&](std::size_t done, std::size_t n) {
    EXPECT_EQ(done, ++last);
    all = n;
  });
  EXPECT_EQ(last, all);
  EXPECT_EQ(s.samples, static_cast<std::int64_t>(samples_.size()));
  ASSERT_EQ(s.ops.size(), 9u);
  EXPECT_EQ(s.ops[0].name, kOutlier);
  EXPECT_EQ(s.kinds[0].name, "feed-forward out");
  EXPECT_EQ(s.kinds[0].errors.alone, s.ops[0].errors.alone) << "the kind is this op";
  ASSERT_EQ(s.layers.size(), 1u);
  EXPECT_EQ(s.layers[0].ops.size(), 8u);
  EXPECT_GT(s.ops[0].errors.alone, 3 * s.ops[1].errors.alone);
  EXPECT_LT(s.ops[0].errors.without, 0.5 * s.all) << "in float it takes most of the error with it";
  for (std::size_t i = 1; i < s.ops.size(); ++i)
    EXPECT_GE(s.ops[i - 1].errors.alone, s.ops[i].errors.alone);
  ASSERT_TRUE(s.unnormalized);
  EXPECT_GT(s.unnormalized->all, 0.0);
  ASSERT_EQ(s.unnormalized->alone.size(), 1u) << "the context";
  const std::size_t context = s.unnormalized->alone.begin()->first;
  EXPECT_EQ(model.ops()[context].kind, OpKind::context);
  EXPECT_NE(s.alone(context, false), s.alone(context, true));
  EXPECT_EQ(s.order(false)[1], s.ops[1].ops.front());
  EXPECT_THAT(files(), ElementsAre("model.onnx")) << "models are measured in memory";
}

TEST_F(Sensitivities, APartHoldsTheFloatOpsAsTheyWere) {
  const CalibratedModel model = calibrated();
  const OutputError error(options_.model, opencl::ContextFuture::open(""), samples_);
  EXPECT_EQ(error(model.part({})), 0.0);
  const double one = error(model.part({0}));
  EXPECT_GT(one, 0.0);
  std::set<std::size_t> all;
  for (std::size_t i = 0; i < model.ops().size(); ++i) all.insert(i);
  EXPECT_GT(error(model.part(all)), one);
}

TEST_F(Sensitivities, APartOfEverythingIsTheModelThatIsWritten) {
  CalibratedModel model = calibrated();
  std::set<std::size_t> all;
  for (std::size_t i = 0; i < model.ops().size(); ++i) all.insert(i);
  const Model part = model.part(all);
  model.write();
  const OutputError error(options_.output, opencl::ContextFuture::open(""), samples_);
  EXPECT_EQ(error(part), 0.0);
}

TEST_F(Sensitivities, TheReportNamesWhatStayedInFloat) {
  CalibratedModel model = calibrated();
  const std::string name = model.ops()[2].node;
  const Report report = model.write({{2, "for a test"}});
  EXPECT_EQ(report.quantized_nodes, 8);
  const auto left = std::find_if(report.skipped.begin(), report.skipped.end(),
                                 [](const SkippedNode& l) { return l.reason == "for a test"; });
  ASSERT_NE(left, report.skipped.end());
  EXPECT_EQ(left->node, name);
  for (const TensorReport& tensor : report.tensors)
    EXPECT_EQ(std::count(tensor.nodes.begin(), tensor.nodes.end(), name), 0) << tensor.tensor;
}

class OutputErrors : public PlantedTest {
 protected:
  static constexpr float kInfinity = std::numeric_limits<float>::infinity();

  /// Puts value * factor in the place of the start logits of the first sample's first token.
  void replace_logit(float value, float factor = 1.0f) {
    TinyBert bert;
    GraphBuilder& g = bert.builder();
    for (auto& node : *g.graph().mutable_node())
      if (node.output(0) == "start_logits") node.set_output(0, "start_raw");
    g.node("Equal", {"input_ids", g.ints("chosen", {samples_[0].ids[0]})}, "is_chosen");
    g.node("Where", {"is_chosen", g.weight("value", {}, {value}), "start_raw"}, "replaced");
    g.node("Where", {"is_chosen", g.weight("factor", {}, {factor}), g.weight("same", {}, {1.0f})},
           "factors");
    g.node("Mul", {"replaced", "factors"}, "start_logits");
    Model::of(std::move(g.model()), "bert").save(options_.model);
  }
  OutputError error_of_model() const {
    return {options_.model, opencl::ContextFuture::open(""), samples_};
  }
  std::set<std::size_t> all_of(const CalibratedModel& model) const {
    std::set<std::size_t> all;
    for (std::size_t i = 0; i < model.ops().size(); ++i) all.insert(i);
    return all;
  }
};

TEST_F(OutputErrors, InfinitiesOfBothModelsAreNone) {
  replace_logit(0.0f);
  const CalibratedModel plain = calibrated();
  const double expected = error_of_model()(plain.part(all_of(plain)));
  EXPECT_GT(expected, 0.0);
  replace_logit(-kInfinity);
  const CalibratedModel masked = calibrated();
  EXPECT_EQ(error_of_model()(masked.part(all_of(masked))), expected);
}

TEST_F(OutputErrors, OfOneModelAreInfinite) {
  const OutputError plain = error_of_model();
  for (const float factor : {1.0f, 0.0f}) {  // infinity and NaN
    replace_logit(kInfinity, factor);
    EXPECT_EQ(plain(Model::load(options_.model)), kInfinity);
  }
  replace_logit(kInfinity);
  const OutputError infinite = error_of_model();
  for (const float value : {0.0f, -kInfinity}) {
    replace_logit(value);
    EXPECT_EQ(infinite(Model::load(options_.model)), kInfinity);
  }
}

TEST_F(OutputErrors, RefusesNaNOfTheFloatModel) {
  replace_logit(kInfinity, 0.0f);
  EXPECT_ERROR(HasSubstr("output 'start_logits' holds NaN"), error_of_model());
}

TEST_F(Sensitivities, RefusesNoSamples) {
  const CalibratedModel model = calibrated();
  EXPECT_ERROR(HasSubstr("no samples"), measure_sensitivity(model, {}));
}

TEST_F(Sensitivities, TheReportNamesScalesThatNoIntegerGemmTakes) {
  EXPECT_THAT(calibrated().write().without_column_scales, IsEmpty());
  options_.weights.axes = {{"MatMul", 0}};
  const std::vector<std::string> nodes = calibrated().write().without_column_scales;
  EXPECT_EQ(nodes.size(), 7u) << "those with weights";
  EXPECT_THAT(nodes, Contains(kOutlier));
}

}  // namespace
}  // namespace bertcl::quant::tests
