// SPDX-License-Identifier: Apache-2.0
// Dense modules after the pooling, against plain loops over the pooled vectors.
#include "runtime/dense_module.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "encoder.hpp"
#include "npz/safetensors.hpp"
#include "runtime/pooling.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/scratch_folder.hpp"

namespace bertcl::runtime {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using tests::error_of;

constexpr std::int64_t kBatch = 2, kSeq = 3, kWidth = 4;

/// Values between -1 and 1, others for each seed.
std::vector<float> values(std::int64_t count, float seed) {
  std::vector<float> all;
  for (std::int64_t i = 0; i < count; ++i) all.push_back(std::sin(seed + static_cast<float>(i)));
  return all;
}

class DenseModule : public testing::Test {
 protected:
  /// A folder with a layer from `in` to `out`.
  fs::path module(const std::string& name, const std::string& config, std::int64_t in,
                  std::int64_t out, bool bias = true) const {
    npz::Arrays arrays{{"linear.weight", ir::Tensor::of({out, in}, values(out * in, 1))}};
    if (bias) arrays.emplace("linear.bias", ir::Tensor::of({out}, values(out, 2)));
    return write(name, config, arrays);
  }
  fs::path write(const std::string& name, const std::string& config,
                 const npz::Arrays& arrays) const {
    const fs::path folder = folder_ / name;
    fs::create_directories(folder);
    std::ofstream(folder / "config.json") << config;
    std::ofstream(folder / "model.safetensors", std::ios::binary)
        << npz::format_safetensors(arrays);
    return folder;
  }
  std::vector<float> run(const Pooling& pooling) const {
    SessionOptions options;
    options.pooling = pooling;
    Session session = Session::compile(masked_encoder("i64"), options);
    const auto out = session.run(
        {{"x", ir::Tensor::of({kBatch, kSeq, kWidth}, values(kBatch * kSeq * kWidth, 3))},
         {"mask", ir::Tensor::of<std::int64_t>({kBatch, kSeq}, {1, 1, 1, 1, 1, 0})}});
    const auto all = out.at(pooled_output).as<float>();
    return {all.begin(), all.end()};
  }
  std::string refusal(const fs::path& folder) const {
    return error_of([&] { run({.kind = "mean", .dense = {folder}}); });
  }
  const tests::ScratchFolder folder_;
};

/// The layer of module().
std::vector<float> layer(const std::vector<float>& x, std::int64_t in, std::int64_t out, bool bias,
                         const std::function<float(float)>& activation) {
  const auto w = values(out * in, 1), b = values(out, 2);
  std::vector<float> y;
  for (std::int64_t row = 0; row < kBatch; ++row)
    for (std::int64_t o = 0; o < out; ++o) {
      float sum = bias ? b[static_cast<std::size_t>(o)] : 0.0f;
      for (std::int64_t i = 0; i < in; ++i)
        sum += x[static_cast<std::size_t>(row * in + i)] * w[static_cast<std::size_t>(o * in + i)];
      y.push_back(activation(sum));
    }
  return y;
}

void expect_near(const std::vector<float>& found, const std::vector<float>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-5) << i;
}

TEST_F(DenseModule, EachActivation) {
  const std::vector<std::pair<std::string, std::function<float(float)>>> activations = {
      {R"({"activation_function": "torch.nn.modules.linear.Identity"})", [](float x) { return x; }},
      {R"({"activation_function": "torch.nn.modules.activation.Tanh"})",
       [](float x) { return std::tanh(x); }},
      {R"({"activation_function": "torch.nn.modules.activation.ReLU"})",
       [](float x) { return std::max(x, 0.0f); }},
      {R"({"activation_function": "torch.nn.modules.activation.GELU"})",
       [](float x) { return x * 0.5f * (1.0f + std::erf(x / std::sqrt(2.0f))); }},
      {R"({"activation_function": "torch.nn.modules.activation.Sigmoid"})",
       [](float x) { return 1.0f / (1.0f + std::exp(-x)); }},
      {R"({"in_features": 4, "module_output_name": "sentence_embedding"})",
       [](float x) { return std::tanh(x); }}};
  const auto pooled = run({.kind = "mean"});
  for (const auto& [config, activation] : activations)
    for (const bool bias : {false, true})
      for (const std::int64_t out : {1, 4, 7})
        expect_near(run({.kind = "mean", .dense = {module("2_Dense", config, kWidth, out, bias)}}),
                    layer(pooled, kWidth, out, bias, activation));
}

