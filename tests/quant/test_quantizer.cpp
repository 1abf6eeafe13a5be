// SPDX-License-Identifier: Apache-2.0
// The whole way on the default model: calibrate on the device, write, read again, run.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <random>

#include "ir/port.hpp"
#include "onnx/read_model.hpp"
#include "opencl/device/capabilities.hpp"
#include "ops/interpret.hpp"
#include "quant/calibration/calibrate.hpp"
#include "quant/quantizer.hpp"
#include "runtime/session.hpp"
#include "tests/quant/graphs.hpp"
#include "tests/support/files.hpp"
#include "tests/support/matchers.hpp"
#include "tests/support/scratch_folder.hpp"

namespace bertcl::quant::tests {
namespace {

std::filesystem::path default_model() {
  return bertcl::tests::source_file("models/minilm-l6-squad/model.onnx");
}

/// Sequences of common words, the same at each run.
std::vector<Sample> samples(std::size_t count) {
  std::mt19937 generator(3);
  std::vector<Sample> all(count);
  for (std::size_t s = 0; s < count; ++s) {
    const std::size_t question = 6 + s % 5, context = 20 + 37 * s % 90;
    all[s].ids = {101};
    for (std::size_t i = 0; i < question + context + 1; ++i)
      all[s].ids.push_back(i == question ? 102 : 1996 + generator() % 8000);
    all[s].ids.push_back(102);
    for (std::size_t i = 0; i < all[s].ids.size(); ++i)
      all[s].token_type_ids.push_back(i > question + 1);
  }
  return all;
}

SampleSource source(std::vector<Sample> all) {
  return [all = std::move(all), next = std::size_t{0}]() mutable -> std::optional<Sample> {
    if (next == all.size()) return std::nullopt;
    return all[next++];
  };
}

class Quantizer : public testing::Test {
 protected:
  void SetUp() override {
    options_.model = default_model();
    options_.output = folder_ / "q.onnx";
  }

