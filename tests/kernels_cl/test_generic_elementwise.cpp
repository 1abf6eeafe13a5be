// SPDX-License-Identifier: Apache-2.0
// elementwise_binary and elementwise_unary against plain C++.
#include <functional>

#include "device_test.hpp"
#include "kernels/contracts/elementwise.hpp"

namespace bertcl::tests {
namespace {

using Ints = std::vector<int32_t>;

/// Operands [3][5][37], [5][37] repeated, [3][5][1] repeated, one scalar: every kind of inner run.
struct Broadcast {
  const char* name;
  Ints a_strides, b_strides;
};
const Broadcast kBroadcasts[] = {{"same shape", {185, 37, 1}, {185, 37, 1}},
                                 {"b repeats along the first", {185, 37, 1}, {0, 37, 1}},
                                 {"b is a column", {185, 37, 1}, {5, 1, 0}},
                                 {"a is a scalar", {0, 0, 0}, {185, 37, 1}},
                                 {"a transposed", {1, 3, 15}, {185, 37, 1}}};
constexpr int32_t kCount = 3 * 5 * 37;

template <typename T, typename Out>
void expect_binary(const std::string& type, int32_t op, const std::vector<T>& a,
                   const std::vector<T>& b, const std::function<Out(T, T)>& reference,
                   double limit = 0) {
  for (const Broadcast& broadcast : kBroadcasts)
    for (int32_t chunk : {7, 64, 1000}) {
      std::vector<Out> expected;
      for (int32_t i = 0; i < kCount; ++i) {
        const int32_t index[] = {i / 185, i / 37 % 5, i % 37};
        int32_t at_a = 0, at_b = 0;
        for (size_t d = 0; d < 3; ++d) {
          at_a += index[d] * broadcast.a_strides[d];
          at_b += index[d] * broadcast.b_strides[d];
        }
        expected.push_back(reference(a[at_a], b[at_b]));
      }
      Ints shape{3, 5, 37};
      shape.insert(shape.end(), broadcast.a_strides.begin(), broadcast.a_strides.end());
      shape.insert(shape.end(), broadcast.b_strides.begin(), broadcast.b_strides.end());
      Output<Out> out(kCount);
      run("elementwise_binary", "binary_" + type, ceil_div(kCount, static_cast<size_t>(chunk)),
          kernels::Binary<KernelArgument>{.a = upload(a),
                                          .b = upload(b),
                                          .out = out.buffer(),
                                          .op = op,
                                          .shape = upload(shape),
                                          .rank = 3,
                                          .count = kCount,
                                          .chunk = chunk});
      const std::string what = type + " op " + std::to_string(op) + ", " + broadcast.name;
      if constexpr (std::is_same_v<Out, float>)
        expect_close(out.values(), expected, what, limit);
      else
        expect_equal(out.values(), expected, what);
    }
}

TEST(Binary, FloatArithmetic) {
  const auto a = normal_values(kCount, 1), b = normal_values(kCount, 2);
  const auto f = [&](int32_t op, float (*reference)(float, float), double limit = 0.0) {
    expect_binary<float, float>("f32", op, a, b, reference, limit);
  };
  f(0, [](float x, float y) { return x + y; });
  f(1, [](float x, float y) { return x - y; });
  f(2, [](float x, float y) { return x * y; });
  f(
      3, [](float x, float y) { return x / y; }, 2.5);
  f(5, [](float x, float y) { return std::min(x, y); });
  f(6, [](float x, float y) { return std::max(x, y); });
  f(
      7, [](float x, float y) { return x - std::floor(x / y) * y; }, 4.0);
  f(8, [](float x, float y) { return std::fmod(x, y); });
  std::vector<float> positive = a;
  for (float& value : positive) value = std::abs(value);
  expect_binary<float, float>(
      "f32", 4, positive, b, [](float x, float y) { return std::pow(x, y); }, 16);
  expect_binary<float, float>(
      "f32", 4, a, std::vector<float>(kCount, 2.0f), [](float x, float) { return x * x; }, 0);
}

TEST(Binary, PowersOfKnownExponents) {
  std::vector<float> a = normal_values(kCount, 1);
  for (float exponent : {2.0f, 3.0f, 0.5f}) {
    if (exponent == 0.5f)
      for (float& value : a) value = std::abs(value);
    expect_binary<float, float>(
        "f32", 4, a, std::vector<float>(kCount, exponent),
        [](float x, float y) { return std::pow(x, y); }, 4);
  }
}

TEST(Binary, FloatComparisons) {
  const auto whole = [](unsigned seed) {
    const auto values = integers<int32_t>(kCount, seed, -2, 2);
    return std::vector<float>(values.begin(), values.end());
  };
  const auto a = whole(1), b = whole(2);
  const auto f = [&](int32_t op, bool (*reference)(float, float)) {
    expect_binary<float, uint8_t>("f32", op, a, b, reference);
  };
  f(16, [](float x, float y) { return x == y; });
  f(17, [](float x, float y) { return x < y; });
  f(18, [](float x, float y) { return x > y; });
  f(19, [](float x, float y) { return x <= y; });
  f(20, [](float x, float y) { return x >= y; });
}

TEST(Binary, MinMaxHandOnNaN) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> a{nan, 1, nan, 1}, b{1, nan, nan, 2};
  for (int32_t op : {5, 6}) {
    Output<float> out(4);
    run("elementwise_binary", "binary_f32", 1,
        kernels::Binary<KernelArgument>{.a = upload(a),
                                        .b = upload(b),
                                        .out = out.buffer(),
                                        .op = op,
                                        .shape = upload(Ints{4, 1, 1}),
                                        .rank = 1,
                                        .count = 4,
                                        .chunk = 4});
    const auto values = out.values();
    for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(std::isnan(values[i])) << op << " " << i;
    EXPECT_EQ(values[3], op == 5 ? 1 : 2);
  }
}

template <typename T>
void expect_integer(const std::string& type) {
  const auto a = integers<T>(kCount, 1, -50, 50), b = integers<T>(kCount, 2, -5, 5);
  const auto f = [&](int32_t op, T (*reference)(T, T)) {
    expect_binary<T, T>(type, op, a, b, reference);
  };
  f(0, [](T x, T y) -> T { return x + y; });
  f(1, [](T x, T y) -> T { return x - y; });
  f(2, [](T x, T y) -> T { return x * y; });
  f(3, [](T x, T y) -> T { return y == 0 ? 0 : x / y; });
  f(5, [](T x, T y) -> T { return std::min(x, y); });
  f(6, [](T x, T y) -> T { return std::max(x, y); });
  f(7, [](T x, T y) -> T { return y == 0 ? 0 : ((x % y) + y) % y; });
  f(8, [](T x, T y) -> T { return y == 0 ? 0 : x % y; });
  expect_binary<T, uint8_t>(type, 16, a, b, [](T x, T y) { return x == y; });
  expect_binary<T, uint8_t>(type, 17, a, b, [](T x, T y) { return x < y; });
  expect_binary<T, uint8_t>(type, 20, a, b, [](T x, T y) { return x >= y; });
  expect_binary<T, T>(type, 4, b, integers<T>(kCount, 3, 0, 6), [](T x, T y) {
    T power = 1;
    for (T i = 0; i < y; ++i) power *= x;
    return power;
  });
}

TEST(Binary, Integers) {
  expect_integer<int32_t>("i32");
  expect_integer<int64_t>("i64");
}

TEST(Binary, WideIntegersAndTheSmallestByMinusOne) {
  const int64_t smallest = std::numeric_limits<int64_t>::min();
  expect_binary<int64_t, int64_t>("i64", 0, std::vector<int64_t>(kCount, int64_t{1} << 40),
                                  std::vector<int64_t>(kCount, 3), std::plus<>());
  expect_binary<int64_t, int64_t>("i64", 3, std::vector<int64_t>(kCount, smallest),
                                  std::vector<int64_t>(kCount, -1),
                                  [=](int64_t, int64_t) { return smallest; });
}

TEST(Binary, Logic) {
  const auto a = integers<uint8_t>(kCount, 1, 0, 1), b = integers<uint8_t>(kCount, 2, 0, 1);
  const auto f = [&](int32_t op, uint8_t (*reference)(uint8_t, uint8_t)) {
    expect_binary<uint8_t, uint8_t>("bool", op, a, b, reference);
  };
  f(24, [](uint8_t x, uint8_t y) -> uint8_t { return x & y; });
  f(25, [](uint8_t x, uint8_t y) -> uint8_t { return x | y; });
  f(26, [](uint8_t x, uint8_t y) -> uint8_t { return x ^ y; });
  f(16, [](uint8_t x, uint8_t y) -> uint8_t { return x == y; });
}

std::vector<float> unary(int32_t op, const std::vector<float>& x, int32_t chunk) {
  Output<float> out(x.size());
  run("elementwise_unary", "unary_f32", ceil_div(x.size(), static_cast<size_t>(chunk)),
      kernels::Unary<KernelArgument>{.x = upload(x),
                                     .out = out.buffer(),
                                     .op = op,
                                     .count = static_cast<int32_t>(x.size()),
                                     .chunk = chunk});
  return out.values();
}

double gelu(double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }
double gelu_tanh(double x) {
  return 0.5 * x *
         (1 + std::tanh(std::sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
}

TEST(Unary, FloatFunctions) {
  const auto x = normal_values(301, 1, 3.0f);
  std::vector<float> positive = x;
  for (float& value : positive) value = std::abs(value) + 1e-3f;
  const auto f = [](int32_t op, const std::vector<float>& values, double (*reference)(double),
                    double limit = 4) {
    std::vector<double> expected;
    for (float value : values) expected.push_back(reference(value));
    for (int32_t chunk : {1, 17, 1000})
      expect_close(unary(op, values, chunk), expected, "op " + std::to_string(op), limit);
  };
  f(
      0, x, [](double v) { return -v; }, 0);
  f(
      1, x, [](double v) { return std::abs(v); }, 0);
  f(2, positive, [](double v) { return std::sqrt(v); });
  f(3, x, [](double v) { return std::exp(v); });
  f(4, positive, [](double v) { return std::log(v); });
  f(5, x, [](double v) { return std::erf(v); });
  f(6, x, [](double v) { return std::tanh(v); });
  f(7, x, [](double v) { return 1 / (1 + std::exp(-v)); });
  f(
      8, x, [](double v) { return std::max(v, 0.0); }, 0);
  f(9, x, gelu);
  f(10, x, gelu_tanh);
  f(11, positive, [](double v) { return 1 / v; });
  f(
      12, x, [](double v) { return std::floor(v); }, 0);
  f(
      13, x, [](double v) { return std::ceil(v); }, 0);
  f(
      14, {0.5f, 1.5f, 2.5f, -0.5f, -1.5f, 2.4f, 1e9f}, [](double v) { return std::nearbyint(v); },
      0);
  f(
      15, {-2.0f, 0.0f, 3.0f}, [](double v) { return static_cast<double>((v > 0) - (v < 0)); }, 0);
  f(16, x, [](double v) { return std::sin(v); });
  f(17, x, [](double v) { return std::cos(v); });
}

TEST(Unary, EndsOfTheRange) {
  const float inf = INFINITY, nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> x{inf, -inf, 100.0f, -110.0f, 88.5f, nan};
  const auto e = unary(3, x, 10);
  EXPECT_EQ(e[0], inf);
  EXPECT_EQ(e[1], 0.0f);
  EXPECT_EQ(e[2], inf);
  EXPECT_NEAR(e[3], 0.0f, 1e-37f);
  EXPECT_NEAR(e[4] / std::exp(88.5f), 1.0f, 1e-6f);
  for (int32_t op : {5, 6}) {
    const auto y = unary(op, x, 10);
    EXPECT_NEAR(y[0], 1.0f, 1e-6f) << op;
    EXPECT_NEAR(y[1], -1.0f, 1e-6f) << op;
  }
  EXPECT_EQ(unary(7, x, 10)[0], 1.0f);
  EXPECT_NEAR(unary(7, x, 10)[1], 0.0f, 1e-37f);
  for (int32_t op : {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17})
    EXPECT_TRUE(std::isnan(unary(op, x, 10)[5])) << op;
  Output<uint8_t> is_nan(6);
  run("elementwise_unary", "unary_f32", 2,
      kernels::Unary<KernelArgument>{
          .x = upload(x), .out = is_nan.buffer(), .op = 19, .count = 6, .chunk = 4});
  expect_equal(is_nan.values(), {0, 0, 0, 0, 0, 1}, "is_nan");
}

template <typename T>
void expect_unary(const std::string& type, int32_t op, const std::vector<T>& x,
                  const std::vector<T>& expected) {
  Output<T> out(x.size());
  run("elementwise_unary", "unary_" + type, ceil_div(x.size(), 2),
      kernels::Unary<KernelArgument>{.x = upload(x),
                                     .out = out.buffer(),
                                     .op = op,
                                     .count = static_cast<int32_t>(x.size()),
                                     .chunk = 2});
  expect_equal(out.values(), expected, type + " op " + std::to_string(op));
}

TEST(Unary, IntegersAndNot) {
  expect_unary<int32_t>("i32", 0, {1, -2, 0}, {-1, 2, 0});
  expect_unary<int32_t>("i32", 1, {1, -2, 0}, {1, 2, 0});
  expect_unary<int64_t>("i64", 15, {int64_t{1} << 40, -2, 0}, {1, -1, 0});
  expect_unary<int64_t>("i64", 8, {5, -2, 0}, {5, 0, 0});
  expect_unary<uint8_t>("bool", 18, {1, 0, 1}, {0, 1, 0});
}

}  // namespace
}  // namespace bertcl::tests
