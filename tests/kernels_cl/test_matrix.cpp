// SPDX-License-Identifier: Apache-2.0
// matrix.clh: each matrix instruction and its emulation against plain C++, the banks of
// local memory that their loads meet, and copies that pass no register.
#include <algorithm>
#include <set>
#include <string>
#include <tuple>

#include "tests/kernels_cl/device_test.hpp"

namespace bertcl::tests {
namespace {

constexpr size_t kItems = 256;

struct Form {
  opencl::MatrixUnit unit;
  bool half, emulated;
  std::string name() const {
    return std::string(capability_name(unit.flag)) + (half ? "_f16" : "_s8") +
           (emulated ? "_emulated" : "");
  }
};

std::ostream& operator<<(std::ostream& out, const Form& form) { return out << form.name(); }

std::vector<Form> forms() {
  std::vector<Form> list;
  for (const opencl::MatrixUnit& unit : opencl::matrix_units())
    for (bool half : {false, true})
      for (bool emulated : {true, false}) list.push_back({unit, half, emulated});
  return list;
}

// f16 of a small integer.
uint16_t half_of(int value) {
  if (value == 0) return 0;
  const int exponent = std::ilogb(value);
  const auto fraction = static_cast<unsigned>(std::ldexp(std::abs(value), 10 - exponent));
  return static_cast<uint16_t>((value < 0 ? 0x8000u : 0u) |
                               static_cast<unsigned>(exponent + 15) << 10 | (fraction & 1023));
}

class Matrix : public testing::TestWithParam<Form> {
 protected:
  // T is what the sums are, V the operands.
  template <typename T, typename V>
  void check(size_t values, int64_t low, int64_t high, V (*stored)(int)) const {
    const auto& [unit, half, emulated] = GetParam();
    auto kernel = group_kernel(
        "probe_matrix", "probe_matrix",
        {{"MATRIX_UNIT", unit.code}, {"MATRIX_EMULATED", emulated}, {"MATRIX_F16", half}});
    const size_t M = unit.m, N = unit.n, tiles = kItems / static_cast<size_t>(unit.lanes);
    for (unsigned round = 0; round < 4; ++round) {
      const int64_t lowest = round % 4 == 3 ? high - 1 : low;  // now and then the largest sums
      const auto a = integers<int>(M * values, round, lowest, high);
      const auto b = integers<int>(N * values, round + 100, lowest, high);
      const auto start =
          integers<T>(tiles * M * N, round, half ? -9999 : INT32_MIN, half ? 9999 : INT32_MAX);
      std::vector<T> expected;
      for (size_t i = 0; i < start.size(); ++i) {
        auto sum = static_cast<int64_t>(start[i]);
        for (size_t k = 0; k < values; ++k)
          sum += a[i / N % M * values + k] * b[i % N * values + k];
        expected.push_back(half ? static_cast<T>(sum)
                                : static_cast<T>(static_cast<int32_t>(sum)));  // wraps
      }
      std::vector<V> stored_a, stored_b;
      for (int v : a) stored_a.push_back(stored(v));
      for (int v : b) stored_b.push_back(stored(v));
      Output<T> out(expected.size());
      kernel.args(upload(stored_a), upload(stored_b), upload(start), out.buffer());
      device().queue().launch(kernel, {kItems, 1, 1}, {kItems, 1, 1});
      expect_equal(out.values(), expected, "round " + std::to_string(round));
    }
  }
};

TEST_P(Matrix, TileOfEverySubGroupEqualsPlainArithmetic) {
  const Form& form = GetParam();
  if (!form.emulated)
    for (const auto needed :
         {form.unit.flag, form.half ? &opencl::Capabilities::matrix_f16 : form.unit.flag})
      if (const auto reason = lacks(needed); !reason.empty())
        GTEST_SKIP() << form.name() << " " << reason;
  if (form.half)  // integers whose sums f32 holds
    check<float, uint16_t>(16, -200, 200, half_of);
  else
    check<int32_t, int8_t>(32, -128, 127, [](int v) { return static_cast<int8_t>(v); });
}

INSTANTIATE_TEST_SUITE_P(Units, Matrix, testing::ValuesIn(forms()),
                         [](const auto& suite) { return suite.param.name(); });

// Local memory has 32 banks of four bytes. Lanes that together read 128 bytes, or all of a smaller
// sub-group, have to meet each bank once; lanes that read the same word share it.
TEST(MatrixBanks, LoadsOfFragmentsMeetEachBankOnce) {
  for (const opencl::MatrixUnit& unit : opencl::matrix_units())
    for (const int half : {0, 1}) {
      auto kernel = group_kernel(
          "probe_matrix", "matrix_addresses",
          {{"MATRIX_UNIT", unit.code}, {"MATRIX_F16", half}, {"B_PITCH", half ? 64 + 8 : 128 + 8}});
      const auto lanes = static_cast<size_t>(unit.lanes);
      Output<int32_t> out(lanes * 65);
      kernel.args(out.buffer());
      run(kernel, lanes);
      const std::vector<int32_t> rows = out.values();
      const auto words = static_cast<size_t>(rows[64]);  // of a load of A
      size_t loads = 0;
      for (size_t first = 0; first < 64; first += first < 32 ? words : 1) {
        const size_t wide = first < 32 ? words : 1, together = std::min(lanes, 32 / wide);
        if (rows[first] < 0) continue;
        ++loads;
        for (size_t lane = 0; lane < lanes; lane += together) {
          std::set<int32_t> addresses, banks;
          for (size_t i = lane; i < lane + together; ++i)
            for (size_t w = first; w < first + wide; ++w) {
              addresses.insert(rows[i * 65 + w]);
              banks.insert(rows[i * 65 + w] % 32);
            }
          EXPECT_EQ(banks.size(), addresses.size()) << capability_name(unit.flag) << ": load "
                                                    << first << " of lanes " << lane << " and on";
        }
      }
      EXPECT_GE(loads, 3u) << capability_name(unit.flag);
    }
}

/// Whether it is emulated, and the cells of a row of a strip, which give the swizzle.
class Wgmma : public testing::TestWithParam<std::tuple<int, int>> {};

// By two warpgroups, the first with A in s8, the second in u8.
TEST_P(Wgmma, TileOfEveryWarpgroupEqualsPlainArithmetic) {
  const auto& [emulated, cells] = GetParam();
  const auto reason = lacks(emulated ? nullptr : &opencl::Capabilities::ptx_wgmma_s8);
  if (!reason.empty()) GTEST_SKIP() << reason;
  constexpr size_t kSize = 64;
  const auto a = integers<uint8_t>(kSize * kSize, 1, 0, 255);
  const auto b = integers<int8_t>(kSize * kSize, 2, -128, 127);
  const auto start = integers<int32_t>(2 * kSize * kSize, 3, INT32_MIN, INT32_MAX);
  std::vector<int32_t> expected;
  for (size_t i = 0; i < start.size(); ++i) {
    int64_t sum = start[i];
    for (size_t k = 0; k < kSize; ++k) {
      const uint8_t byte = a[i / kSize % kSize * kSize + k];
      sum += (i < kSize * kSize ? static_cast<int8_t>(byte) : byte) * b[i % kSize * kSize + k];
    }
    expected.push_back(static_cast<int32_t>(sum));  // wraps
  }
  Output<int32_t> out(expected.size());
  auto kernel = group_kernel("probe_wgmma", "probe_wgmma",
                             {{"MATRIX_EMULATED", emulated}, {"CELLS_K", cells}});
  kernel.args(upload(a), upload(b), upload(start), out.buffer());
  device().queue().launch(kernel, {kItems, 1, 1}, {kItems, 1, 1});
  expect_equal(out.values(), expected, "wgmma");
}

INSTANTIATE_TEST_SUITE_P(Forms, Wgmma,
                         testing::Combine(testing::Values(1, 0), testing::Values(2, 4)),
                         [](const auto& suite) {
                           return (std::get<0>(suite.param) ? "emulated_" : "ptx_") +
                                  std::to_string(16 * std::get<1>(suite.param));
                         });

class CopyAsync : public testing::TestWithParam<int> {};

TEST_P(CopyAsync, CopiesAndFillsWithZeros) {
  const auto reason = lacks(GetParam() == 2 ? &opencl::Capabilities::ptx_cp_async : nullptr);
  if (!reason.empty()) GTEST_SKIP() << reason;
  const auto values = integers<int32_t>(128, 1, INT32_MIN, INT32_MAX);
  std::vector<int32_t> expected;
  for (size_t item = 32; item-- > 0;)
    for (size_t w = 0; w < 4; ++w) expected.push_back(item % 3 == 0 ? 0 : values[item * 4 + w]);
  Output<int32_t> out(expected.size());
  auto kernel =
      device().kernel("probe_copy_async", "probe_copy_async", {{"COPY_ASYNC", GetParam()}});
  kernel.args(upload(values), out.buffer());
  device().queue().launch(kernel, {32, 1, 1}, {32, 1, 1});
  expect_equal(out.values(), expected, "copies");
}

INSTANTIATE_TEST_SUITE_P(Forms, CopyAsync, testing::Values(1, 2), [](const auto& suite) {
  return std::string(suite.param == 1 ? "emulated" : "ptx");
});

}  // namespace
}  // namespace bertcl::tests
