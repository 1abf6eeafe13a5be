// SPDX-License-Identifier: Apache-2.0
// Bias correction: the shift of a MatMul, measured and subtracted.
#include <cmath>
#include <set>
#include <string>
#include <utility>

#include "quant/analysis/output_error.hpp"
#include "quant/calibration/calibrate.hpp"
#include "quant/presets.hpp"
#include "quant/transforms/bias_correction.hpp"
#include "runtime/session.hpp"
#include "tests/kernels_cl/device_test.hpp"
#include "tests/quant/planted.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::quant::tests {
namespace {

using bertcl::tests::device, bertcl::tests::normal_values, bertcl::tests::upload;

TEST(BiasCorrection, ObservesWhatQuantizationShifts) {
  for (const ir::DType type : {ir::DType::u8, ir::DType::i8})
    for (const std::int64_t channels : {1, 15, 16, 33}) {
      const Parameters p{0.05f, type == ir::DType::u8 ? 100 : -3};
      ShiftObserver observer(device(), "x", p, type);
      EXPECT_ERROR(HasSubstr("'x' has no range"), observer.shift());
      std::vector<double> mean(channels, 0.0), shift(channels, 0.0);
      std::int64_t rows = 0;
      for (const std::int64_t batch : {1, 5, 18}) {
        auto x = normal_values(batch * channels, 3 + static_cast<unsigned>(rows));
        for (std::size_t i = 0; i < x.size(); ++i) {
          x[i] *= 6.0f;  // some are cut off
          const std::size_t c = i % channels;
          mean[c] += x[i];
          shift[c] += (quantize_value(x[i], p, type) - p.zero_point) * 0.05 - x[i];
        }
        observer.observe(upload(x), batch, channels);
        rows += batch;
      }
      const ChannelShift found = observer.shift();
      ASSERT_EQ(found.mean.size(), static_cast<std::size_t>(channels));
      for (std::size_t c = 0; c < found.mean.size(); ++c) {
        EXPECT_NEAR(found.mean[c], mean[c] / static_cast<double>(rows), 1e-4) << channels;
        EXPECT_NEAR(found.shift[c], shift[c] / static_cast<double>(rows), 1e-4) << channels;
      }
    }
}

TEST(BiasCorrection, TheShiftIsThatOfTheMeans) {
  const std::int64_t k = 7, n = 3, rows = 40;
  const auto w = normal_values(k * n, 1), x = normal_values(rows * k, 2);
  const auto q = quantize_per_channel(ir::Tensor::of<float>({k, n}, w), 1, "w");
  const Parameters p{0.3f, 110};
  ChannelShift s{std::vector<double>(k, 0.0), std::vector<double>(k, 0.0)};
  std::vector<double> expected(n, 0.0);
  const ir::Tensor integers = q.values.converted(ir::DType::i32);
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t i = 0; i < k; ++i) {
      const double v = x[r * k + i];
      const double vq =
          (quantize_value(x[r * k + i], p, ir::DType::u8) - p.zero_point) * double{p.scale};
      s.mean[i] += v / rows;
      s.shift[i] += (vq - v) / rows;
      for (std::int64_t j = 0; j < n; ++j) {
        const double wq = integers.as<std::int32_t>()[i * n + j] * double{q.scales[j]};
        expected[j] += (vq * wq - v * w[i * n + j]) / rows;
      }
    }
  const auto found = output_shift(s, w, q);
  for (std::int64_t j = 0; j < n; ++j) EXPECT_NEAR(found[j], expected[j], 1e-9);
}

using BiasCorrections = PlantedTest;

/// Mean by token of the start logits of `model` less those of the float one.
double mean_shift(const std::filesystem::path& model, const std::filesystem::path& reference,
                  const std::vector<Sample>& samples) {
  auto ours = runtime::Session::load(model), theirs = runtime::Session::load(reference);
  double sum = 0.0, count = 0.0;
  for (const Sample& sample : samples) {
    const auto inputs = inputs_of(ours.inputs(), sample);
    const auto a = ours.run(inputs).at("start_logits").to_doubles();
    const auto b = theirs.run(inputs).at("start_logits").to_doubles();
    for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] - b[i];
    count += static_cast<double>(a.size());
  }
  return sum / count;
}

