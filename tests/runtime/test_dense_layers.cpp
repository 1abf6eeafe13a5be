// SPDX-License-Identifier: Apache-2.0
// Linear layers after the pooling, against plain loops over the pooled vectors.
#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "encoder.hpp"
#include "runtime/pooling.hpp"
#include "tests/support/matchers.hpp"
#include "tests/support/parse_graph.hpp"

namespace bertcl::runtime {
namespace {

class DenseLayers : public testing::Test {
 protected:
  using Vector = std::vector<float>;
  static constexpr std::int64_t batch = 2, seq = 3, hidden = 4;

  /// Values between -1 and 1, others for each seed.
  static Vector values(std::int64_t count, float seed) {
    Vector all;
    for (std::int64_t i = 0; i < count; ++i) all.push_back(std::sin(seed + static_cast<float>(i)));
    return all;
  }
  static ir::DenseLayer layer(std::int64_t in, std::int64_t out, bool bias,
                              const std::string& activation) {
    ir::DenseLayer made{"2_Dense", ir::Tensor::of({in, out}, values(in * out, 1)), {}, activation};
    if (bias) made.bias = ir::Tensor::of({out}, values(out, 2));
    return made;
  }
  static Vector run(const Pooling& pooling) {
    SessionOptions options;
    options.pooling = pooling;
    Session session = Session::compile(masked_encoder("i64"), options);
    const auto out =
        session.run({{"x", ir::Tensor::of({batch, seq, hidden}, values(batch * seq * hidden, 3))},
                     {"mask", ir::Tensor::of<std::int64_t>({batch, seq}, {1, 1, 1, 1, 1, 0})}});
    const auto all = out.at(kPooledOutput).as<float>();
    return {all.begin(), all.end()};
  }
  static Vector by_loops(const Vector& x, const ir::DenseLayer& layer,
                         const std::function<float(float)>& activation) {
    const auto in = static_cast<std::size_t>(layer.weight.shape()[0]);
    const auto out = static_cast<std::size_t>(layer.weight.shape()[1]);
    Vector y;
    for (std::size_t row = 0; row < static_cast<std::size_t>(batch); ++row)
      for (std::size_t o = 0; o < out; ++o) {
        float sum = layer.bias ? layer.bias->as<float>()[o] : 0.0f;
        for (std::size_t i = 0; i < in; ++i)
          sum += x[row * in + i] * layer.weight.as<float>()[i * out + o];
        y.push_back(activation(sum));
      }
    return y;
  }
  static Pooling pooling(const std::string& kind, std::vector<ir::DenseLayer> layers) {
    Pooling made{.kind = kind};
    made.dense = [layers = std::move(layers)] { return layers; };
    return made;
  }
  static void expect_near(const Vector& found, const Vector& expected) {
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-5) << i;
  }
};

TEST_F(DenseLayers, EachActivation) {
  const std::pair<const char*, std::function<float(float)>> activations[] = {
      {"", [](float x) { return x; }},
      {"Tanh", [](float x) { return std::tanh(x); }},
      {"Relu", [](float x) { return std::max(x, 0.0f); }},
      {"Gelu", [](float x) { return x * 0.5f * (1.0f + std::erf(x / std::sqrt(2.0f))); }},
      {"Sigmoid", [](float x) { return 1.0f / (1.0f + std::exp(-x)); }}};
  const Vector pooled = run({.kind = "mean"});
  for (const auto& [name, activation] : activations)
    for (const bool bias : {false, true})
      for (const std::int64_t out : {1, 4, 7}) {
        const ir::DenseLayer made = layer(hidden, out, bias, name);
        expect_near(run(pooling("mean", {made})), by_loops(pooled, made, activation));
      }
}

TEST_F(DenseLayers, SeveralBeforeVectorsAreCutAndNormalized) {
  const ir::DenseLayer first = layer(hidden, 9, true, ""), second = layer(9, 5, false, "Tanh");
  const Vector whole = by_loops(by_loops(run({.kind = "cls"}), first, [](float x) { return x; }),
                                second, [](float x) { return std::tanh(x); });
  Vector expected;
  for (std::size_t row = 0; row < static_cast<std::size_t>(batch); ++row) {
    float square = 0;
    for (std::size_t i = 0; i < 3; ++i) square += whole[row * 5 + i] * whole[row * 5 + i];
    for (std::size_t i = 0; i < 3; ++i) expected.push_back(whole[row * 5 + i] / std::sqrt(square));
  }
  Pooling cut = pooling("cls", {first, second});
  cut.columns = 3;
  cut.normalize = true;
  expect_near(run(cut), expected);
  cut.columns = 5;  // more than the tokens' vectors have
  EXPECT_EQ(run(cut).size(), 10u);
}

TEST_F(DenseLayers, AnotherWidthIsRefused) {
  EXPECT_ERROR(HasSubstr("2_Dense: the layer takes 5 dimensions, but vectors have 4"),
               run(pooling("mean", {layer(5, 2, true, "")})));
  Pooling cut = pooling("mean", {layer(hidden, 2, true, "")});
  cut.columns = 3;
  EXPECT_ERROR(HasSubstr("3 dimensions requested, but the model has 2"), run(cut));
}

TEST_F(DenseLayers, AreNotReadWhereTheModelPoolsItself) {
  SessionOptions options;
  options.pooling = Pooling{.kind = "mean", .or_own = true};
  options.pooling->dense = []() -> std::vector<ir::DenseLayer> { throw Error("they were read"); };
  const char* own =
      "graph g(%x: f32[batch, 4]) { %y: f32[batch, 4] = Tanh(%x) return %y as sentence }";
  EXPECT_NO_THROW(Session::compile(ir::parse(own), options));
  EXPECT_THROW(Session::compile(masked_encoder("i64"), options), Error);
}

}  // namespace
}  // namespace bertcl::runtime
