// SPDX-License-Identifier: Apache-2.0
// Random combinations of options on a small BERT: each file is written, read and compiled again,
// and the device computes what the host evaluates of the nodes of the file.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "onnx/read_model.hpp"
#include "ops/interpret.hpp"
#include "quant/presets.hpp"
#include "runtime/session.hpp"
#include "tests/quant/tiny_bert.hpp"
#include "tests/support/scratch_folder.hpp"

namespace bertcl::quant::tests {
namespace {

constexpr std::int64_t kLong = 3, kShort = 2;

/// A value this near to a tie of rounding, in steps, may take the other integer on the device: both
/// compute in float, but sum in different orders. In a model this small all that follows moves with
/// it, so nothing exact can be said of that sequence. Sequences without such a value have to agree
/// to the last bits of float; they are short, so that there are some.
constexpr double kTie = 1e-3;
/// Such sequences are looked for until there are kExact.
constexpr int kExact = 5;

/// Two rows of tokens, the second one shorter.
ops::Tensors random_batch(unsigned seed) {
  std::mt19937 generator(seed);
  std::vector<std::int64_t> ids(2 * kLong), mask(2 * kLong);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    ids[i] = static_cast<std::int64_t>(generator() % kTinyVocabulary);
    mask[i] = i < kLong + kShort;
  }
  return {{"input_ids", ir::Tensor::of<std::int64_t>({2, kLong}, ids)},
          {"attention_mask", ir::Tensor::of<std::int64_t>({2, kLong}, mask)}};
}

SampleSource samples() {
  return [left = 4]() mutable -> std::optional<Sample> {
    if (left-- == 0) return std::nullopt;
    Sample sample;
    std::mt19937 generator(static_cast<unsigned>(left));
    for (int i = 0; i < 20; ++i)
      sample.ids.push_back(static_cast<std::int64_t>(generator() % kTinyVocabulary));
    return sample;
  };
}

/// Each option with one of its values.
Options random_options(unsigned seed) {
  std::mt19937 generator(seed);
  const auto pick = [&](int n) { return static_cast<int>(generator() % static_cast<unsigned>(n)); };
  // `accurate` is `default` with options that are drawn below.
  const std::vector<std::string> starts = {
      "default", "fast", "ort-tensorrt", "ort-migraphx", "qdqbert", "migraphx-native", "qordered"};
  Options o =
      preset(starts[static_cast<std::size_t>(pick(static_cast<int>(starts.size())))]).options();
  if (pick(2) != 0) {
    const std::vector<std::string> more = {"Add", "Gather", "Softmax", "LayerNormalization", "Mul"};
    o.placement.op_types.insert(more[static_cast<std::size_t>(pick(5))]);
  }
  o.placement.adds = static_cast<Adds>(pick(3));
  o.placement.head = pick(2) != 0;
  if (pick(3) == 0) o.placement.output_op_types = {"MatMul"};
  if (pick(3) == 0) o.placement.places.insert(static_cast<Place>(pick(7)));
  if (pick(4) == 0)
    o.placement.exclude = {"*/self/MatMul_1"};
  else if (pick(3) == 0)
    o.placement.disable_keywords = {"key._weight_quantizer", "matmul_a"};
  if (pick(4) == 0) o.placement.disable_layer_modules = {"output.dense"};
  o.method = pick(2) != 0 ? "minmax" : "percentile";
  o.ranges.fuse_qkv = pick(2) != 0;
  if (o.placement.disable_layer_modules.empty() && pick(3) == 0) o.ranges.clip_gelu = 1.5f;
  o.ranges.symmetric = pick(4) == 0;
  const auto scheme = [&] {
    return Scheme{pick(2) != 0 ? ir::DType::u8 : ir::DType::i8, pick(2) != 0,
                  static_cast<Steps>(pick(2)), 8};
  };
  o.activations = scheme();
  o.weights.scheme = scheme();
  if (o.activations.type == ir::DType::i8) o.weights.scheme.type = ir::DType::i8;
  if (pick(4) == 0) o.weights.scheme.bits = 4 + pick(4);
  if (pick(4) == 0 && o.weights.scheme.bits == 8) o.weights.scheme.steps = Steps::reduced;
  o.weights.per_channel = pick(3) != 0;
  if (pick(4) == 0) o.weights.axes = {{"MatMul", pick(2)}};
  o.weights.as_float = pick(2) != 0;
  if (saturation_of(o.weights.scheme) == integers_of(o.weights.scheme.type) || !o.weights.as_float)
    o.weights.scale = pick(2) != 0 ? WeightScale::mse : WeightScale::max;
  o.dedicated_pairs = pick(2) != 0;
  o.all_readers = pick(2) != 0;
  o.softmax = pick(2) != 0 ? Softmax::unnormalized : Softmax::plain;
  return o;
}

/// Steps from x / scale to the middle between two integers that can be told apart.
double tie_distance(double x, double scale, double zero_point, ir::DType type) {
  const double lowest = type == ir::DType::u8 ? 0 : -128, q = x / scale;
  const double below = std::clamp(std::floor(q), lowest - zero_point, lowest + 254 - zero_point);
  return std::abs(q - below - 0.5);
}

struct Evaluated {
  std::vector<double> logits;
  double tie_distance[2];  // of the value that is nearest to a tie, by sequence
};

/// A model that the host evaluates, with a look at all that it quantizes.
class Watched {
 public:
  explicit Watched(const std::filesystem::path& path) : graph_(onnx_io::read_model(path)) {
    for (const auto& node : graph_.nodes())
      if (node->op == "QuantizeLinear" && !node->inputs[0]->is_constant()) {
        quantizers_.push_back(node.get());
        graph_.add_output("watched_" + std::to_string(quantizers_.size()), node->inputs[0]);
      }
  }

