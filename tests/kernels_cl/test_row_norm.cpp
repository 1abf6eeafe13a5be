// SPDX-License-Identifier: Apache-2.0
// add_norm and embed_norm against plain C++.
#include <algorithm>

#include "device_test.hpp"
#include "kernels/bind.hpp"
#include "kernels/contracts/rows.hpp"
#include "plain_norm.hpp"

namespace bertcl::tests {
namespace {

/// A tensor as the kernel sees it, and its values. Scales and zero points are one for each column,
/// null for f32.
struct Source {
  opencl::Buffer buffer;
  int32_t type = kF32;
  opencl::Buffer scale = {}, zero_point = {};
  std::vector<double> values = {};
};

/// `count` scales around `middle`.
std::vector<float> scales_around(float middle, size_t count, unsigned seed) {
  std::vector<float> scales = normal_values(count, seed);
  for (float& s : scales) s = middle * std::exp2(std::clamp(s, -3.0f, 3.0f));
  return scales;
}

Source make_source(int32_t type, size_t count, size_t hidden, unsigned seed) {
  Source source{.buffer = {}, .type = type, .values = std::vector<double>(count)};
  if (type == kF32) {
    const auto values = normal_values(count, seed);
    source.buffer = upload(values);
    source.values.assign(values.begin(), values.end());
    return source;
  }
  const auto scales = scales_around(0.03f, hidden, seed + 10);
  const int low = type == kU8 ? 0 : -128;
  const auto zero_points = integers<int16_t>(hidden, seed + 20, low, low + 255);
  source.scale = upload(scales);
  source.zero_point = upload(std::vector<float>(zero_points.begin(), zero_points.end()));
  const auto bytes = integers<uint8_t>(count, seed, 0, 255);
  source.buffer = upload(bytes);
  for (size_t i = 0; i < count; ++i) {
    const int value = type == kU8 ? bytes[i] : static_cast<int8_t>(bytes[i]);
    source.values[i] = static_cast<double>(scales[i % hidden]) * (value - zero_points[i % hidden]);
  }
  return source;
}

/// LayerNorm or RMSNorm of each row in double.
std::vector<double> norm_of_rows(const std::vector<double>& x, size_t hidden,
                                 const std::vector<float>& gamma, const std::vector<float>& beta,
                                 double eps, bool rms = false) {
  std::vector<double> out(x.size());
  for (size_t at = 0; at < x.size(); at += hidden) {
    double mean = 0, variance = 0;
    for (size_t i = 0; i < hidden && !rms; ++i) mean += x[at + i];
    mean /= static_cast<double>(hidden);
    for (size_t i = 0; i < hidden; ++i) variance += (x[at + i] - mean) * (x[at + i] - mean);
    const double factor = 1 / std::sqrt(variance / static_cast<double>(hidden) + eps);
    for (size_t i = 0; i < hidden; ++i)
      out[at + i] = (x[at + i] - mean) * factor * gamma[i] + (beta.empty() ? 0.0f : beta[i]);
  }
  return out;
}

/// A quantized result: its bytes on the device, and a scale and a zero point for each column.
template <typename T>
struct Result {
  Result(size_t count, size_t hidden, float middle, unsigned seed)
      : bytes(count),
        inv_scales(scales_around(middle, hidden, seed)),
        zero_points(integers<int16_t>(hidden, seed + 1, std::numeric_limits<T>::min(),
                                      std::numeric_limits<T>::max())),
        inv_scale(upload(inv_scales)),
        zero_point(upload(std::vector<float>(zero_points.begin(), zero_points.end()))) {}

