// SPDX-License-Identifier: Apache-2.0
// Random combinations of options on a small BERT: each file is written, read and compiled again,
// and the device computes what the host evaluates of the nodes of the file.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>

#include "onnx/read_model.hpp"
#include "ops/interpret.hpp"
#include "quant/presets.hpp"
#include "runtime/session.hpp"
#include "tests/quant/tiny_bert.hpp"

namespace bertcl::quant {
namespace {

using tests::TinyBert;

constexpr std::int64_t kSeq = 11, kShort = 7;

/// Two rows of tokens, the second one shorter.
std::map<std::string, ir::Tensor> batch(unsigned seed) {
  std::mt19937 generator(seed);
  std::vector<std::int64_t> ids(2 * kSeq), mask(2 * kSeq);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    ids[i] = static_cast<std::int64_t>(generator() % tests::kTinyVocabulary);
    mask[i] = i < kSeq + kShort;
  }
  return {{"input_ids", ir::Tensor::of<std::int64_t>({2, kSeq}, ids)},
          {"attention_mask", ir::Tensor::of<std::int64_t>({2, kSeq}, mask)}};
}

SampleSource samples() {
  return [left = 4]() mutable -> std::optional<Sample> {
    if (left-- == 0) return std::nullopt;
    Sample sample;
    std::mt19937 generator(static_cast<unsigned>(left));
    for (int i = 0; i < 20; ++i)
      sample.ids.push_back(static_cast<std::int64_t>(generator() % tests::kTinyVocabulary));
    return sample;
  };
}

/// Each option with one of its values.
Options random_options(unsigned seed) {
  std::mt19937 generator(seed);
  const auto pick = [&](int n) { return static_cast<int>(generator() % static_cast<unsigned>(n)); };
  Options o =
      presets()[static_cast<std::size_t>(pick(static_cast<int>(presets().size())))].options();
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
  if (pick(4) == 0) o.weights.scheme.steps = Steps::reduced;
  o.weights.per_channel = pick(3) != 0;
  if (pick(4) == 0) o.weights.axes = {{"MatMul", pick(2)}};
  o.weights.as_float = pick(2) != 0;
  o.dedicated_pairs = pick(2) != 0;
  o.all_readers = pick(2) != 0;
  return o;
}

class Combinations : public testing::TestWithParam<unsigned> {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("bertcl_combinations_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
    std::ofstream file(folder_ / "model.onnx", std::ios::binary);
    TinyBert bert({.nameless = GetParam() % 3 == 0, .opset = GetParam() % 2 == 0 ? 17 : 20});
    ASSERT_TRUE(bert.builder().model().SerializeToOstream(&file));
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path folder_;
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

  // A value next to a rounding tie may take the other step, and in a model this small all that
  // follows moves with it. That is rare: of eight batches one at least is met exactly.
  const auto source = onnx_io::read_model(options.model);
  const auto written = onnx_io::read_model(options.output);
  auto session = runtime::Session::load(options.output);
  double least = std::numeric_limits<double>::infinity(), trace = 0.0;
  for (unsigned seed = 11; seed < 19; ++seed) {
    const auto inputs = batch(seed);
    const auto in_float = ops::interpret(source, inputs)[0].to_doubles();
    const auto expected = ops::interpret(written, inputs)[0].to_doubles();
    const auto actual = session.run({inputs.begin(), inputs.end()}).at("start_logits").to_doubles();
    ASSERT_EQ(actual.size(), expected.size());
    double largest = 0.0, extent = 0.0;
    for (std::size_t i = 0; i < kSeq + kShort; ++i) {  // padding, at the end, is not compared
      largest = std::max(largest, std::abs(actual[i] - expected[i]));
      extent = std::max(extent, std::abs(expected[i]));
      trace = std::max(trace, std::abs(expected[i] - in_float[i]));
    }
    EXPECT_LT(largest, 0.2 * extent) << "largest logit " << extent;
    least = std::min(least, largest / extent);
  }
  EXPECT_LT(least, 1e-5) << "largest difference, relative to the largest logit";
  EXPECT_GT(trace, 1e-4) << "was anything quantized?";

  // Whatever product runs in float was left so by the quantizer or is noted by the compiler.
  std::size_t in_float_now = 0, told = session.plan().notes.size();
  for (const auto& step : session.plan().steps)
    in_float_now += step.op == "linear" || step.op == "MatMul";
  for (const Left& left : report.left) told += left.op == "MatMul";
  EXPECT_LE(in_float_now, told);
}

INSTANTIATE_TEST_SUITE_P(Random, Combinations, testing::Range(0u, 40u));

class Presets : public testing::TestWithParam<std::string> {};

TEST_P(Presets, HasItsName) {
  EXPECT_EQ(preset(GetParam()).name, GetParam());
  EXPECT_FALSE(preset(GetParam()).summary.empty());
}
INSTANTIATE_TEST_SUITE_P(All, Presets,
                         testing::Values("default", "fast", "ort-tensorrt", "ort-migraphx",
                                         "qdqbert", "migraphx-native", "qordered"));

}  // namespace
}  // namespace bertcl::quant