  Evaluated evaluate(const ops::Tensors& inputs) const {
    const auto outputs = ops::interpret(graph_, inputs);
    Evaluated result{outputs[0].to_doubles(), {1.0, 1.0}};
    const std::size_t first = outputs.size() - quantizers_.size();
    for (std::size_t n = 0; n < quantizers_.size(); ++n) {
      const ir::Node& node = *quantizers_[n];
      const auto values = outputs[first + n].to_doubles();
      const auto scales = node.inputs[1]->constant->to_doubles();
      const auto zero_points = node.inputs[2]->constant->to_doubles();
      EXPECT_EQ(outputs[first + n].shape().front(), 2) << node.describe();
      for (std::size_t i = 0; i < values.size(); ++i) {
        double& least = result.tie_distance[2 * i / values.size()];
        const std::size_t channel = i % scales.size();  // of the last axis
        least = std::min(least, tie_distance(values[i], scales[channel], zero_points[channel],
                                             node.output()->type.dtype));
      }
    }
    return result;
  }

 private:
  ir::Graph graph_;
  std::vector<const ir::Node*> quantizers_;
};

class Combinations : public testing::TestWithParam<unsigned> {
 protected:
  void SetUp() override {
    std::ofstream file(folder_ / "model.onnx", std::ios::binary);
    TinyBert bert({.nameless = GetParam() % 3 == 0, .opset = GetParam() % 2 == 0 ? 17 : 20});
    ASSERT_TRUE(bert.builder().model().SerializeToOstream(&file));
  }
  const bertcl::tests::ScratchFolder folder_;
};

TEST_P(Combinations, DeviceAndHostAgree) {
  Options options = random_options(GetParam());
  options.model = folder_ / "model.onnx";
  options.output = folder_ / "q.onnx";
  // Without names of nodes these fit none, which is an error of its own.
  if (GetParam() % 3 == 0) {
    options.placement.exclude.clear();
    options.placement.disable_keywords.clear();
  }
  const Report report = quantize(options, samples());
  EXPECT_GT(report.quantized_nodes, 0);

  const auto source = onnx_io::read_model(options.model);
  Watched written(options.output);
  auto session = runtime::Session::load(options.output);
  double trace = 0.0;
  int exact = 0;  // sequences
  for (unsigned seed = 11; seed < 31 || (exact < kExact && seed < 500); ++seed) {
    const auto inputs = random_batch(seed);
    const auto in_float = ops::interpret(source, inputs)[0].to_doubles();
    const Evaluated host = written.evaluate(inputs);
    const auto actual = session.run(inputs).at("start_logits").to_doubles();
    ASSERT_EQ(actual.size(), host.logits.size());
    double largest[2] = {}, extent = 0.0;
    for (std::size_t i = 0; i < kLong + kShort; ++i) {  // padding, at the end, is not compared
      double& difference = largest[i / kLong];
      difference = std::max(difference, std::abs(actual[i] - host.logits[i]));
      extent = std::max(extent, std::abs(host.logits[i]));
      trace = std::max(trace, std::abs(host.logits[i] - in_float[i]));
    }
    for (const std::size_t sequence : {0, 1}) {
      const bool tied = host.tie_distance[sequence] < kTie;
      exact += !tied;
      EXPECT_LT(largest[sequence], (tied ? 0.2 : 1e-5) * extent)
          << "batch " << seed << ", sequence " << sequence << ": the nearest value is "
          << host.tie_distance[sequence] << " steps from a tie; largest logit " << extent;
    }
  }
  EXPECT_GE(exact, kExact) << "sequences without a value next to a tie";
  EXPECT_GT(trace, 1e-4) << "was anything quantized?";

  // Whatever MatMul runs in float was left so by the quantizer or is noted by the compiler.
  std::size_t in_float_now = 0, told = session.plan().notes.size();
  for (const auto& step : session.plan().steps)
    in_float_now += step.op == "linear" || step.op == "MatMul";
  for (const SkippedNode& node : report.skipped) told += node.op == "MatMul";
  EXPECT_LE(in_float_now, told);
}

INSTANTIATE_TEST_SUITE_P(Random, Combinations, testing::Range(0u, 40u));

class Presets : public testing::TestWithParam<std::string> {};

TEST_P(Presets, HasItsName) {
  EXPECT_EQ(preset(GetParam()).name, GetParam());
  EXPECT_FALSE(preset(GetParam()).summary.empty());
}
INSTANTIATE_TEST_SUITE_P(All, Presets,
                         testing::Values("default", "accurate", "fast", "ort-tensorrt",
                                         "ort-migraphx", "qdqbert", "migraphx-native", "qordered"));

}  // namespace
}  // namespace bertcl::quant::tests
