// SPDX-License-Identifier: Apache-2.0
// Row kernels of work-groups against those of work-items, which tests of their own compare with
// plain C++: with reductions in local memory and by sub-groups of every size that the device gives.
#include <cmath>
#include <numeric>

#include "device_test.hpp"
#include "kernels/bind.hpp"
#include "kernels/contracts/rows.hpp"
#include "norm_results.hpp"
#include "plain_norm.hpp"

namespace bertcl::tests {
namespace {

constexpr size_t kRows = 3;

/// One way to build them: work-items of a group, and how these reduce.
struct Variant {
  int items = 64, subgroups = 0, part = 8, subgroup_size = 0;
  int vectors = 256 / items;  // so that one build serves all rows of up to 1024 columns

  std::string name() const {
    const std::string group =
        std::to_string(items) + "_items_" + std::to_string(vectors) + "_vectors_";
    if (!subgroups) return group + "parts_of_" + std::to_string(part);
    return group + "subgroups" +
           (subgroup_size ? "_of_" + std::to_string(subgroup_size) : std::string());
  }
  opencl::Defines defines() const {
    return {{"ITEMS", items},
            {"VECTORS", vectors},
            {"SUBGROUPS", subgroups},
            {"PART", part},
            {"SUBGROUP_SIZE", subgroup_size}};
  }
};

/// An operand of `type`: f32, or bytes with a scale and a zero point for each column.
struct Operand {
  int32_t type = kF32;
  opencl::Buffer values = {}, scales = {}, zero_points = {};
};

Operand operand(int32_t type, size_t count, size_t columns, unsigned seed) {
  if (type < 0) return {};
  if (type == kF32) return {type, upload(normal_values(count, seed))};
  std::vector<float> scales = normal_values(columns, seed + 1), zero_points;
  for (float& s : scales) s = 0.01f + 0.02f * std::abs(s);
  for (const int z : integers<int>(columns, seed + 2, 0, 127))
    zero_points.push_back(static_cast<float>(z));
  return {type, upload(integers<uint8_t>(count, seed, 0, 255)), upload(scales),
          upload(zero_points)};
}

/// Columns that fill no vector, no work-item's share and no group, and those around them.
constexpr size_t kColumns[] = {1, 2, 3, 4, 5, 31, 63, 64, 65, 255, 256, 257, 384, 768, 1021, 1024};

class RowGroups : public ::testing::TestWithParam<Variant> {
 protected:
  void SetUp() override {
    const auto reason = lacks(GetParam().subgroups ? &opencl::Capabilities::subgroups : nullptr);
    if (!reason.empty()) GTEST_SKIP() << reason;
    if (GetParam().subgroup_size && device().info().vendor.find("Intel") == std::string::npos)
      GTEST_SKIP() << "sub-groups of a size are asked of Intel's compiler alone";
  }
  opencl::Kernel kernel(const std::string& program, const char* name) const {
    return group_kernel(program + "_group", name, GetParam().defines());
  }
  void run_group(const opencl::Kernel& kernel, size_t rows) const {
    const auto items = static_cast<size_t>(GetParam().items);
    device().queue().launch(kernel, {items * rows, 1, 1}, {items, 1, 1});
    device().queue().finish();
  }

