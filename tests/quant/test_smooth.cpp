// SPDX-License-Identifier: Apache-2.0
// Smoothing: the error that is expected of its factors, their choice, and where they go.
#include "quant/transforms/smooth.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "quant/calibration/channel_statistics.hpp"
#include "tests/kernels_cl/device_test.hpp"
#include "tests/quant/graphs.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::quant::tests {
namespace {

using bertcl::tests::device, bertcl::tests::normal_values, bertcl::tests::upload;

/// Channels of like size but for one.
ChannelStatistics with_outlier(std::size_t channels, float outlier) {
  ChannelStatistics s;
  s.rows = 100;
  for (std::size_t c = 0; c < channels; ++c) {
    const float size = c == 2 ? outlier : 1.0f + 0.1f * static_cast<float>(c % 3);
    s.low.push_back(-size);
    s.high.push_back(size);
    s.mean_square.push_back(size * size / 9.0f);
  }
  return s;
}

TEST(Smooth, ScalesOutliersDown) {
  const auto w = normal_values(64 * 32, 2);
  const WeightView view{w, 32};
  const auto s = choose_factors("t", with_outlier(64, 40.0f), {&view, 1}, {});
  ASSERT_EQ(s.factors.size(), 64u);
  EXPECT_LT(s.error_after, 0.2 * s.error_before);
  EXPECT_GT(s.factors[2], 4.0f * s.factors[3]);
  double log_sum = 0.0;
  for (const float f : s.factors) log_sum += std::log(f);
  EXPECT_NEAR(log_sum, 0.0, 1e-3);
}

TEST(Smooth, LeavesEvenChannelsAlone) {
  const auto w = normal_values(64 * 32, 2);
  const WeightView view{w, 32};
  const auto s = choose_factors("t", with_outlier(64, 1.0f), {&view, 1}, {});
  EXPECT_TRUE(s.factors.empty()) << s.choice;
  EXPECT_EQ(s.error_after, s.error_before);
}

// A channel that is 0 in all samples, as after ReLU, may not be so in use.
TEST(Smooth, AChannelThatWasNeverSeenGetsAUsualFactor) {
  const std::vector<float> w(64 * 32, 0.1f);
  const WeightView view{w, 32};
  ChannelStatistics x = with_outlier(64, 40.0f);
  for (const std::size_t dead : {5, 6}) x.low[dead] = x.high[dead] = x.mean_square[dead] = 0.0f;
  for (const std::optional<double> alpha : {std::optional<double>(), std::optional(0.8)}) {
    const auto s = choose_factors("t", x, {&view, 1}, {.alpha = alpha});
    ASSERT_EQ(s.factors.size(), 64u);
    for (const std::size_t dead : {5, 6}) {
      EXPECT_GT(s.factors[dead], 0.7f * s.factors[3]);
      EXPECT_LT(s.factors[dead], 1.4f * s.factors[3]);
    }
  }
}

TEST(Smooth, TakesTheFormulaThatIsAskedFor) {
  const std::vector<float> w{1.0f, -0.25f, 4.0f};  // [3][1]
  const WeightView view{w, 1};
  ChannelStatistics x;
  x.low = {-1.0f, 0.0f, -4.0f};
  x.high = {0.5f, 9.0f, 1.0f};
  x.mean_square = {1, 1, 1};
  const auto s = choose_factors("t", x, {&view, 1}, {.alpha = 0.5});
  const double mean = std::cbrt(1.0 * 6.0 * 1.0);
  ASSERT_EQ(s.factors.size(), 3u);
  EXPECT_NEAR(s.factors[0], 1.0 / mean, 1e-5);
  EXPECT_NEAR(s.factors[1], 6.0 / mean, 1e-5);
  EXPECT_NEAR(s.factors[2], 1.0 / mean, 1e-5);
}

/// The weight [K][N] as its integers say, and what its options make of a range.
std::vector<float> through_integers(const std::vector<float>& w, std::int64_t columns,
                                    const WeightOptions& options) {
  const auto rows = static_cast<std::int64_t>(w.size()) / columns;
  const auto tensor = ir::Tensor::of<float>({rows, columns}, w);
  const int axis = options.axes.empty() ? 1 : options.axes.at("MatMul");
  const QuantizedConstant q = options.per_channel
                                  ? quantize_per_channel(tensor, axis, "w", options.scheme)
                                  : quantize_per_tensor(tensor, options.scheme, "w");
  const auto integers = q.values.to_doubles();
  std::vector<float> values;
  for (std::size_t i = 0; i < w.size(); ++i) {
    const auto c = static_cast<std::size_t>(!options.per_channel ? 0
                                            : axis == 0 ? i / static_cast<std::size_t>(columns)
                                                        : i % static_cast<std::size_t>(columns));
    values.push_back(static_cast<float>((integers[i] - q.zero_points[c]) * q.scales[c]));
  }
  return values;
}

/// The error that is expected, by quantizing values that are spread evenly: whatever the options
/// are, which differ in it by up to a factor of 1000.
TEST(Smooth, ExpectedErrorIsThatOfEvenValues) {
  const std::int64_t rows = 400, channels = 24, columns = 200;
  std::vector<float> x = normal_values(rows * channels, 7);
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = std::abs(x[i]) * (1.0f + static_cast<float>(i % channels));
  auto w = normal_values(channels * columns, 8);
  for (std::size_t i = 0; i < w.size(); ++i)
    w[i] *= 1.0f + static_cast<float>(i / columns % 7) + static_cast<float>(i % 3);
  ChannelObserver observer(device(), "t");
  observer.observe(upload(x), rows, channels);
  const auto statistics = observer.statistics();
  const WeightView view{w, columns};
  const std::vector<float> ones(channels, 1.0f);
  const auto [low, high] = std::minmax_element(x.begin(), x.end());

  const Scheme u8{ir::DType::u8, false}, s8{ir::DType::i8, true};
  const std::pair<const char*, SmoothOptions> cases[] = {
      {"u8, s8 per column", {}},
      {"s8 activations", {.activations = s8}},
      {"full range", {.activations = {ir::DType::i8, true, Steps::full}}},
      {"symmetric ranges", {.symmetric_ranges = true}},
      {"per tensor", {.weights = {.per_channel = false}}},
      {"per tensor, u8", {.weights = {.scheme = u8, .per_channel = false}}},
      {"per row", {.weights = {.axes = {{"MatMul", 0}}}}},
      {"4 bits", {.weights = {.scheme = {ir::DType::i8, true, Steps::standard, 4}}}},
      {"reduced", {.weights = {.scheme = {ir::DType::i8, true, Steps::reduced}}}}};
  for (const auto& [name, options] : cases) {
    const Range range = options.symmetric_ranges ? Range{-*high, *high} : Range{*low, *high};
    const Parameters p = parameters_of(range, options.activations);
    const auto integer_w = through_integers(w, columns, options.weights);
    double error = 0.0;
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t j = 0; j < columns; ++j) {
        double exact = 0.0, integer = 0.0;
        for (std::int64_t k = 0; k < channels; ++k) {
          const float v = x[r * channels + k];
          exact += static_cast<double>(v) * w[k * columns + j];
          integer += (quantize_value(v, p, options.activations.type) - p.zero_point) *
                     static_cast<double>(p.scale) * integer_w[k * columns + j];
        }
        error += (exact - integer) * (exact - integer);
      }
    const double expected = expected_error(statistics, {&view, 1}, ones, options);
    EXPECT_NEAR(error / static_cast<double>(rows) / expected, 1.0, 0.35) << name;
  }
}