/// Weights of the head that all lie 0.4 steps above an integer, and a channel that sets the step:
/// in nearest integers the logits are lower by the sum of what is lost.
TEST_F(BiasCorrections, TakeAPlantedShiftAway) {
  TinyBert bert;
  auto& graph = bert.builder().graph();
  change(graph, "onnx::MatMul_6", [](std::vector<float>& weight) {
    for (std::size_t i = 0; i < weight.size(); ++i)
      weight[i] = i < 2 ? 127.0f : 10.4f;  // the first row sets the step to 1
  });
  change(graph, "bert.encoder.layer.0.output.LayerNorm.bias", [](std::vector<float>& beta) {
    for (float& b : beta) b = 3.0f;
    beta[0] = 0.0f;
  });
  Model::of(std::move(bert.builder().model()), "bert").save(options_.model);
  options_.placement.include = {"/qa_outputs/MatMul"};
  calibrated().write();
  const double before = mean_shift(options_.output, options_.model, samples_);
  options_.accuracy.bias_correction = true;
  const Report report = calibrated().write();
  EXPECT_EQ(report.corrected_biases, 1);
  const double after = mean_shift(options_.output, options_.model, samples_);
  EXPECT_LT(before, -10.0) << "15 channels of mean 3 lose 0.4 each";
  EXPECT_NEAR(after, 0.0, 0.01 * std::abs(before));
  const Model written = Model::load(options_.output);
  EXPECT_FALSE(written.initializer("qa_outputs.bias")) << "nothing reads it any more";
  EXPECT_TRUE(written.initializer("qa_outputs.bias_corrected"));
}

TEST_F(BiasCorrections, AreThoseOfAllMatMulsWithABias) {
  options_.accuracy.bias_correction = true;
  CalibratedModel model = calibrated();
  const OutputError error(options_.model, opencl::ContextFuture::open(""), samples_);
  EXPECT_EQ(error(model.part({})), 0.0) << "what is float keeps its bias";
  EXPECT_EQ(model.write().corrected_biases, 7);
}

TEST_F(BiasCorrections, TellWhichMatMulsHaveNone) {
  TinyBert bert;
  for (auto& node : *bert.builder().graph().mutable_node())
    if (node.name() == "/qa_outputs/Add") {
      node.set_op_type("Identity");
      node.mutable_input()->DeleteSubrange(0, 1);  // the bias
    }
  Model::of(std::move(bert.builder().model()), "bert").save(options_.model);
  options_.accuracy.bias_correction = true;
  const Report report = calibrated().write();
  EXPECT_EQ(report.corrected_biases, 6);
  const auto& skipped = report.not_applied.at("bias correction");
  ASSERT_EQ(skipped.size(), 1u);
  EXPECT_EQ(skipped[0].node, "/qa_outputs/MatMul");
  EXPECT_THAT(skipped[0].reason, HasSubstr("no bias"));

  options_.placement.op_types.insert("Add");
  options_.placement.adds = Adds::all;
  const Report of_sums = calibrated().write();
  EXPECT_EQ(of_sums.corrected_biases, 0);
  EXPECT_EQ(of_sums.not_applied.at("bias correction").size(), 7u) << "each MatMul with a weight";
}

TEST_F(BiasCorrections, LeaveMatMulsWhoseInputsAreQuantizedWhereTheyAreMade) {
  Options of_results = preset("qordered").options();
  of_results.model = options_.model;
  of_results.output = options_.output;
  of_results.accuracy.bias_correction = true;
  options_ = std::move(of_results);
  const Report report = calibrated().write();
  EXPECT_GT(report.corrected_biases, 0);
  std::set<std::string> reasons;
  for (const SkippedNode& node : report.not_applied.at("bias correction"))
    reasons.insert(node.reason);
  EXPECT_THAT(reasons, Contains("its other operand has no Q/DQ of its own"));
}

}  // namespace
}  // namespace bertcl::quant::tests
