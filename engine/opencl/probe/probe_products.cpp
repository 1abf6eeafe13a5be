// SPDX-License-Identifier: Apache-2.0
// Probes of dot products of four bytes, of matrix units and of asynchronous copies.
#include <algorithm>
#include <bit>
#include <climits>
#include <cmath>
#include <iterator>

#include "opencl/device/capability_table.hpp"
#include "opencl/probe/prober.hpp"

namespace bertcl::opencl {
namespace {

constexpr const char* kNotNvidia = "not an NVIDIA device";

}  // namespace

bool Prober::dot4_probe(int backend) {
  const auto sums = results("probe_dot4", 3 * kLanes, kLanes, kLanes, {{"DOT4", backend}}, data_.a,
                            data_.b, data_.start);
  const auto row = [&](long index) {
    return std::vector<int32_t>(sums.begin() + index * kLanes, sums.begin() + (index + 1) * kLanes);
  };
  return row(0) == expected_dot4<int8_t, int8_t>(data_) &&
         row(1) == expected_dot4<uint8_t, int8_t>(data_) &&
         row(2) == expected_dot4<uint8_t, uint8_t>(data_);
}

void Prober::probe_dot_products() {
  const DeviceInfo& device = context_.info();
  const bool nvidia = device.vendor.find("NVIDIA") != std::string::npos && device.is_gpu();
  const bool amd =
      device.is_gpu() && (device.vendor.find("Advanced Micro Devices") != std::string::npos ||
                          device.platform.find("AMD") != std::string::npos);
  probe_matrix_units(nvidia, amd);
  for (const Dot4Backend& backend : kDot4Backends) {
    const auto works = [&] { return dot4_probe(backend.code); };
    if (backend.extension) extension(backend.flag, backend.extension, works);
    // By vendor: ROCm prints the errors of a failed build, PTX means nothing to another compiler.
    else if (backend.flag == &Capabilities::ptx_dp4a)
      probe_if(nvidia, kNotNvidia, backend.flag, works);
    else
      probe_if(amd, "not an AMD GPU", backend.flag, works);
  }
}

// By vendor and name: compilers of other devices print errors, or die.
void Prober::probe_matrix_units(bool nvidia, bool amd) {
  const std::string& device = context_.info().name;
  const auto named = [&](auto... names) { return amd && (device.starts_with(names) || ...); };
  struct Home {
    Flag unit;
    bool is_here;
    const char* why_not;
  };
  const Home homes[] = {
      {&Capabilities::ptx_mma_s8, nvidia, kNotNvidia},
      {&Capabilities::amd_mfma_k16, named("gfx908", "gfx90a"), "not an AMD gfx908 or gfx90a"},
      {&Capabilities::amd_mfma_k32, named("gfx94", "gfx95"), "not an AMD gfx940 or later"},
      {&Capabilities::amd_wmma, named("gfx11"), "not an AMD gfx11"},
      {&Capabilities::amd_wmma_gfx12, named("gfx120"), "not an AMD gfx1200 or gfx1201"},
  };
  for (const MatrixUnit& unit : matrix_units()) {
    const auto works = [&] { return matrix_probe(unit, false); };
    const auto* home = std::ranges::find(homes, unit.flag, &Home::unit);
    if (home == std::end(homes))  // Intel's
      extension(unit.flag, "cl_intel_subgroup_matrix_multiply_accumulate", works);
    else
      probe_if(home->is_here, home->why_not, unit.flag, works);
  }
  const MatrixUnit* unit = matrix_unit_of(found_);
  probe_if(unit != nullptr, "no matrix unit", &Capabilities::matrix_f16,
           [&] { return matrix_probe(*unit, true); });
  probe_if(nvidia, kNotNvidia, &Capabilities::ptx_wgmma_s8, [&] { return wgmma_probe(); });
  probe_if(nvidia, kNotNvidia, &Capabilities::ptx_cp_async, [&] { return cp_async_probe(); });
}

// A tile of a matrix multiplication whose elements are all different along each row and column, in
// every sub-group of a work-group; each has start values of its own. In half all values are powers
// of 2, so that the sums are exact.
bool Prober::matrix_probe(const MatrixUnit& unit, bool half) {
  constexpr int kItems = 256;
  const int values = half ? 16 : 32, sub_groups = kItems / unit.lanes;
  const auto value = [&](int i) { return half ? i * 5 % 7 - 3 : i * 37 % 256 - 128; };
  const auto operand = [&](int rows) {
    std::vector<uint8_t> bytes;
    for (int i = 0; i < rows * values; ++i) {
      const int v = value(i);
      if (half) bytes.push_back(0);  // 2^v, negative where i is odd
      bytes.push_back(static_cast<uint8_t>(half ? (v + 15) * 4 + (i % 2 ? 128 : 0) : v));
    }
    return bytes;
  };
  const auto number = [&](int i) {
    return half ? std::ldexp(i % 2 ? -1.0f : 1.0f, value(i)) : static_cast<float>(value(i));
  };
  std::vector<uint32_t> start, expected;  // bits of s32 or f32
  for (int tile = 0; tile < sub_groups; ++tile)
    for (int m = 0; m < unit.m; ++m)
      for (int n = 0; n < unit.n; ++n) {
        const int at = (tile * unit.m + m) * unit.n + n;
        float sum = 0;
        for (int k = 0; k < values; ++k) sum += number(m * values + k) * number(n * values + k);
        const auto first = static_cast<uint32_t>(at % 2 ? at : INT_MAX - at);
        start.push_back(half ? std::bit_cast<uint32_t>(static_cast<float>(at)) : first);
        expected.push_back(half ? std::bit_cast<uint32_t>(sum + static_cast<float>(at))
                                : first + static_cast<uint32_t>(static_cast<int32_t>(sum)));
      }
  return results<uint32_t>(
             "probe_matrix", expected.size(), kItems, kItems,
             {{"MATRIX_UNIT", unit.code}, {"MATRIX_EMULATED", 0}, {"MATRIX_F16", half ? 1 : 0}},
             operand(unit.m), operand(unit.n), start) == expected;
}

// 64 x 64 sums over 64 bytes along K, by two warpgroups: of s8 by s8 and of u8 by s8; with each
// swizzle that gemm_s8_wgmma takes.
bool Prober::wgmma_probe() {
  constexpr int kSize = 64, kItems = 256;
  std::vector<uint8_t> bytes;
  for (int i = 0; i < kSize * kSize; ++i) bytes.push_back(static_cast<uint8_t>(i * 37 + i / 256));
  std::vector<uint32_t> start, expected;
  for (const bool is_signed : {true, false})
    for (int m = 0; m < kSize; ++m)
      for (int n = 0; n < kSize; ++n) {
        int sum = 0;
        for (int k = 0; k < kSize; ++k) {
          const uint8_t a = bytes[static_cast<size_t>(m * kSize + k)];
          const uint8_t b = bytes[static_cast<size_t>(n * kSize + k)];
          sum += (is_signed ? static_cast<int8_t>(a) : a) * static_cast<int8_t>(b);
        }
        const int at = m * kSize + n;
        start.push_back(static_cast<uint32_t>(at % 2 ? at : INT_MAX - at));
        expected.push_back(start.back() + static_cast<uint32_t>(sum));
      }
  const auto is_exact = [&](int cells) {
    return results<uint32_t>("probe_wgmma", expected.size(), kItems, kItems,
                             {{"MATRIX_EMULATED", 0}, {"CELLS_K", cells}}, bytes, bytes,
                             start) == expected;
  };
  return is_exact(2) && is_exact(4);
}

bool Prober::cp_async_probe() {
  constexpr int kItems = 32;
  std::vector<int32_t> values, expected;
  for (int i = 0; i < 4 * kItems; ++i) {
    values.push_back(3 * i + 1);
    const int item = kItems - 1 - i / 4;
    expected.push_back(item % 3 == 0 ? 0 : 3 * (item * 4 + i % 4) + 1);
  }
  return results("probe_copy_async", expected.size(), kItems, kItems, {{"COPY_ASYNC", 2}},
                 values) == expected;
}

}  // namespace bertcl::opencl