TEST(Smooth, ExpectedErrorIsLessWhereGptqRounds) {
  const auto w = normal_values(64 * 32, 2);
  const WeightView view{w, 32};
  const ChannelStatistics x = with_outlier(64, 1.0f);
  const std::vector<float> ones(64, 1.0f);
  const auto error = [&](WeightOptions weights, bool gptq) {
    return expected_error(x, {&view, 1}, ones, {.weights = std::move(weights), .gptq = gptq});
  };
  EXPECT_LT(error({}, true), 0.9 * error({}, false));
  for (const WeightOptions& left :
       {WeightOptions{.as_float = true}, WeightOptions{.axes = {{"MatMul", 0}}}})
    EXPECT_EQ(error(left, true), error(left, false)) << "GPTQ leaves such weights alone";
}

TEST(Smooth, ANonFiniteWeightIsNotSmoothed) {
  auto w = normal_values(64 * 32, 2);
  w[100] = INFINITY;
  const WeightView view{w, 32};
  EXPECT_TRUE(choose_factors("t", with_outlier(64, 40.0f), {&view, 1}, {}).factors.empty());
}

/// x -> Relu -> t, read by two MatMuls and by the output.
GraphBuilder matmul_pair() {
  GraphBuilder g;
  g.input("x", {2, 4});
  g.node("Relu", {"x"}, "t");
  g.half_weight("w1_half", {4, 2}, {1, 2, 3, 4, -8, 7, 6, 5});
  g.node("Cast", {"w1_half"}, "w1", {{"to", 1}});
  g.node("MatMul", {"t", "w1"}, "h");
  g.node("MatMul", {"t", g.weight("w2", {4, 2}, {1, 0, 0, 1, 2, 3, 1, 1})}, "y");
  g.node("Add", {"y", "h"}, "sum");
  g.node("Concat", {"sum", "t"}, "out", {{"axis", 1}});
  g.output("out");
  return g;
}