  void expect(const std::vector<double>& values, const std::string& what) const {
    const size_t hidden = inv_scales.size();
    std::vector<T> expected;
    for (size_t i = 0; i < values.size(); ++i)
      expected.push_back(
          static_cast<T>(quantized(static_cast<float>(values[i]) * inv_scales[i % hidden],
                                   zero_points[i % hidden], std::is_signed_v<T>)));
    expect_quantized(bytes.values(), expected, what);
  }
  static constexpr int32_t type = std::is_signed_v<T> ? kS8 : kU8;
  Output<T> bytes;
  std::vector<float> inv_scales;
  std::vector<int16_t> zero_points;
  opencl::Buffer inv_scale, zero_point;
};

void expect_add_norm(size_t rows, size_t hidden, int32_t x_type, int32_t residual_type,
                     int32_t rows_per_item = 1, bool rms = false) {
  SCOPED_TRACE("rows " + std::to_string(rows) + ", hidden " + std::to_string(hidden));
  const size_t count = rows * hidden;
  const Source x = make_source(x_type, count, hidden, 1);
  const bool with_residual = residual_type >= 0;
  const Source residual = with_residual ? make_source(residual_type, count, hidden, 2) : Source{};
  const auto gamma = normal_values(hidden, 3), beta = normal_values(hidden, 4);
  std::vector<double> sum = x.values;
  for (size_t i = 0; i < count; ++i) sum[i] += with_residual ? residual.values[i] : 0.0;
  const auto expected = norm_of_rows(sum, hidden, gamma, beta, 1e-12f, rms);

  Output<float> out(count), sums(count);
  const Result<uint8_t> u8(count, hidden, 25.0f, 6);
  const Result<int8_t> s8(count, hidden, 30.0f, 8), again(count, hidden, 30.0f, 8);
  const auto gamma_buffer = upload(gamma), beta_buffer = upload(beta);
  const auto launch = [&](const opencl::Buffer& f32, const auto& q, const auto* r) {
    const opencl::Buffer none;
    run("add_norm", "add_norm", ceil_div(rows, static_cast<size_t>(rows_per_item)),
        kernels::AddNorm<KernelArgument>{.x = x.buffer,
                                         .x_type = x.type,
                                         .x_scale = x.scale,
                                         .x_zero_point = x.zero_point,
                                         .residual = residual.buffer,
                                         .residual_type = residual.type,
                                         .residual_scale = residual.scale,
                                         .residual_zero_point = residual.zero_point,
                                         .gamma = gamma_buffer,
                                         .beta = beta_buffer,
                                         .eps = 1e-12f,
                                         .rms = rms ? 1 : 0,
                                         .sum = f32 ? sums.buffer() : none,
                                         .out = f32,
                                         .q = q.bytes.buffer(),
                                         .q_type = q.type,
                                         .q_inv_scale = q.inv_scale,
                                         .q_zero_point = q.zero_point,
                                         .r = r ? r->bytes.buffer() : none,
                                         .r_type = r ? r->type : 0,
                                         .r_inv_scale = r ? r->inv_scale : none,
                                         .r_zero_point = r ? r->zero_point : none,
                                         .rows = static_cast<int32_t>(rows),
                                         .hidden = static_cast<int32_t>(hidden),
                                         .rows_per_item = rows_per_item});
  };
  launch(out.buffer(), u8, &s8);
  launch({}, again, static_cast<const Result<int8_t>*>(nullptr));
  expect_close(out.values(), expected, "f32");
  expect_close(sums.values(), sum, "sum");
  u8.expect(expected, "u8");
  s8.expect(expected, "s8");
  expect_equal(again.bytes.values(), s8.bytes.values(), "first or second result");
}

TEST(AddNorm, SecondResultInBf16) {
  for (size_t hidden : {2, 15, 16, 17, 768, 5000}) {
    const size_t rows = 5, count = rows * hidden;
    const auto x = upload(normal_values(count, 1)), gamma = upload(normal_values(hidden, 3));
    const auto beta = upload(normal_values(hidden, 4));
    Output<float> out(count);
    Output<uint16_t> with_f32(count), alone(count);
    for (const auto* bf16 : {&with_f32, &alone}) {
      auto kernel = device().kernel("add_norm", "add_norm");
      auto arguments = plain_norm(x, gamma, 1e-12f, rows, hidden);
      arguments.beta = beta;
      if (bf16 == &with_f32) arguments.out = out.buffer();
      arguments.q = bf16->buffer();
      arguments.q_type = kBf16;
      arguments.rows_per_item = 2;
      kernels::set(kernel, arguments);
      run(kernel, ceil_div(rows, 2));
    }
    expect_equal(with_f32.values(), bf16_bits(out.values()), "hidden " + std::to_string(hidden));
    expect_equal(alone.values(), with_f32.values(), "without the result in f32");
  }
}

TEST(AddNorm, Bf16KeepsNan) {
  // A row with a NaN is NaN as a whole.
  const auto x = upload(std::vector<float>{1, NAN, 2}), gamma = upload(std::vector<float>{1, 1, 1});
  Output<uint16_t> out(3);
  auto kernel = device().kernel("add_norm", "add_norm");
  auto arguments = plain_norm(x, gamma, 1e-12f, 1, 3);
  arguments.q = out.buffer();
  arguments.q_type = kBf16;
  kernels::set(kernel, arguments);
  run(kernel, 1);
  for (float value : from_bf16(out.values())) EXPECT_TRUE(std::isnan(value));
}

TEST(AddNorm, HiddenSizes) {
  for (size_t hidden : {2, 3, 15, 16, 17, 31, 32, 33, 384, 768, 1024, 4096, 4097, 5000})
    expect_add_norm(5, hidden, kF32, kF32);
}

TEST(AddNorm, TypesOfTheOperands) {
  for (int32_t x : {kF32, kU8, kS8})
    for (int32_t residual : {-1, kF32, kU8, kS8}) expect_add_norm(4, 100, x, residual);
}

TEST(AddNorm, OfSquaresAlone) {
  for (size_t hidden : {1, 2, 3, 15, 16, 17, 31, 32, 33, 384, 768, 1024, 4096, 4097, 5000})
    expect_add_norm(5, hidden, kF32, kF32, 2, true);
  for (int32_t x : {kF32, kU8, kS8})
    for (int32_t residual : {-1, kF32, kU8, kS8}) expect_add_norm(4, 100, x, residual, 1, true);
}

TEST(AddNorm, RowsOfAnItem) {
  for (int32_t rows_per_item : {1, 2, 7, 64}) expect_add_norm(129, 48, kF32, kS8, rows_per_item);
}

TEST(AddNorm, LargeMeanKeepsItsVariance) {
  // One value repeated, plus small noise: E[x^2] - E[x]^2 would lose all digits.
  const size_t hidden = 768;
  std::vector<float> x = normal_values(hidden, 9, 0.01f);
  for (float& value : x) value += 1000.0f;
  const std::vector<float> gamma(hidden, 1.0f);
  const auto expected = norm_of_rows({x.begin(), x.end()}, hidden, gamma, {}, 1e-12);
  Output<float> out(hidden);
  auto kernel = device().kernel("add_norm", "add_norm");
  auto arguments = plain_norm(upload(x), upload(gamma), 1e-12f, 1, hidden);
  arguments.out = out.buffer();
  kernels::set(kernel, arguments);
  run(kernel, 1);
  // The mean itself has a rounding error of 1000 eps, which is 1e-2 of the deviations here.
  expect_close(out.values(), expected, "large mean", 1e5);
}

struct Embedding {
  std::vector<int32_t> input_ids, position_ids, token_type_ids;
  int32_t error = 0;
};

std::vector<float> embed(Embedding& e, const std::vector<float>& word,
                         const std::vector<float>& position, const std::vector<float>& type,
                         const std::vector<float>& gamma, const std::vector<float>& beta,
                         int32_t hidden, const Result<uint8_t>* q, const Result<int8_t>* r,
                         const opencl::Buffer* half_tables = nullptr) {
  const size_t tokens = e.input_ids.size();
  Output<float> out(tokens * static_cast<size_t>(hidden));
  auto error = upload(std::vector<int32_t>{0});
  const auto types = e.token_type_ids.empty() ? opencl::Buffer{} : upload(e.token_type_ids);
  const auto rows = [&](const std::vector<float>& table) {
    return static_cast<int32_t>(table.size()) / hidden;
  };
  const opencl::Buffer tables[] = {upload(word), upload(position), upload(type)};
  const opencl::Buffer none;
  const opencl::Buffer* used = half_tables ? half_tables : tables;
  run("embed_norm", "embed_norm", ceil_div(tokens, 3),
      kernels::EmbedNorm<KernelArgument>{.input_ids = upload(e.input_ids),
                                         .position_ids = upload(e.position_ids),
                                         .token_type_ids = types,
                                         .word_table = used[0],
                                         .word_rows = rows(word),
                                         .position_table = used[1],
                                         .position_rows = rows(position),
                                         .type_table = used[2],
                                         .type_rows = rows(type),
                                         .table_type = half_tables ? kF16 : kF32,
                                         .gamma = upload(gamma),
                                         .beta = upload(beta),
                                         .eps = 1e-12f,
                                         .out = out.buffer(),
                                         .q = q ? q->bytes.buffer() : none,
                                         .q_type = kU8,
                                         .q_inv_scale = q ? q->inv_scale : none,
                                         .q_zero_point = q ? q->zero_point : none,
                                         .r = r ? r->bytes.buffer() : none,
                                         .r_type = kS8,
                                         .r_inv_scale = r ? r->inv_scale : none,
                                         .r_zero_point = r ? r->zero_point : none,
                                         .error = error,
                                         .tokens = static_cast<int32_t>(tokens),
                                         .hidden = hidden,
                                         .rows_per_item = 3});
  e.error = error.download<int32_t>()[0];
  return out.values();
}

std::vector<double> embed_reference(const Embedding& e, const std::vector<float>& word,
                                    const std::vector<float>& position,
                                    const std::vector<float>& type, const std::vector<float>& gamma,
                                    const std::vector<float>& beta, size_t hidden) {
  std::vector<double> sum;
  for (size_t t = 0; t < e.input_ids.size(); ++t)
    for (size_t i = 0; i < hidden; ++i)
      sum.push_back(static_cast<double>(word[e.input_ids[t] * hidden + i]) +
                    position[e.position_ids[t] * hidden + i] +
                    type[(e.token_type_ids.empty() ? 0 : e.token_type_ids[t]) * hidden + i]);
  return norm_of_rows(sum, hidden, gamma, beta, 1e-12);
}

TEST(EmbedNorm, SumsTheThreeTables) {
  for (size_t hidden : {7, 16, 33, 384, 768, 4100}) {
    const auto word = normal_values(50 * hidden, 1), position = normal_values(20 * hidden, 2),
               type = normal_values(2 * hidden, 3), gamma = normal_values(hidden, 4),
               beta = normal_values(hidden, 5);
    Embedding e{integers<int32_t>(17, 6, 0, 49), integers<int32_t>(17, 7, 0, 19),
                integers<int32_t>(17, 8, 0, 1)};
    for (bool with_types : {true, false}) {
      if (!with_types) e.token_type_ids.clear();
      const auto expected = embed_reference(e, word, position, type, gamma, beta, hidden);
      const Result<uint8_t> u8(17 * hidden, hidden, 25.0f, 6);
      const Result<int8_t> s8(17 * hidden, hidden, 30.0f, 8);
      expect_close(
          embed(e, word, position, type, gamma, beta, static_cast<int32_t>(hidden), &u8, &s8),
          expected, "hidden " + std::to_string(hidden));
      u8.expect(expected, "u8");
      s8.expect(expected, "s8");
      EXPECT_EQ(e.error, 0);
    }
  }
}

TEST(EmbedNorm, HalfTables) {
  const size_t hidden = 40;
  // Multiples of 1/64 below 4 are the same in half and float.
  std::vector<float> word = normal_values(10 * hidden, 1);
  for (float& value : word) value = std::clamp(std::round(value * 64) / 64, -3.0f, 3.0f);
  std::vector<uint16_t> half;
  for (float value : word) {
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    const uint32_t exponent = (bits >> 23) & 255;
    half.push_back(static_cast<uint16_t>(
        exponent == 0 ? 0
                      : (bits >> 16 & 0x8000) | ((exponent - 112) << 10) | (bits >> 13 & 0x3ff)));
  }
  const std::vector<float> position(word.begin(), word.begin() + 5 * 40),
      type(word.begin() + 40, word.begin() + 80);
  const std::vector<uint16_t> half_position(half.begin(), half.begin() + 5 * 40),
      half_type(half.begin() + 40, half.begin() + 80);
  const std::vector<float> gamma(hidden, 1.0f), beta(hidden, 0.5f);
  Embedding e{{0, 9, 4}, {4, 0, 1}, {0, 0, 0}};
  const opencl::Buffer tables[] = {upload(half), upload(half_position), upload(half_type)};
  expect_close(embed(e, word, position, type, gamma, beta, 40, nullptr, nullptr, tables),
               embed_reference(e, word, position, type, gamma, beta, hidden), "f16 tables");
}

TEST(EmbedNorm, IdsOutsideSetTheErrorAndReadTheNearestRow) {
  const size_t hidden = 16;
  const auto word = normal_values(4 * hidden, 1), position = normal_values(4 * hidden, 2),
             type = normal_values(2 * hidden, 3);
  const std::vector<float> gamma(hidden, 1.0f), beta(hidden, 0.0f);
  const std::vector<int32_t> good{1, 2}, high{1, 4}, low{-1, 2}, huge{2147483647, 0};
  for (const auto& bad : {high, low, huge})
    for (int which = 0; which < 3; ++which) {
      Embedding e{which == 0 ? bad : good, which == 1 ? bad : good,
                  which == 2 ? bad : std::vector<int32_t>{0, 1}};
      Embedding near = e;
      for (auto& id : near.input_ids) id = std::clamp(id, 0, 3);
      for (auto& id : near.position_ids) id = std::clamp(id, 0, 3);
      for (auto& id : near.token_type_ids) id = std::clamp(id, 0, 1);
      expect_close(embed(e, word, position, type, gamma, beta, 16, nullptr, nullptr),
                   embed_reference(near, word, position, type, gamma, beta, hidden), "clamped");
      EXPECT_EQ(e.error, 1);
    }
}

}  // namespace
}  // namespace bertcl::tests