  const bertcl::tests::ScratchFolder folder_;
  Options options_;
};

TEST_F(Quantizer, DefaultModel) {
  const auto data = samples(6);
  std::int64_t last = 0;
  const Report r = quantize(options_, source(data), [&](std::string_view, std::int64_t n) {
    if (n == 0)
      EXPECT_EQ(last, 0) << "kernels are built before the first sample";
    else
      EXPECT_EQ(n, ++last);
  });
  EXPECT_EQ(last, 6);
  EXPECT_EQ(r.samples, 6);
  EXPECT_EQ(r.quantized_nodes, 49);  // 8 MatMuls in each of 6 layers, and the head
  EXPECT_EQ(r.count(Role::weight), 37);
  EXPECT_EQ(r.count(Role::activation), 49);
  EXPECT_EQ(r.skipped.size(), 13u);  // the residual Adds
  EXPECT_EQ(r.data_sha256.size(), 64u);
  EXPECT_LT(r.written_bytes, r.float_bytes / 2);
  EXPECT_EQ(r.written_bytes,
            static_cast<std::int64_t>(std::filesystem::file_size(options_.output)));
  for (const TensorReport& t : r.tensors) {
    EXPECT_LT(t.range.low, t.range.high) << t.tensor;
    EXPECT_GT(t.scale, 0.0f) << t.tensor;
  }
  const auto probabilities = std::find_if(r.tensors.begin(), r.tensors.end(), [](const auto& t) {
    return t.tensor.find("Softmax") != std::string::npos;
  });
  ASSERT_NE(probabilities, r.tensors.end());
  EXPECT_GE(probabilities->range.low, 0.0f);
  EXPECT_LE(probabilities->range.high, 1.0f);

  const Model written = Model::load(options_.output);
  std::map<std::string, std::string> metadata;
  for (const auto& m : written.proto().metadata_props()) metadata[m.key()] = m.value();
  EXPECT_EQ(metadata["bertcl.quantizer.method"], "minmax");
  EXPECT_EQ(metadata["bertcl.quantizer.samples"], "6");
  EXPECT_EQ(metadata["bertcl.quantizer.data_sha256"], r.data_sha256);
}

/// Start logits of a model on one sample.
std::vector<double> logits(const std::filesystem::path& path, const Sample& sample,
                           const runtime::SessionOptions& options = {}) {
  auto session = runtime::Session::load(path, options);
  return session.run(inputs_of(session.inputs(), sample)).at("start_logits").to_doubles();
}

TEST_F(Quantizer, TheWrittenModelAnswersAsTheFloatOne) {
  const auto data = samples(6);
  quantize(options_, source(data));
  const auto expected = logits(options_.model, data[2]), actual = logits(options_.output, data[2]);
  const auto [low, high] = std::minmax_element(expected.begin(), expected.end());
  ASSERT_EQ(actual.size(), expected.size());
  double error = 0.0;
  for (std::size_t i = 0; i < actual.size(); ++i)
    error += std::abs(actual[i] - expected[i]) / static_cast<double>(actual.size());
  EXPECT_LT(error, 0.06 * (*high - *low))
      << "mean difference of the logits; range " << *low << " to " << *high;
  EXPECT_GT(error, 0.0) << "int8 leaves a trace: was anything quantized?";
}

TEST_F(Quantizer, TheWrittenModelGivesTheSameBitsInOneLaunchAndInMany) {
  const auto data = samples(6);
  quantize(options_, source(data));
  for (const std::string variant : {"", "x86_vnni_small_m", "x86_vnni", "x86_vnni,x86_avx_vnni",
                                    "x86_vnni,x86_avx_vnni,x86_avx2"}) {
    const auto run = [&](const std::string& disabled) {
      runtime::SessionOptions options;
      options.disabled_kernels = disabled;
      auto session = runtime::Session::load(options_.output, options);
      EXPECT_EQ(static_cast<bool>(session.plan().persistent_kernel),
                disabled == variant && session.context().capabilities().persistent_kernel);
      return session.run(inputs_of(session.inputs(), data[1]));
    };
    EXPECT_EQ(run(variant), run(variant.empty() ? "persistent" : variant + ",persistent"))
        << variant;
  }
}

runtime::SessionOptions without(const char* pass) {
  runtime::SessionOptions options;
  options.disabled_passes = {pass};
  return options;
}

/// Mean difference of the start logits of two models.
double distance(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += std::abs(a[i] - b[i]);
  return sum / static_cast<double>(a.size());
}

TEST_F(Quantizer, SmoothingAndGptqComeCloserToTheFloatModel) {
  const auto data = samples(6);
  const auto wanted = logits(options_.model, data[2]);
  // The error of plain probabilities would hide the others.
  options_.softmax = Softmax::unnormalized;
  const auto error = [&] { return distance(logits(options_.output, data[2]), wanted); };
  quantize(options_, source(data));
  const double plain = error();

  options_.accuracy.gptq = true;
  const Report rounded = quantize(options_, source(data));
  EXPECT_EQ(rounded.gptq_weights, 37);
  EXPECT_TRUE(rounded.smoothed.tensors.empty());

  options_.accuracy.smooth = true;
  const Report both = quantize(options_, source(data));
  EXPECT_EQ(both.gptq_weights, 37);
  EXPECT_EQ(both.quantized_nodes, 49);
  EXPECT_GE(both.smoothed.tensors.size(), 12u) << "the input of each FFN's two MatMuls";
  for (const Smoothing& s : both.smoothed.tensors)
    EXPECT_LT(s.error_after, s.error_before) << s.tensor;
  EXPECT_EQ(both.source_bytes, rounded.source_bytes) << "of the model that was given";
  EXPECT_LT(error(), 0.75 * plain);
  for (const auto& file : std::filesystem::directory_iterator(folder_.path()))
    EXPECT_EQ(file.path().filename(), "q.onnx") << "a temporary file stays";
}

TEST_F(Quantizer, SmoothingChangesNothingWhereItFails) {
  options_.accuracy.smooth = true;
  EXPECT_ERROR(HasSubstr("no calibration samples"), quantize(options_, source({})));
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_F(Quantizer, UnnormalizedSoftmaxIsOneLaunchAndEqualToItsSpelling) {
  const auto data = samples(6);
  options_.softmax = Softmax::unnormalized;
  const Report report = quantize(options_, source(data));
  EXPECT_EQ(report.unnormalized_softmaxes, 6);
  for (const TensorReport& t : report.tensors) {
    if (t.tensor.find("Softmax") == std::string::npos) continue;
    EXPECT_EQ(t.range, kExponentials) << t.tensor;
  }
  const auto exact = logits(options_.model, data[2]);
  runtime::SessionOptions all_int8;
  all_int8.require_int8 = true;
  const auto session = runtime::Session::load(options_.output, all_int8);
  std::map<std::string, int> steps;
  for (const plan::Step& step : session.plan().steps) ++steps[step.op];
  EXPECT_EQ(steps["attention_q"], 6);
  for (const char* op : {"Exp", "ReduceMax", "ReduceSum", "Softmax", "QuantizeLinear"})
    EXPECT_EQ(steps[op], 0) << op;

  const auto fused = logits(options_.output, data[2]);
  const auto operators = logits(options_.output, data[2], without("find_attention"));
  const auto as_float = logits(options_.output, data[2], without("lower_attention_q"));
  // Two ways to compute one file differ by ties.
  EXPECT_LT(distance(fused, operators), 0.5 * distance(fused, exact));
  EXPECT_LT(distance(as_float, exact), 2 * distance(fused, exact));
}

TEST_F(Quantizer, IsDeterministicAndCalibratesBothMethods) {
  const auto data = samples(3);
  for (const char* method : {"minmax", "percentile"}) {
    options_.method = method;
    options_.output = folder_ / "a.onnx";
    const Report a = quantize(options_, source(data));
    options_.output = folder_ / "b.onnx";
    const Report b = quantize(options_, source(data));
    ASSERT_EQ(a.tensors.size(), b.tensors.size());
    for (std::size_t i = 0; i < a.tensors.size(); ++i)
      EXPECT_EQ(a.tensors[i].range, b.tensors[i].range) << a.tensors[i].tensor;
    EXPECT_EQ(a.data_sha256, b.data_sha256);
  }
}

// The ranges are those of the tensors themselves: the host evaluates the graph without any kernel.
TEST_F(Quantizer, RangesAreThoseOfTheGraph) {
  const auto data = samples(2);
  const Report r = quantize(options_, source({data[0]}));
  ir::Graph graph = onnx_io::read_model(options_.model);
  std::vector<ir::Port> ports;
  for (const ir::Value* input : graph.inputs()) ports.push_back({input->name, input->type});
  const auto inputs = inputs_of(ports, data[0]);
  std::map<const ir::Value*, ir::Tensor> known;
  for (ir::Value* input : graph.inputs()) known[input] = inputs.at(input->name);
  int compared = 0;
  for (const TensorReport& t : r.tensors) {
    // The first layer: later ones take the plain evaluation too long.
    if (t.role != Role::activation || t.tensor.find("layer.0/attention") == std::string::npos)
      continue;
    const auto values = ops::evaluate_subgraph(graph.find_value(t.tensor), known).to_doubles();
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    EXPECT_NEAR(t.range.low, *low, 1e-4 * std::abs(*low) + 1e-5) << t.tensor;
    EXPECT_NEAR(t.range.high, *high, 1e-4 * std::abs(*high) + 1e-5) << t.tensor;
    ++compared;
  }
  EXPECT_GE(compared, 4);
}

TEST_F(Quantizer, SaysWhatIsWrong) {
  EXPECT_ERROR(HasSubstr("no calibration samples"), quantize(options_, source({})));
  Sample uneven{{101, 102}, {0}};
  EXPECT_ERROR(HasSubstr("2 ids and 1 types"), quantize(options_, source({uneven})));
  Options o = options_;
  o.method = "maximum";
  EXPECT_ERROR(HasSubstr("minmax"), quantize(o, source({})));
  o = options_;
  o.output = folder_ / "absent" / "q.onnx";
  EXPECT_ERROR(HasSubstr("folder"), quantize(o, source({})));
  o = options_;
  o.output = o.model;
  EXPECT_ERROR(HasSubstr("overwrite"), quantize(o, source({})));
  o = options_;
  o.model = folder_ / "none.onnx";
  EXPECT_ERROR(HasSubstr("none.onnx"), quantize(o, source({})));
  o = options_;
  o.weights.scale = WeightScale::mse;
  o.weights.as_float = true;
  o.weights.scheme.bits = 4;
  EXPECT_ERROR(HasSubstr("clips weights"), quantize(o, source({})));
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path())) << "nothing half written is left";
}

ir::Port input_port(const std::string& name, const ir::Shape& shape) {
  return {name, {ir::DType::i64, shape}};
}

TEST(Inputs, AreFoundByTheirNames) {
  const Sample s{{101, 7, 102}, {0, 0, 1}};
  const ir::Shape shape{ir::Dim::symbol("batch"), ir::Dim::symbol("seq")};
  const auto in = inputs_of({input_port("unique_ids_raw_output___9:0", {ir::Dim::symbol("batch")}),
                             input_port("input_mask", shape), input_port("segment_ids", shape),
                             input_port("position_ids", shape), input_port("input_ids", shape)},
                            s);
  EXPECT_EQ(in.at("input_ids").to_ints(), s.ids);
  EXPECT_EQ(in.at("segment_ids").to_ints(), s.token_type_ids);
  EXPECT_EQ(in.at("position_ids").to_ints(), (std::vector<std::int64_t>{0, 1, 2}));
  EXPECT_EQ(in.at("input_mask").to_ints(), (std::vector<std::int64_t>{1, 1, 1}));
  EXPECT_EQ(in.at("input_mask").shape(), (ir::Sizes{1, 3}));
  EXPECT_EQ(in.at("unique_ids_raw_output___9:0").shape(), ir::Sizes{1});
  EXPECT_ERROR(HasSubstr("'pixels'"),
               inputs_of({input_port("input_ids", shape), input_port("pixels", shape)}, s));
  EXPECT_ERROR(HasSubstr("token ids"), inputs_of({input_port("attention_mask", shape)}, s));
}

TEST(Inputs, FixedShapesPadAndRefuseWhatIsLonger) {
  const Sample s{{101, 7, 102}, {0, 0, 1}};
  const auto in =
      inputs_of({input_port("input_ids", {2, 5}), input_port("attention_mask", {2, 5})}, s);
  EXPECT_EQ(in.at("input_ids").to_ints(),
            (std::vector<std::int64_t>{101, 7, 102, 0, 0, 101, 7, 102, 0, 0}));
  EXPECT_EQ(in.at("attention_mask").to_ints(),
            (std::vector<std::int64_t>{1, 1, 1, 0, 0, 1, 1, 1, 0, 0}));
  const auto padded =
      inputs_of({input_port("input_ids", {1, 5}), input_port("attention_mask", {1, 5})}, s, 7);
  EXPECT_EQ(padded.at("input_ids").to_ints(), (std::vector<std::int64_t>{101, 7, 102, 7, 7}));
  EXPECT_EQ(padded.at("attention_mask").to_ints(), (std::vector<std::int64_t>{1, 1, 1, 0, 0}));
  EXPECT_ERROR(AllOf(HasSubstr("3 tokens"), HasSubstr("'input_ids' takes 2"),
                     HasSubstr("'max_seq_length=2'")),
               inputs_of({input_port("input_ids", {1, 2})}, s));
}

TEST(Spread, TakesEqualStepsFromTheFirst) {
  EXPECT_EQ(spread(10, 4), (std::vector<std::size_t>{0, 2, 5, 7}));
  EXPECT_EQ(spread(10, 4, true), (std::vector<std::size_t>{0, 1, 2, 3}));
  EXPECT_EQ(spread(3, 128), (std::vector<std::size_t>{0, 1, 2}));
  EXPECT_EQ(spread(2, 0), (std::vector<std::size_t>{0, 1}));
  EXPECT_TRUE(spread(0, 5).empty());
}

}  // namespace
}  // namespace bertcl::quant::tests