TEST(Smooth, PutsFactorsBeforeTheMatMulsAlone) {
  Analysed a(matmul_pair());
  const Placement placement = place(a);
  const auto targets = smooth_targets(a.index, a.constants, placement);
  ASSERT_EQ(targets.size(), 1u);
  EXPECT_EQ(targets[0].tensor, "t");
  EXPECT_THAT(targets[0].weights, ElementsAre("w1", "w2"));
  Smoothing s;
  s.tensor = "t";
  s.factors = {1.0f, 2.0f, 0.5f, 4.0f};
  apply_smoothing(a.model, targets, {&s, 1});

  const auto& graph = a.model.graph();
  EXPECT_EQ(producer(graph, "h")->input(0), "t_smoothed");
  EXPECT_EQ(producer(graph, "y")->input(0), "t_smoothed");
  EXPECT_EQ(producer(graph, "out")->input(1), "t");
  EXPECT_EQ(producer(graph, "w1"), nullptr) << "the Cast of the old weight stays";
  EXPECT_FALSE(a.model.initializer("w1_half"));
  EXPECT_FALSE(a.model.initializer("w2"));
  const auto scaled = a.model.read("w1_smoothed");
  EXPECT_THAT(scaled.as<float>(), ElementsAre(1, 2, 6, 8, -4, 3.5f, 24, 20));
  EXPECT_THAT(a.model.read("t_smooth_factor").as<float>(), ElementsAre(1, 0.5f, 2, 0.25f));
  EXPECT_EQ(graph.node(1).name(), "t_smooth") << "smoothed its producer";
}

TEST(Smooth, LeavesSharedWeightsAndViews) {
  auto g = matmul_pair();
  g.node("MatMul", {"x", "w2"}, "z");  // w2 has another reader
  g.output("z");
  Analysed shared(g);
  EXPECT_TRUE(smooth_targets(shared.index, shared.constants, place(shared)).empty());

  GraphBuilder view;
  view.input("x", {2, 4});
  view.node("Transpose", {"x"}, "t");
  view.node("MatMul", {"t", view.weight("w", {2, 2}, {1, 2, 3, 4})}, "out");
  view.output("out");
  Analysed smoothed(view);
  EXPECT_TRUE(smooth_targets(smoothed.index, smoothed.constants, place(smoothed)).empty());
}

TEST(Smooth, LeavesWeightsThatCannotBeEvaluated) {
  GraphBuilder g;
  g.input("x", {2, 4});
  g.node("Relu", {"x"}, "t");
  g.weight("a", {2, 2}, {1, 2, 3, 4});
  g.node("Concat", {"a", "a"}, "w", {{"axis", 0}});
  g.node("MatMul", {"t", "w"}, "out");
  g.output("out");
  Analysed a(g);
  const Placement placement = place(a);
  EXPECT_TRUE(smooth_targets(a.index, a.constants, placement).empty());
}

TEST(Smooth, LeavesWhatIsQuantizedForAllReaders) {
  Analysed a(matmul_pair());
  Placement placement = place(a);
  placement.outputs = {"t"};
  EXPECT_TRUE(smooth_targets(a.index, a.constants, placement).empty());
}

}  // namespace
}  // namespace bertcl::quant::tests