TEST_F(DenseModule, SeveralBeforeVectorsAreCutAndNormalized) {
  const std::string identity = R"({"activation_function": "torch.nn.modules.linear.Identity"})";
  const auto same = [](float x) { return x; };
  const Pooling pooling{
      .kind = "cls",
      .dense = {module("2_Dense", identity, kWidth, 9), module("3_Dense", "{}", 9, 5)},
      .columns = 3,
      .normalize = true};
  const auto whole = layer(layer(run({.kind = "cls"}), kWidth, 9, true, same), 9, 5, true,
                           [](float x) { return std::tanh(x); });
  std::vector<float> expected;
  for (std::size_t row = 0; row < static_cast<std::size_t>(kBatch); ++row) {
    float square = 0;
    for (std::size_t i = 0; i < 3; ++i) square += whole[row * 5 + i] * whole[row * 5 + i];
    for (std::size_t i = 0; i < 3; ++i) expected.push_back(whole[row * 5 + i] / std::sqrt(square));
  }
  expect_near(run(pooling), expected);
}

TEST_F(DenseModule, HalvesAreWeightsToo) {
  const ir::Tensor weight = ir::Tensor::of({2, kWidth}, values(2 * kWidth, 1));
  const std::string identity = R"({"activation_function": "torch.nn.modules.linear.Identity"})";
  const auto made = [&](ir::DType dtype) {
    return run(
        {.kind = "mean",
         .dense = {write("2_Dense", identity, {{"linear.weight", weight.converted(dtype)}})}});
  };
  const auto exact = made(ir::DType::f32);
  for (const ir::DType dtype : {ir::DType::f16, ir::DType::bf16}) {
    const auto found = made(dtype);
    for (std::size_t i = 0; i < exact.size(); ++i) EXPECT_NEAR(found[i], exact[i], 1e-2);
  }
}

TEST_F(DenseModule, WhatIsWrongIsNamed) {
  EXPECT_THAT(refusal(module("a", "[]", kWidth, 2)), HasSubstr("a/config.json: is no JSON object"));
  EXPECT_THAT(refusal(module("b", R"({"activation_function": "torch.nn.modules.activation.Mish"})",
                             kWidth, 2)),
              HasSubstr("torch.nn.modules.activation.Mish is not supported (Identity, Tanh, ReLU"));
  EXPECT_THAT(refusal(module("c", R"({"activation_function": 1})", kWidth, 2)),
              HasSubstr("activation_function is 1, expected a name"));
  EXPECT_THAT(refusal(module("d", R"({"module_input_name": "token_embeddings"})", kWidth, 2)),
              HasSubstr("module_input_name \"token_embeddings\" is not supported"));
  EXPECT_THAT(refusal(module("e", "{}", 5, 2)),
              HasSubstr("'linear.weight' is [2, 5], but vectors have 4 dimensions"));
  EXPECT_THAT(refusal(write("f", "{}", {})), HasSubstr("has no tensor 'linear.weight'"));
  const ir::Tensor weight = ir::Tensor::of({2, kWidth}, values(2 * kWidth, 1));
  EXPECT_THAT(refusal(write("g", "{}", {{"linear.weight", weight.converted(ir::DType::i32)}})),
              HasSubstr("'linear.weight' is of type i32"));
  EXPECT_THAT(refusal(write("h", "{}", {{"linear.weight", weight}, {"linear.bias", weight}})),
              HasSubstr("'linear.bias' is [2, 4], expected [2]"));
  const fs::path old = module("i", "{}", kWidth, 2);
  fs::remove(old / "model.safetensors");
  EXPECT_THAT(refusal(old), HasSubstr("model.safetensors is missing"));
  EXPECT_THAT(refusal(folder_ / "none"), HasSubstr("config.json: cannot be read"));
}

}  // namespace
}  // namespace bertcl::runtime
