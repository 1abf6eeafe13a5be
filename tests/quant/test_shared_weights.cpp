// SPDX-License-Identifier: Apache-2.0
// Accuracy measures for weights that several nodes share, and for operators other than MatMul.
#include "quant/calibration/channel_statistics.hpp"
#include "quant/calibration/sample_pass.hpp"
#include "quant/transforms/gptq.hpp"
#include "tests/quant/planted.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::quant::tests {
namespace {

/// ids -> Gather -> x -> MatMul(shared) -> Tanh -> h -> MatMul(shared) -> Tanh -> r
/// r -> MatMul(own) -> Reshape -> Gemm -> out
class SharedWeights : public PlantedTest {
 protected:
  void SetUp() override {
    PlantedTest::SetUp();
    GraphBuilder g(12);
    auto* type = g.graph().add_input();
    type->set_name("input_ids");
    auto* tensor = type->mutable_type()->mutable_tensor_type();
    tensor->set_elem_type(onnx::TensorProto::INT64);
    for (const char* symbol : {"batch", "seq"})
      tensor->mutable_shape()->add_dim()->set_dim_param(symbol);
    g.node("Gather", {random(g, "table", {kTinyVocabulary, kTinyHidden}), "input_ids"}, "e");
    g.node("Tanh", {"e"}, "x");
    random(g, "shared", {kTinyHidden, kTinyHidden});
    g.node("MatMul", {"x", "shared"}, "first");
    g.node("Tanh", {"first"}, "h");
    g.node("MatMul", {"h", "shared"}, "second");
    g.node("Tanh", {"second"}, "r");
    g.node("MatMul", {"r", random(g, "own", {kTinyHidden, kTinyHidden})}, "third");
    g.node("Reshape", {"third", g.ints("rows", {-1, kTinyHidden})}, "flat");
    g.node("Gemm", {"flat", random(g, "gemm", {kTinyHidden, 4}), random(g, "bias", {4})}, "out");
    g.output("out");
    g.graph().mutable_output(0)->mutable_type()->Clear();
    g.graph().mutable_output(0)->mutable_type()->mutable_tensor_type()->set_elem_type(
        onnx::TensorProto::FLOAT);
    Model::of(std::move(g.model()), "shared").save(options_.model);
    options_.placement.op_types = {"MatMul", "Gemm"};
    options_.accuracy = {.smooth = true, .alpha = 0.5, .gptq = true, .bias_correction = true};
  }

  std::string random(GraphBuilder& g, const std::string& name,
                     const std::vector<std::int64_t>& shape) {
    std::normal_distribution<float> normal(0.0f, 0.5f);
    std::vector<float> values(static_cast<std::size_t>(ir::element_count(shape)));
    for (float& v : values) v = normal(generator_);
    return g.weight(name, shape, values);
  }

  std::vector<float> gram_of(const std::string& tensor) const {
    const Workspace workspace(options_.model, opencl::ContextFuture::open(""));
    return observe_samples(workspace, {tensor}, samples_,
                           [](opencl::Context& context, const std::string& name) {
                             return GramObserver(context, name);
                           })
        .at(tensor)
        .gram();
  }

 private:
  std::mt19937 generator_{11};
};

std::size_t different(const std::vector<std::int32_t>& a, std::span<const std::int8_t> b) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) count += a[i] != b[i];
  return count;
}

TEST_F(SharedWeights, AreRoundedForAllTheirInputs) {
  options_.accuracy.smooth = false;
  EXPECT_EQ(calibrated().write().gptq_weights, 2);
  const Model written = Model::load(options_.output);
  const ir::Tensor integers = written.read("shared_quantized"),
                   scales = written.read("shared_scale");
  const ir::Tensor weight = Model::load(options_.model).read("shared");
  const auto first = gram_of("x"), second = gram_of("h");
  std::vector<float> both;
  for (std::size_t i = 0; i < first.size(); ++i) both.push_back(first[i] + second[i]);
  const auto rounded = [&](const std::vector<float>& gram) {
    return gptq_round(weight.as<float>(), GramFactor(gram), scales.as<float>(),
                      std::vector<std::int32_t>(kTinyHidden, 0), -127, 127);
  };
  EXPECT_LE(different(rounded(both), integers.as<std::int8_t>()), 1u) << "sums in another order";
  EXPECT_GT(different(rounded(first), integers.as<std::int8_t>()), 3u);
}

TEST_F(SharedWeights, TheReportSaysWhatMeasuresLeave) {
  const Report report = calibrated().write();
  EXPECT_EQ(report.smoothed.tensors.size(), 1u);
  const auto node = [](const char* name, const char* reason) {
    return AllOf(Field(&SkippedNode::node, name), Field(&SkippedNode::reason, HasSubstr(reason)));
  };
  const auto gemm = node("out_node", "is for MatMul, not for Gemm");
  const char* shared = "several nodes read its weight";
  ASSERT_EQ(report.not_applied.size(), 3u);
  EXPECT_THAT(report.not_applied.at("smoothing"),
              ElementsAre(gemm, node("first_node", shared), node("second_node", shared)));
  EXPECT_THAT(report.not_applied.at("GPTQ"), ElementsAre(gemm));
  const char* none = "no bias follows it";
  EXPECT_THAT(report.not_applied.at("bias correction"),
              ElementsAre(gemm, node("first_node", none), node("second_node", none),
                          node("third_node", none)));
  EXPECT_EQ(report.opset_before, 12) << "of the file, not of the smoothed model";
  EXPECT_EQ(report.opset_after, 13);
}

}  // namespace
}  // namespace bertcl::quant::tests
