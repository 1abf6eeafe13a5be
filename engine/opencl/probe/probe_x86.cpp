// SPDX-License-Identifier: Apache-2.0
// Probes of x86 instructions (kernels_cl/probe/probe_x86.cl).
#include <algorithm>
#include <climits>

#include "bertcl/error.hpp"
#include "opencl/device/cpu_features.hpp"
#include "opencl/probe/prober.hpp"

namespace bertcl::opencl {
namespace {

constexpr size_t kSections = 5;  // of probe_x86.cl
constexpr auto kUntouched = static_cast<int32_t>(0xA5A5A5A5);

std::vector<int32_t> pair_sums(const ProbeData& data, size_t first_step, size_t second_offset) {
  std::vector<int32_t> sums;
  for (size_t lane = 0; lane < kLanes; ++lane) {
    const size_t k = lane * first_step;
    sums.push_back(data.a[k] * data.b[k] + data.a[k + second_offset] * data.b[k + second_offset]);
  }
  return sums;
}

}  // namespace

ProbeData probe_data() {
  ProbeData data;
  const uint8_t a[kLanes][4] = {
      {255, 255, 255, 255}, {255, 255, 0, 0}, {128, 128, 128, 128}, {1, 2, 3, 4},
      {0, 1, 127, 128},     {4, 3, 2, 1},     {127, 127, 127, 127}, {255, 0, 255, 0},
      {200, 100, 50, 25},   {0, 0, 0, 255},   {1, 1, 1, 1},         {128, 127, 1, 0},
      {255, 254, 253, 252}, {7, 11, 13, 17},  {128, 0, 0, 128},     {255, 255, 255, 255}};
  const int8_t b[kLanes][4] = {
      {127, 127, 127, 127},     {127, 127, 0, 0},  {-128, -128, -128, -128}, {-1, 10, -100, 127},
      {-128, -1, 0, 127},       {1, 20, 30, -128}, {127, 127, 127, 127},     {-128, 1, -128, 1},
      {-1, 1, -1, 1},           {0, 0, 0, -128},   {-128, 127, -1, 1},       {127, -128, 1, 0},
      {-128, -127, -126, -125}, {-3, 5, -7, 9},    {-128, 0, 0, -128},       {127, 127, 127, 127}};
  const int32_t start[kLanes] = {0, INT_MAX, INT_MIN, 1, -1, 100, INT_MAX, INT_MIN,
                                 0, INT_MIN, -7,      5, 0,  -1,  12345,   INT_MAX - 100};
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int byte = 0; byte < 4; ++byte) {
      data.a.push_back(a[lane][byte]);
      data.b.push_back(b[lane][byte]);
    }
    data.start.push_back(start[lane]);
  }
  return data;
}

void Prober::probe_x86() {
  struct Section {
    Flag flag;
    const char* define;
    std::vector<int32_t> expected;
  };
  const Capabilities cpu = cpu_features();
  const Section sections[kSections] = {
      {&Capabilities::avx2, "PROBE_AVX2", pair_sums(data_, 2, 1)},
      {&Capabilities::avx512, "PROBE_AVX512", pair_sums(data_, 2, 1)},
      {&Capabilities::avx512_vnni, "PROBE_AVX512_VNNI", expected_dot4<uint8_t, int8_t>(data_)},
      {&Capabilities::avx_vnni, "PROBE_AVX_VNNI", expected_dot4<uint8_t, int8_t>(data_)},
      {&Capabilities::avx512_bf16, "PROBE_AVX512_BF16", pair_sums(data_, 1, kLanes)},
  };
  const auto correct = [&](const std::vector<int32_t>& out, size_t section) {
    const auto* row = out.data() + section * kLanes;
    if (std::all_of(row, row + kLanes, [](int32_t value) { return value == kUntouched; }))
      throw Error("the driver's compiler does not use the registers of this instruction set");
    return std::equal(row, row + kLanes, sections[section].expected.begin());
  };
  std::vector<size_t> wanted;
  for (size_t i = 0; i < kSections; ++i)
    if (!found_.in_process_cpu)
      note(sections[i].flag, kNotInProcess);
    else if (!(cpu.*sections[i].flag))
      note(sections[i].flag, "not supported by this CPU or OS");
    else
      wanted.push_back(i);
  if (wanted.empty()) return;
  const auto run = [&](const std::vector<size_t>& chosen) {
    Defines defines;
    for (const Section& section : sections) defines[section.define] = 0;
    for (const size_t i : chosen) defines[sections[i].define] = 1;
    return results("probe_x86", kSections * kLanes, 1, 1, defines, data_.a, data_.b, data_.start);
  };
  // All sections in one program: a build and a first launch cost some 0.4 s on PoCL. Where the
  // compiler refuses one of them, or breaks down, each is tried alone.
  try {
    if (!begins("x86")) throw Error("the combined x86 probe is skipped");
    const std::vector<int32_t> out = run(wanted);
    for (const size_t i : wanted) probe(sections[i].flag, [&] { return correct(out, i); });
  } catch (const Error&) {
    for (const size_t i : wanted) probe(sections[i].flag, [&] { return correct(run({i}), i); });
  }
}

}  // namespace bertcl::opencl
