// SPDX-License-Identifier: Apache-2.0
// reduce, argmax, cumsum and softmax against plain C++.
#include <algorithm>
#include <limits>
#include <map>

#include "device_test.hpp"
#include "kernels/contracts/reduce.hpp"
#include "kernels/contracts/rows.hpp"

namespace bertcl::tests {
namespace {

struct View {
  int32_t outer, size, inner;
  size_t results() const { return static_cast<size_t>(outer) * static_cast<size_t>(inner); }
  size_t count() const { return results() * static_cast<size_t>(size); }
  size_t at(size_t result, size_t r) const {
    const auto columns = static_cast<size_t>(inner);
    return (result / columns * static_cast<size_t>(size) + r) * columns + result % columns;
  }
};
const View kViews[] = {{1, 1, 1},   {5, 1, 3},  {4, 15, 1}, {4, 16, 1},  {3, 17, 1},
                       {2, 768, 1}, {2, 9, 16}, {3, 8, 40}, {2, 100, 5}, {7, 3, 33}};

template <typename T, typename Join>
std::vector<double> reduced(const View& view, const std::vector<T>& x, double start, Join&& join) {
  std::vector<double> result(view.results(), start);
  for (size_t i = 0; i < result.size(); ++i)
    for (size_t r = 0; r < static_cast<size_t>(view.size); ++r)
      result[i] = join(result[i], static_cast<double>(x[view.at(i, r)]));
  return result;
}

template <typename T>
std::vector<T> reduce(const std::string& type, int32_t op, const View& view,
                      const std::vector<T>& x, int32_t chunk) {
  Output<T> out(view.results());
  // Without elements there is no buffer, as the executor gives none.
  run("reduce", "reduce_" + type, ceil_div(view.results(), static_cast<size_t>(chunk)),
      kernels::Reduce<KernelArgument>{.x = x.empty() ? opencl::Buffer() : upload(x),
                                      .out = out.buffer(),
                                      .op = op,
                                      .outer = view.outer,
                                      .size = view.size,
                                      .inner = view.inner,
                                      .chunk = chunk});
  return out.values();
}

TEST(Reduce, Float) {
  for (const View& view : kViews)
    for (int32_t chunk : {1, 10, 1000}) {
      auto x = normal_values(view.count(), 1);
      for (float& value : x) value += 0.5f;  // a sum of 0 has no relative error
      const auto check = [&](int32_t op, std::vector<double> expected) {
        expect_close(reduce("f32", op, view, x, chunk), expected,
                     "op " + std::to_string(op) + ", size " + std::to_string(view.size) +
                         ", inner " + std::to_string(view.inner));
      };
      const auto sum = reduced(view, x, 0, [](double s, double v) { return s + v; });
      auto mean = sum;
      for (double& value : mean) value /= view.size;
      auto l2 = reduced(view, x, 0, [](double s, double v) { return s + v * v; });
      for (double& value : l2) value = std::sqrt(value);
      check(0, sum);
      check(1, mean);
      check(2, reduced(view, x, -1e30, [](double s, double v) { return std::max(s, v); }));
      check(3, reduced(view, x, 1e30, [](double s, double v) { return std::min(s, v); }));
      if (view.size < 100) check(4, reduced(view, x, 1, [](double s, double v) { return s * v; }));
      check(5, l2);
    }
}

TEST(Reduce, NegativeMaximumAndNaN) {
  std::vector<float> x(20, -3.0f);
  EXPECT_EQ(reduce("f32", 2, {1, 20, 1}, x, 1)[0], -3.0f);
  for (size_t place : {0u, 7u, 19u}) {
    auto with_nan = x;
    with_nan[place] = std::numeric_limits<float>::quiet_NaN();
    for (int32_t op : {2, 3})
      EXPECT_TRUE(std::isnan(reduce("f32", op, {1, 20, 1}, with_nan, 1)[0])) << place;
  }
}

template <typename T>
void expect_integer_reductions(const std::string& type) {
  for (const View& view : kViews) {
    const auto x = integers<T>(view.count(), 1, -9, 9);
    const auto check = [&](int32_t op, const std::vector<double>& expected) {
      expect_equal(reduce(type, op, view, x, 4), std::vector<T>(expected.begin(), expected.end()),
                   type);
    };
    check(0, reduced(view, x, 0, [](double s, double v) { return s + v; }));
    check(2, reduced(view, x, -100, [](double s, double v) { return std::max(s, v); }));
    check(3, reduced(view, x, 100, [](double s, double v) { return std::min(s, v); }));
  }
  EXPECT_EQ(reduce<T>(type, 1, {1, 3, 1}, {4, 5, 8}, 1)[0], 5);
  EXPECT_EQ(reduce<T>(type, 4, {1, 3, 1}, {4, 5, -8}, 1)[0], -160);
}

template <typename T>
void expect_identities(const std::string& type, T lowest, T highest) {
  const std::map<int32_t, T> of{{0, 0}, {2, lowest}, {3, highest}, {4, 1}};
  for (const View& view : {View{2, 0, 1}, View{3, 0, 5}})
    for (const auto& [op, identity] : of)
      expect_equal(reduce<T>(type, op, view, {}, 4), std::vector<T>(view.results(), identity),
                   type + " op " + std::to_string(op));
}

// What ONNX says; of the mean it says nothing.
TEST(Reduce, AnEmptyAxisGivesTheIdentity) {
  using I32 = std::numeric_limits<int32_t>;
  using I64 = std::numeric_limits<int64_t>;
  expect_identities<float>("f32", -INFINITY, INFINITY);
  expect_identities<int32_t>("i32", I32::min(), I32::max());
  expect_identities<int64_t>("i64", I64::min(), I64::max());
  EXPECT_TRUE(std::isnan(reduce<float>("f32", 1, {1, 0, 1}, {}, 1)[0]));
  EXPECT_EQ(reduce<int32_t>("i32", 1, {1, 0, 1}, {}, 1)[0], 0);
  EXPECT_EQ(reduce<int64_t>("i64", 1, {1, 0, 1}, {}, 1)[0], 0);
}

TEST(Reduce, Integers) {
  expect_integer_reductions<int32_t>("i32");
  expect_integer_reductions<int64_t>("i64");
}

template <typename T>
void expect_place_of_the_largest(const std::string& type, bool take_last) {
  for (const View& view : kViews) {
    const auto whole = integers<int32_t>(view.count(), 1, -3, 2);
    const std::vector<T> x(whole.begin(), whole.end());
    std::vector<int64_t> expected(view.results(), 0);
    for (size_t i = 0; i < expected.size(); ++i)
      for (size_t r = 0; r < static_cast<size_t>(view.size); ++r)
        if (const T largest = x[view.at(i, static_cast<size_t>(expected[i]))];
            x[view.at(i, r)] > largest || (take_last && x[view.at(i, r)] == largest))
          expected[i] = static_cast<int64_t>(r);
    Output<int64_t> out(view.results());
    run("reduce", "argmax_" + type, ceil_div(view.results(), 4),
        kernels::ArgMax<KernelArgument>{.x = upload(x),
                                        .out = out.buffer(),
                                        .outer = view.outer,
                                        .size = view.size,
                                        .inner = view.inner,
                                        .take_last = static_cast<int32_t>(take_last),
                                        .chunk = 4});
    expect_equal(out.values(), expected, "argmax_" + type);
  }
}

TEST(ArgMax, FirstOrLastOfTheLargest) {
  for (const bool take_last : {false, true}) {
    expect_place_of_the_largest<float>("f32", take_last);
    expect_place_of_the_largest<int32_t>("i32", take_last);
    expect_place_of_the_largest<int64_t>("i64", take_last);
  }
}

template <typename T>
void expect_cumsum(const std::string& type) {
  for (int32_t exclusive : {0, 1})
    for (int32_t reverse : {0, 1}) {
      const View view{3, 17, 5};
      const auto x = integers<T>(view.count(), 1, -9, 9);
      std::vector<T> expected(view.count());
      for (size_t i = 0; i < view.results(); ++i) {
        T sum = 0;
        for (size_t s = 0; s < 17; ++s) {
          const size_t at = view.at(i, reverse ? 16 - s : s);
          expected[at] = exclusive ? sum : static_cast<T>(sum + x[at]);
          sum += x[at];
        }
      }
      Output<T> out(view.count());
      run("cumsum", "cumsum_" + type, 4,
          kernels::CumSum<KernelArgument>{.x = upload(x),
                                          .out = out.buffer(),
                                          .outer = 3,
                                          .size = 17,
                                          .inner = 5,
                                          .exclusive = exclusive,
                                          .reverse = reverse,
                                          .chunk = 4});
      expect_equal(out.values(), expected, type);
    }
}

TEST(CumSum, AllTypes) {
  expect_cumsum<float>("f32");
  expect_cumsum<int32_t>("i32");
  expect_cumsum<int64_t>("i64");
}

std::vector<float> softmax(const std::vector<float>& x, int32_t size, int32_t logarithm) {
  const auto rows = static_cast<int32_t>(x.size()) / size;
  Output<float> out(x.size());
  run("softmax", "softmax_f32", ceil_div(static_cast<size_t>(rows), 3),
      kernels::SoftmaxF32<KernelArgument>{.x = upload(x),
                                          .out = out.buffer(),
                                          .rows = rows,
                                          .size = size,
                                          .logarithm = logarithm,
                                          .rows_per_item = 3});
  return out.values();
}

TEST(Softmax, Sizes) {
  for (size_t size : {1, 2, 15, 16, 17, 31, 32, 33, 127, 128, 129, 384, 1000})
    for (float sharpness : {1.0f, 30.0f})
      for (int32_t logarithm : {0, 1}) {
        const auto x = normal_values(7 * size, 1, sharpness);
        std::vector<double> expected;
        for (size_t row = 0; row < 7; ++row) {
          const float largest =
              *std::max_element(x.begin() + row * size, x.begin() + (row + 1) * size);
          double total = 0;
          for (size_t i = 0; i < size; ++i)
            total += std::exp(static_cast<double>(x[row * size + i]) - largest);
          for (size_t i = 0; i < size; ++i) {
            const double shifted = static_cast<double>(x[row * size + i]) - largest;
            expected.push_back(logarithm ? shifted - std::log(total) : std::exp(shifted) / total);
          }
        }
        expect_close(softmax(x, static_cast<int32_t>(size), logarithm), expected,
                     "size " + std::to_string(size));
      }
}

// The logarithm of the sum has fewer digits than large scores have places before the point.
TEST(Softmax, TheLogarithmOfLargeScoresIsExact) {
  for (const float score : {1e3f, 1e6f, 1e8f, -1e8f}) {
    std::vector<float> x(5, score);
    x[1] -= 16.0f;
    const double highest = -std::log(4 + std::exp(-16.0));
    const auto y = softmax(x, 5, 1);
    for (size_t i = 0; i < x.size(); ++i)
      EXPECT_NEAR(y[i], i == 1 ? highest - 16 : highest, 2e-6) << score << " " << i;
  }
}

TEST(Softmax, MaskedEntriesAndRows) {
  std::vector<float> x(40, -INFINITY);
  x[3] = 1e30f;
  x[5] = -1e30f;
  const auto y = softmax(x, 20, 0);
  for (size_t i = 0; i < 20; ++i) EXPECT_EQ(y[i], i == 3 ? 1.0f : 0.0f) << i;
  for (size_t i = 20; i < 40; ++i) EXPECT_TRUE(std::isnan(y[i])) << "as in ONNX Runtime, " << i;
}

// Wherever it is, alone or next to what is masked.
TEST(Softmax, NaNAndInfinityMakeTheRowNaN) {
  std::vector<float> strange = nans();
  strange.push_back(INFINITY);
  for (const float value : strange)
    for (int32_t logarithm : {0, 1})
      for (const size_t at : {0u, 5u, 16u, 20u})
        for (const float others : {1.0f, -INFINITY, value}) {
          std::vector<float> x = normal_values(3 * 21, 1);
          std::fill(x.begin() + 21, x.begin() + 42, others);
          x[21 + at] = value;
          const auto y = softmax(x, 21, logarithm);
          for (size_t i = 0; i < 63; ++i) {
            // LogSoftmax of the largest: inf - inf; of the others -inf, as in ONNX Runtime.
            if (i / 21 == 1 && std::isinf(value) && logarithm && !std::isnan(y[i])) continue;
            ASSERT_EQ(std::isnan(y[i]), i / 21 == 1) << value << " at " << at << ", " << i;
          }
        }
}

}  // namespace
}  // namespace bertcl::tests