  // Each runs both kernels on the same operands and compares what they write.
  void compare_add_norm(size_t rows, size_t columns, int32_t x_type, int32_t residual_type,
                        bool rms) const;
  void compare_embed_norm(size_t tokens, size_t columns, int32_t table_type, bool has_types) const;
  void compare_quantize_rows(size_t rows, size_t columns) const;
  void compare_softmax(size_t rows, size_t columns, int32_t logarithm) const;
};

void RowGroups::compare_add_norm(size_t rows, size_t columns, int32_t x_type, int32_t residual_type,
                                 bool rms) const {
  const size_t count = rows * columns;
  const Operand x = operand(x_type, count, columns, 1);
  const Operand residual = operand(residual_type, count, columns, 4);
  const auto gamma = upload(normal_values(columns, 8)), beta = upload(normal_values(columns, 9));
  const Operand q = operand(kU8, 0, columns, 10), r = operand(kS8, 0, columns, 13);
  const auto inverse = upload(std::vector<float>(columns, 31.0f));
  const NormResults expected(count), actual(count);
  const auto set = [&](opencl::Kernel k, const NormResults& to) {
    kernels::set(k, kernels::AddNorm<KernelArgument>{.x = x.values,
                                                     .x_type = x.type,
                                                     .x_scale = x.scales,
                                                     .x_zero_point = x.zero_points,
                                                     .residual = residual.values,
                                                     .residual_type = residual.type,
                                                     .residual_scale = residual.scales,
                                                     .residual_zero_point = residual.zero_points,
                                                     .gamma = gamma,
                                                     .beta = beta,
                                                     .eps = 1e-5f,
                                                     .rms = rms ? 1 : 0,
                                                     .sum = to.sum.buffer(),
                                                     .out = to.out.buffer(),
                                                     .q = to.q.buffer(),
                                                     .q_type = kU8,
                                                     .q_inv_scale = inverse,
                                                     .q_zero_point = q.zero_points,
                                                     .r = to.r.buffer(),
                                                     .r_type = kS8,
                                                     .r_inv_scale = inverse,
                                                     .r_zero_point = r.zero_points,
                                                     .rows = static_cast<int32_t>(rows),
                                                     .hidden = static_cast<int32_t>(columns),
                                                     .rows_per_item = 1});
    return k;
  };
  run(set(device().kernel("add_norm", "add_norm"), expected), rows);
  run_group(set(kernel("add_norm", "add_norm"), actual), rows);
  actual.expect(expected, GetParam().name() + ", add_norm of " + std::to_string(columns) +
                              " columns, types " + std::to_string(x_type) + " and " +
                              std::to_string(residual_type));
}

void RowGroups::compare_embed_norm(size_t tokens, size_t columns, int32_t table_type,
                                   bool has_types) const {
  const size_t count = tokens * columns;
  const auto table = [&](size_t rows, unsigned seed) {
    const auto values = normal_values(rows * columns, seed);
    return table_type == kF16 ? upload(cast<uint16_t>(values)) : upload(values);
  };
  const auto word = table(50, 1), position = table(20, 2), type = table(2, 3),
             gamma = upload(normal_values(columns, 4)), beta = upload(normal_values(columns, 5));
  const auto ids = upload(integers<int32_t>(tokens, 6, 0, 51)),  // two of them outside
      positions = upload(integers<int32_t>(tokens, 7, 0, 19)),
             types = upload(integers<int32_t>(tokens, 8, 0, 1));
  const opencl::Buffer none;
  const auto inverse = upload(std::vector<float>(columns, 31.0f)),
             zeros = upload(std::vector<float>(columns, 3.0f));
  const NormResults expected(count), actual(count);
  const auto error = upload(std::vector<int32_t>{0}), same = upload(std::vector<int32_t>{0});
  const auto set = [&](opencl::Kernel k, const NormResults& to, const opencl::Buffer& flag) {
    kernels::set(k, kernels::EmbedNorm<KernelArgument>{.input_ids = ids,
                                                       .position_ids = positions,
                                                       .token_type_ids = has_types ? types : none,
                                                       .word_table = word,
                                                       .word_rows = 50,
                                                       .position_table = position,
                                                       .position_rows = 20,
                                                       .type_table = type,
                                                       .type_rows = 2,
                                                       .table_type = table_type,
                                                       .gamma = gamma,
                                                       .beta = beta,
                                                       .eps = 1e-12f,
                                                       .out = to.out.buffer(),
                                                       .q = to.q.buffer(),
                                                       .q_type = kU8,
                                                       .q_inv_scale = inverse,
                                                       .q_zero_point = zeros,
                                                       .r = to.r.buffer(),
                                                       .r_type = kS8,
                                                       .r_inv_scale = inverse,
                                                       .r_zero_point = zeros,
                                                       .error = flag,
                                                       .tokens = static_cast<int32_t>(tokens),
                                                       .hidden = static_cast<int32_t>(columns),
                                                       .rows_per_item = 1});
    return k;
  };
  run(set(device().kernel("embed_norm", "embed_norm"), expected, error), tokens);
  run_group(set(kernel("embed_norm", "embed_norm"), actual, same), tokens);
  actual.expect(expected, GetParam().name() + ", embed_norm of " + std::to_string(columns) +
                              " columns, type " + std::to_string(table_type));
  expect_equal(same.download<int32_t>(), error.download<int32_t>(), "the flag of wrong ids");
}

void RowGroups::compare_quantize_rows(size_t rows, size_t columns) const {
  auto values = normal_values(rows * columns, static_cast<unsigned>(columns));
  std::fill(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(columns), 0.0f);
  values[2 * columns - 1] = -9.5f;  // the extreme stands last
  const auto x = upload(values);
  const Output<int8_t> expected(values.size()), actual(values.size());
  const Output<float> expected_scale(rows), scale(rows);
  const auto set = [&](opencl::Kernel k, const Output<int8_t>& y, const Output<float>& s) {
    kernels::set(k, kernels::QuantizeRows<KernelArgument>{.x = x,
                                                          .y = y.buffer(),
                                                          .y_type = kS8,
                                                          .scale = s.buffer(),
                                                          .least = 1e-30f,
                                                          .rows = static_cast<int32_t>(rows),
                                                          .hidden = static_cast<int32_t>(columns),
                                                          .rows_per_item = 1});
    return k;
  };
  run(set(device().kernel("quantize_rows", "quantize_rows"), expected, expected_scale), rows);
  run_group(set(kernel("quantize_rows", "quantize_rows"), actual, scale), rows);
  const std::string what = GetParam().name() + ", rows of " + std::to_string(columns);
  expect_equal(scale.values(), expected_scale.values(), what);
  expect_equal(actual.values(), expected.values(), what);
}

void RowGroups::compare_softmax(size_t rows, size_t columns, int32_t logarithm) const {
  auto values = normal_values(rows * columns, static_cast<unsigned>(columns), 5.0f);
  for (size_t i = 0; i < columns; ++i) values[i] = -INFINITY;  // a row of nothing
  values[2 * columns - 1] = -INFINITY;
  if (columns == 1) values[1] = 0.0f;
  if (rows > 3) {
    values[2 * columns + columns / 2] = nans()[1];
    for (size_t i = 3 * columns; i < 4 * columns; ++i) values[i] = -INFINITY;
    values[4 * columns - 1] = nans()[2];  // beside nothing else
  }
  const auto x = upload(values);
  const Output<float> expected(values.size()), actual(values.size());
  const auto set = [&](opencl::Kernel k, const Output<float>& out) {
    kernels::set(k, kernels::SoftmaxF32<KernelArgument>{.x = x,
                                                        .out = out.buffer(),
                                                        .rows = static_cast<int32_t>(rows),
                                                        .size = static_cast<int32_t>(columns),
                                                        .logarithm = logarithm,
                                                        .rows_per_item = 1});
    return k;
  };
  run(set(device().kernel("softmax", "softmax_f32"), expected), rows);
  run_group(set(kernel("softmax", "softmax_f32"), actual), rows);
  auto a = actual.values(), e = expected.values();
  for (size_t i = 0; i < e.size(); ++i)
    if (!std::isfinite(e[i])) {
      ASSERT_TRUE(a[i] == e[i] || (std::isnan(a[i]) && std::isnan(e[i])))
          << GetParam().name() << " at " << i << " of " << columns;
      a[i] = e[i] = 0.0f;
    }
  expect_close(a, e, GetParam().name() + ", softmax of " + std::to_string(columns));
}

TEST_P(RowGroups, AddNorm) {
  for (const size_t columns : kColumns)
    for (const auto& [x_type, residual_type] :
         {std::pair{kF32, kF32}, {kU8, kS8}, {kS8, kU8}, {kF32, -1}})
      for (const bool rms : {false, true})
        compare_add_norm(kRows, columns, x_type, residual_type, rms);
}

TEST_P(RowGroups, OnlyOneResultIsWritten) {
  const size_t columns = 100, count = kRows * columns;
  const auto x = upload(normal_values(count, 1)), ones = upload(std::vector<float>(columns, 1.0f));
  const Output<float> out(count);
  auto k = kernel("add_norm", "add_norm");
  auto arguments = plain_norm(x, ones, 1e-5f, kRows, columns);
  arguments.out = out.buffer();
  kernels::set(k, arguments);
  run_group(k, kRows);
  const auto values = out.values();
  for (size_t row = 0; row < kRows; ++row) {
    double sum = 0, squares = 0;
    for (size_t i = 0; i < columns; ++i) {
      sum += values[row * columns + i];
      squares += static_cast<double>(values[row * columns + i]) * values[row * columns + i];
    }
    EXPECT_NEAR(sum / columns, 0, 1e-5);
    EXPECT_NEAR(squares / columns, 1, 1e-3);
  }
}

TEST_P(RowGroups, ResultInBf16) {
  for (const size_t columns : {6, 64, 100}) {
    const size_t count = kRows * columns;
    const auto x = upload(normal_values(count, 1)),
               ones = upload(std::vector<float>(columns, 1.0f));
    const Output<uint16_t> bf16(count);
    const Output<float> out(count);
    auto k = kernel("add_norm", "add_norm");
    auto arguments = plain_norm(x, ones, 1e-5f, kRows, columns);
    arguments.out = out.buffer();
    arguments.q = bf16.buffer();
    arguments.q_type = kBf16;
    kernels::set(k, arguments);
    run_group(k, kRows);
    expect_equal(bf16.values(), bf16_bits(out.values()), GetParam().name());
  }
}

TEST_P(RowGroups, LargeMeanKeepsItsVariance) {
  const size_t columns = 768;
  std::vector<float> x = normal_values(columns, 9, 0.01f);
  for (float& value : x) value += 1000.0f;
  const auto input = upload(x), ones = upload(std::vector<float>(columns, 1.0f));
  const double mean = std::accumulate(x.begin(), x.end(), 0.0) / columns;
  double squares = 0;
  for (const float value : x) squares += (value - mean) * (value - mean);
  std::vector<double> expected(x.begin(), x.end());
  for (double& value : expected) value = (value - mean) / std::sqrt(squares / columns + 1e-12);
  const Output<float> out(columns);
  opencl::Kernel norm = kernel("add_norm", "add_norm");
  auto arguments = plain_norm(input, ones, 1e-12f, 1, columns);
  arguments.out = out.buffer();
  kernels::set(norm, arguments);
  run_group(norm, 1);
  expect_close(out.values(), expected, "large mean", 1e5);  // as in test_row_norm.cpp
}

TEST_P(RowGroups, EmbedNorm) {
  for (const size_t columns : {7, 16, 33, 384, 768})
    for (const auto& [table_type, has_types] : {std::pair{kF32, true}, {kF32, false}, {kF16, true}})
      compare_embed_norm(17, columns, table_type, has_types);
}

TEST_P(RowGroups, QuantizeRows) {
  for (const size_t columns : kColumns) compare_quantize_rows(kRows, columns);
}

TEST_P(RowGroups, Softmax) {
  for (const size_t columns : kColumns)
    for (const int32_t logarithm : {0, 1}) compare_softmax(kRows + 2, columns, logarithm);
}

// Rows beyond those, in the builds that they get.
class WideRows : public RowGroups {};

TEST_P(WideRows, OfEachKernelThatKeepsThem) {
  const auto most = static_cast<size_t>(4 * GetParam().items * GetParam().vectors);
  for (const size_t columns : {size_t{1025}, most - 4, most - 1, most}) {
    for (const bool rms : {false, true}) compare_add_norm(kRows, columns, kU8, kF32, rms);
    compare_embed_norm(5, columns, kF32, true);
    compare_embed_norm(5, columns, kF16, false);
    compare_quantize_rows(kRows, columns);
  }
}

// More than a grid of CUDA has along its second axis.
class ManyRows : public RowGroups {};

TEST_P(ManyRows, OfEachKernel) {
  constexpr size_t rows = 70'000, columns = 4;
  compare_add_norm(rows, columns, kF32, kF32, false);
  compare_embed_norm(rows, columns, kF32, true);
  compare_quantize_rows(rows, columns);
  compare_softmax(rows, columns, 0);
}

std::string name_of(const ::testing::TestParamInfo<Variant>& test) { return test.param.name(); }

INSTANTIATE_TEST_SUITE_P(Kernels, RowGroups,
                         ::testing::Values(Variant{64, 0, 8}, Variant{256, 0, 16},
                                           Variant{256, 0, 32}, Variant{256, 0, 64},
                                           Variant{256, 1}, Variant{256, 1, 8, 8},
                                           Variant{256, 1, 8, 16}, Variant{256, 1, 8, 32},
                                           Variant{256, 1, 8, 64}),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Kernels, WideRows,
                         ::testing::Values(Variant{128, 0, 8, 0, 4}, Variant{256, 0, 8, 0, 8},
                                           Variant{256, 1, 8, 0, 8}),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Kernels, ManyRows, ::testing::Values(Variant{64, 0}, Variant{64, 1}),
                         name_of);

}  // namespace
}  // namespace bertcl::tests
