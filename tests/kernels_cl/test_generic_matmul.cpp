// SPDX-License-Identifier: Apache-2.0
// The batched MatMuls of unfused graphs against plain C++: strides, transposes, broadcasting,
// tails.
#include <string_view>

#include "device_test.hpp"
#include "kernels/bind.hpp"
#include "kernels/contracts/gemm.hpp"

namespace bertcl::tests {
namespace {

/// [2][3] batches of A and B; where `shared`, B is one matrix for the three of a group.
struct MatMul {
  int32_t m, n, k;
  bool a_transposed, b_transposed, shared;
  int32_t a_row() const { return a_transposed ? 1 : k; }
  int32_t a_column() const { return a_transposed ? m : 1; }
  int32_t b_row() const { return b_transposed ? 1 : n; }
  int32_t b_column() const { return b_transposed ? k : 1; }
  std::vector<int32_t> batch_shape() const {
    return {2, 3, 3 * m * k, m * k, (shared ? 1 : 3) * k * n, shared ? 0 : k * n};
  }
  size_t a_size() const { return static_cast<size_t>(6 * m * k); }
  size_t b_size() const { return static_cast<size_t>((shared ? 2 : 6) * k * n); }
  /// The row of an element of A, the column of one of B.
  int32_t row_of_a(int32_t i) const { return a_transposed ? i % m : i / k % m; }
  int32_t column_of_b(int32_t i) const { return b_transposed ? i / k % n : i % n; }
  std::string name() const {
    std::string text = std::to_string(m);
    text.append(" x ").append(std::to_string(n)).append(" x ").append(std::to_string(k));
    return text.append(a_transposed ? ", A'" : "")
        .append(b_transposed ? ", B'" : "")
        .append(shared ? ", shared B" : "");
  }

