// SPDX-License-Identifier: Apache-2.0
// Partial sums that a norm adds up, against the two launches that it replaces, bit by bit; these
// are compared with plain C++ elsewhere.
#include "device_test.hpp"
#include "kernels/bind.hpp"
#include "kernels/contracts/gemm.hpp"
#include "kernels/contracts/rows.hpp"
#include "kernels/same_arguments.hpp"
#include "norm_results.hpp"

namespace bertcl::tests {
namespace {

struct SplitCase {
  size_t rows, columns;
  int32_t splits;
  bool a_signed = true, has_bias = true, has_residual = true;
  int32_t residual_type = kF32;
  bool rms = false;
  int items = 64, vectors = 4;
};

void compare_split(const SplitCase& c) {
  const size_t count = c.rows * c.columns;
  const auto seed = static_cast<unsigned>(count);
  const auto m = static_cast<int32_t>(c.rows), n = static_cast<int32_t>(c.columns);
  const auto bytes = integers<uint8_t>(count, seed, 0, 255);
  const auto partials =
      upload(integers<int32_t>(count * static_cast<size_t>(c.splits), seed, -(1 << 20), 1 << 20));
  const auto column_sums = upload(integers<int32_t>(c.columns, seed + 1, -5000, 5000));
  const auto scale = upload(normal_values(c.columns, seed + 2, 1e-6f));
  const auto bias = c.has_bias ? upload(normal_values(c.columns, seed + 3)) : opencl::Buffer();
  const auto residual = !c.has_residual           ? opencl::Buffer()
                        : c.residual_type == kF32 ? upload(normal_values(count, seed + 4))
                                                  : upload(bytes);
  const auto steps = upload(std::vector<float>(c.columns, 0.02f));
  const auto zeros = upload(std::vector<float>(c.columns, 7.0f));
  const auto gamma = upload(normal_values(c.columns, seed + 5));
  const auto beta = upload(normal_values(c.columns, seed + 6));
  const auto inverse = upload(std::vector<float>(c.columns, 31.0f));
  const int32_t zero_point = c.a_signed ? -3 : 131;
  const opencl::Defines defines{{"ITEMS", c.items}, {"VECTORS", c.vectors}};
  const auto items = static_cast<size_t>(c.items);

  const Output<float> x(count);
  auto finish = device().kernel("gemm_s8_reduce", "gemm_s8_reduce");
  kernels::set(finish, kernels::GemmS8Reduce<KernelArgument>{.partials = partials,
                                                             .column_sums = column_sums,
                                                             .scale = scale,
                                                             .bias = bias,
                                                             .out = x.buffer(),
                                                             .M = m,
                                                             .N = n,
                                                             .zero_point = zero_point,
                                                             .a_signed = c.a_signed ? 1 : 0,
                                                             .has_bias = c.has_bias ? 1 : 0,
                                                             .activation = 0,
                                                             .out_type = kF32,
                                                             .splits = c.splits});
  run(finish, ceil_div(c.columns, 4), c.rows);
  const auto norm = [&](const opencl::Buffer& of, const NormResults& to) {
    return kernels::AddNorm<KernelArgument>{.x = of,
                                            .x_type = kF32,
                                            .residual = residual,
                                            .residual_type = c.residual_type,
                                            .residual_scale = steps,
                                            .residual_zero_point = zeros,
                                            .gamma = gamma,
                                            .beta = beta,
                                            .eps = 1e-5f,
                                            .rms = c.rms ? 1 : 0,
                                            .sum = to.sum.buffer(),
                                            .out = to.out.buffer(),
                                            .q = to.q.buffer(),
                                            .q_type = kU8,
                                            .q_inv_scale = inverse,
                                            .q_zero_point = zeros,
                                            .r = to.r.buffer(),
                                            .r_type = kS8,
                                            .r_inv_scale = inverse,
                                            .r_zero_point = zeros,
                                            .rows = m,
                                            .hidden = n,
                                            .rows_per_item = 1};
  };
  const NormResults expected(count), actual(count);
  auto after = group_kernel("add_norm_group", "add_norm", defines);
  kernels::set(after, norm(x.buffer(), expected));
  device().queue().launch(after, {items * c.rows, 1, 1}, {items, 1, 1});
  auto both = group_kernel("add_norm_split_k_group", "add_norm_split_k", defines);
  kernels::set(both, kernels::with_same_arguments(
                         kernels::AddNormSplitK<KernelArgument>{.partials = partials,
                                                                .column_sums = column_sums,
                                                                .scale = scale,
                                                                .bias = bias,
                                                                .zero_point = zero_point,
                                                                .a_signed = c.a_signed ? 1 : 0,
                                                                .splits = c.splits},
                         norm({}, actual)));
  device().queue().launch(both, {items * c.rows, 1, 1}, {items, 1, 1});
  device().queue().finish();
  const std::string what = std::to_string(c.rows) + " x " + std::to_string(c.columns) + ", " +
                           std::to_string(c.splits) + " splits";
  expect_equal(actual.sum.values(), expected.sum.values(), what + ", sum");
  expect_equal(actual.out.values(), expected.out.values(), what);
  expect_equal(actual.q.values(), expected.q.values(), what + ", u8");
  expect_equal(actual.r.values(), expected.r.values(), what + ", s8");
}

TEST(AddNormSplitK, EqualsTheTwoLaunchesThatItReplaces) {
  for (const size_t columns : {1, 2, 3, 4, 5, 31, 63, 64, 65, 255, 256, 257, 768, 1021, 1024})
    for (const int32_t splits : {1, 3, 8})
      compare_split({.rows = 3, .columns = columns, .splits = splits});
  for (const size_t rows : {1, 2, 17, 33})
    compare_split({.rows = rows, .columns = 68, .splits = 2});
}

TEST(AddNormSplitK, OfEachKindOfOperand) {
  for (const size_t columns : {64, 67}) {
    compare_split({.rows = 5, .columns = columns, .splits = 2, .a_signed = false});
    compare_split({.rows = 5, .columns = columns, .splits = 2, .has_bias = false});
    compare_split({.rows = 5, .columns = columns, .splits = 2, .has_residual = false});
    compare_split({.rows = 5, .columns = columns, .splits = 2, .residual_type = kU8});
    compare_split({.rows = 5, .columns = columns, .splits = 2, .residual_type = kS8});
    compare_split({.rows = 5, .columns = columns, .splits = 2, .rms = true});
  }
}

TEST(AddNormSplitK, OfWideRows) {
  for (const size_t columns : {1025, 2047, 2048})
    compare_split({.rows = 3, .columns = columns, .splits = 5, .items = 128});
}

}  // namespace
}  // namespace bertcl::tests