  template <typename Value, typename ValueA, typename ValueB>
  std::vector<Value> reference(ValueA&& a, ValueB&& b) const {
    std::vector<Value> c;
    for (int32_t batch = 0; batch < 6; ++batch)
      for (int32_t i = 0; i < m; ++i)
        for (int32_t j = 0; j < n; ++j) {
          Value sum = 0;
          const int32_t at_b = (shared ? batch / 3 : batch) * k * n + j * b_column();
          for (int32_t l = 0; l < k; ++l)
            sum += static_cast<Value>(a(batch * m * k + i * a_row() + l * a_column())) *
                   static_cast<Value>(b(at_b + l * b_row()));
          c.push_back(sum);
        }
    return c;
  }
};

std::vector<MatMul> matmuls() {
  std::vector<MatMul> list;
  for (bool a : {false, true})
    for (bool b : {false, true})
      for (bool shared : {false, true})
        for (auto [m, n, k] :
             {std::array{1, 1, 1}, {7, 31, 5}, {8, 32, 64}, {9, 33, 65}, {33, 65, 16}, {3, 2, 300}})
          list.push_back({m, n, k, a, b, shared});
  list.push_back({65, 64, 513, false, true, false});
  return list;
}

/// By work-items, or by the work-groups of a GPU.
void run_matmul(const opencl::Kernel& kernel, const MatMul& p, size_t block_rows) {
  const auto m = static_cast<size_t>(p.m), n = static_cast<size_t>(p.n);
  if (!kernel.program_name().ends_with("_group"))
    return run(kernel, ceil_div(n, 32), ceil_div(m, block_rows), 6);
  device().queue().launch(kernel, {256 * ceil_div(n, 64), ceil_div(m, 64), 6}, {256, 1, 1});
  device().queue().finish();
}

/// The form of CPUs has groups of one work-item, which GPUs do not run.
bool runs_here(std::string_view program) {
  return device().info().is_cpu() || program.ends_with("_group");
}

TEST(MatmulF32, StridesTransposesAndBroadcasting) {
  for (const MatMul& p : matmuls())
    for (int32_t lanes : {8, 16, 0}) {  // 0: by work-groups
      if (lanes != 0 && !runs_here("matmul_f32_batched")) continue;
      const int32_t block_rows = lanes == 8 ? 8 : 64;
      const auto a = normal_values(p.a_size(), 1), b = normal_values(p.b_size(), 2);
      auto expected =
          p.reference<double>([&](int32_t i) { return a[i]; }, [&](int32_t i) { return b[i]; });
      for (double& value : expected) value *= 0.125;
      Output<float> out(expected.size());
      auto kernel = lanes == 0 ? device().kernel("matmul_f32_group", "matmul_f32_batched")
                               : device().kernel("matmul_f32_batched", "matmul_f32_batched",
                                                 {{"LANES", lanes}});
      kernels::set(kernel,
                   kernels::MatMulF32<KernelArgument>{.a = upload(a),
                                                      .a_row = p.a_row(),
                                                      .a_column = p.a_column(),
                                                      .b = upload(b),
                                                      .b_row = p.b_row(),
                                                      .b_column = p.b_column(),
                                                      .c = out.buffer(),
                                                      .m = p.m,
                                                      .n = p.n,
                                                      .k = p.k,
                                                      .alpha = 0.125f,
                                                      .batch_shape = upload(p.batch_shape()),
                                                      .rank = 2,
                                                      .block_rows = block_rows});
      run_matmul(kernel, p, static_cast<size_t>(block_rows));
      expect_close(out.values(), expected, p.name());
    }
}

TEST(MatmulS32, ExactForEveryTypeAndZeroPoint) {
  for (const MatMul& p : matmuls())
    for (int32_t a_type : {kU8, kS8})
      for (int32_t b_type : {kU8, kS8}) {
        // Half of the bytes at the ends, where products are largest.
        auto a = integers<uint8_t>(p.a_size(), 1, 0, 255),
             b = integers<uint8_t>(p.b_size(), 2, 0, 255);
        for (size_t i = 0; i < a.size(); i += 2) a[i] = a_type == kU8 ? 255 : 0x80;
        for (size_t i = 0; i < b.size(); i += 2) b[i] = b_type == kU8 ? 255 : 0x80;
        // No zero point, one, or one for each row of A or column of B.
        for (int32_t zeros : {0, 1, 2}) {
          std::vector<uint8_t> a_zero, b_zero;
          if (zeros) {
            a_zero = integers<uint8_t>(zeros == 1 ? 1 : p.m, 3, 0, 255);
            b_zero = integers<uint8_t>(zeros == 1 ? 1 : p.n, 4, 0, 255);
            a_zero[0] = a_type == kU8 ? 0 : 127;
            b_zero[0] = b_type == kU8 ? 0 : 127;
          }
          const auto number = [](uint8_t byte, int32_t type) {
            return type == kS8 ? static_cast<int8_t>(byte) : static_cast<int32_t>(byte);
          };
          const auto zero = [&](const std::vector<uint8_t>& list, int32_t i, int32_t type) {
            return list.empty() ? 0 : number(list[list.size() == 1 ? 0 : i], type);
          };
          const auto expected = p.reference<int32_t>(
              [&](int32_t i) { return number(a[i], a_type) - zero(a_zero, p.row_of_a(i), a_type); },
              [&](int32_t i) {
                return number(b[i], b_type) - zero(b_zero, p.column_of_b(i), b_type);
              });
          const auto list = [](const std::vector<uint8_t>& values) {
            return values.empty() ? opencl::Buffer() : upload(values);
          };
          for (const char* program : {"matmul_s32_batched", "matmul_s32_group"}) {
            if (!runs_here(program)) continue;
            Output<int32_t> out(expected.size());
            auto kernel = device().kernel(program, "matmul_s32_batched");
            kernels::set(kernel, kernels::MatMulS32<KernelArgument>{
                                     .a = upload(a),
                                     .a_row = p.a_row(),
                                     .a_column = p.a_column(),
                                     .a_type = a_type,
                                     .a_zero_point = list(a_zero),
                                     .a_zero_step = static_cast<int32_t>(zeros == 2),
                                     .b = upload(b),
                                     .b_row = p.b_row(),
                                     .b_column = p.b_column(),
                                     .b_type = b_type,
                                     .b_zero_point = list(b_zero),
                                     .b_zero_step = static_cast<int32_t>(zeros == 2),
                                     .c = out.buffer(),
                                     .m = p.m,
                                     .n = p.n,
                                     .k = p.k,
                                     .batch_shape = upload(p.batch_shape()),
                                     .rank = 2,
                                     .block_rows = 64});
            run_matmul(kernel, p, 64);
            expect_equal(out.values(), expected, program + (": " + p.name()));
          }
        }
      }
}

}  // namespace
}  // namespace bertcl::tests
