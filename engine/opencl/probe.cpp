// SPDX-License-Identifier: Apache-2.0
// Probe kernels: build, run, compare with numbers computed here.
#include "opencl/probe.hpp"

#include <algorithm>
#include <bit>
#include <climits>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "bertcl/error.hpp"
#include "opencl/capability_table.hpp"
#include "opencl/cl.hpp"
#include "opencl/context.hpp"
#include "opencl/cpu_features.hpp"

namespace bertcl::opencl {
namespace {

constexpr int kLanes = 16;
constexpr size_t kSections = 5;  // of probe_x86.cl
constexpr uint8_t kPoison = 0xA5;
constexpr auto kUntouched = static_cast<int32_t>(0xA5A5A5A5);

// Sixteen lanes of four bytes whose products break wrong implementations: both ends of each type,
// four different bytes (a swapped order), 255*127 twice (16-bit saturation), (-128)(-128) four
// times, and start values next to the ends of s32 (saturation instead of wrapping).
struct ProbeData {
  std::vector<uint8_t> a;  // bytes: u8, or s8 where the probe reads them so
  std::vector<int8_t> b;
  std::vector<int32_t> start;
};

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

// start + sum of four products in wrapping s32.
template <typename A, typename B>
std::vector<int32_t> dot4(const ProbeData& data) {
  std::vector<int32_t> sums;
  for (size_t lane = 0; lane < kLanes; ++lane) {
    auto sum = static_cast<uint32_t>(data.start[lane]);
    for (size_t k = 4 * lane; k < 4 * lane + 4; ++k)
      sum += static_cast<uint32_t>(int{static_cast<A>(data.a[k])} * int{static_cast<B>(data.b[k])});
    sums.push_back(static_cast<int32_t>(sum));
  }
  return sums;
}

std::vector<int32_t> pair_sums(const ProbeData& data, size_t first_step, size_t second_offset) {
  std::vector<int32_t> sums;
  for (size_t lane = 0; lane < kLanes; ++lane) {
    const size_t k = lane * first_step;
    sums.push_back(data.a[k] * data.b[k] + data.a[k + second_offset] * data.b[k + second_offset]);
  }
  return sums;
}

template <typename T>
Buffer buffer_of(Context& context, const std::vector<T>& values) {
  Buffer buffer = context.allocate(values.size() * sizeof(T));
  buffer.upload(values);
  return buffer;
}

class Prober {
 public:
  explicit Prober(Context& context) : context_(context), data_(probe_data()) {}

  Capabilities run() {
    const DeviceInfo& device = context_.info();
    // rusticl on llvmpipe and Oclgrind run in this process too, but compile for a virtual target:
    // x86 builtins and assembly end the process there.
    found_.in_process_cpu =
        device.type == "cpu" &&
        (device.platform.starts_with("Portable Computing") || device.platform.starts_with("Intel"));
    if (!found_.in_process_cpu)
      found_.notes["in_process_cpu"] =
          "kernels of " + device.platform + " do not run in this process as code of its CPU";
    x86();
    dot_products();
    extension("fp16", &Capabilities::fp16, "cl_khr_fp16", [&] { return sixteen("probe_fp16", 2); });
    extension("fp64", &Capabilities::fp64, "cl_khr_fp64", [&] { return sixteen("probe_fp64", 0); });
    // An extension once, now part of OpenCL 3.0 that a device may have without naming it.
    if (context_.info().has_subgroups)
      probe("subgroups", &Capabilities::subgroups, [&] { return subgroups(); });
    else
      found_.notes["subgroups"] = "the driver lists no sub-groups";
    extension("command_buffer", &Capabilities::command_buffer, "cl_khr_command_buffer", [&] {
      cl_platform_id platform =
          device_value<cl_platform_id>(context_.native_device(), CL_DEVICE_PLATFORM);
      return clGetExtensionFunctionAddressForPlatform(platform, "clCreateCommandBufferKHR") !=
             nullptr;
    });
    return found_;
  }

 private:
  // Sets one flag by a probe; a build error or a wrong number becomes a note.
  void probe(const char* name, bool Capabilities::*flag, const std::function<bool()>& works) {
    try {
      found_.*flag = works();
      if (!(found_.*flag)) found_.notes[name] = "the probe kernel gives wrong numbers";
    } catch (const Error& error) {
      const std::string message = error.what();
      found_.notes[name] = "the probe kernel fails: " + message.substr(0, message.find('\n'));
    }
  }

  void extension(const char* name, bool Capabilities::*flag, const std::string& extension_name,
                 const std::function<bool()>& works) {
    if (context_.info().has_extension(extension_name))
      probe(name, flag, works);
    else
      found_.notes[name] = extension_name + " is not listed by the driver";
  }

  void x86();
  void dot_products();
  bool sixteen(const std::string& program, int added);
  bool subgroups();
  bool dot4_probe(int backend);
  void matrix_units_of(bool nvidia, bool amd);
  bool matrix_probe(const MatrixUnit& unit, bool half);
  bool copy_async_probe();
  std::vector<int32_t> run_x86(const Defines& sections);

  Context& context_;
  ProbeData data_;
  Capabilities found_;
};

std::vector<int32_t> Prober::run_x86(const Defines& sections) {
  Buffer a = buffer_of(context_, data_.a);
  Buffer b = buffer_of(context_, data_.b);
  Buffer start = buffer_of(context_, data_.start);
  Buffer out = context_.allocate(kSections * kLanes * sizeof(int32_t));
  out.fill(kPoison);
  Kernel kernel = context_.kernel("probe_x86", "probe_x86", sections);
  kernel.args(a, b, start, out);
  context_.queue().launch(kernel, {1, 1, 1}, {1, 1, 1}, "probe");
  return out.download<int32_t>();
}

void Prober::x86() {
  struct Section {
    const char* name;
    bool Capabilities::*flag;
    bool on_cpu;
    const char* define;
    std::vector<int32_t> expected;
  };
  const CpuFeatures cpu = cpu_features();
  const Section sections[kSections] = {
      {"avx2", &Capabilities::avx2, cpu.avx2, "PROBE_AVX2", pair_sums(data_, 2, 1)},
      {"avx512", &Capabilities::avx512, cpu.avx512, "PROBE_AVX512", pair_sums(data_, 2, 1)},
      {"avx512_vnni", &Capabilities::avx512_vnni, cpu.avx512_vnni, "PROBE_AVX512_VNNI",
       dot4<uint8_t, int8_t>(data_)},
      {"avx_vnni", &Capabilities::avx_vnni, cpu.avx_vnni, "PROBE_AVX_VNNI",
       dot4<uint8_t, int8_t>(data_)},
      {"avx512_bf16", &Capabilities::avx512_bf16, cpu.avx512_bf16, "PROBE_AVX512_BF16",
       pair_sums(data_, 1, kLanes)},
  };
  const auto correct = [&](const std::vector<int32_t>& out, size_t section) {
    const auto* row = out.data() + section * kLanes;
    if (std::all_of(row, row + kLanes, [](int32_t value) { return value == kUntouched; }))
      throw Error("the compiler of the driver does not use the registers of this instruction set");
    return std::equal(row, row + kLanes, sections[section].expected.begin());
  };
  std::vector<size_t> wanted;
  for (size_t i = 0; i < kSections; ++i)
    if (!found_.in_process_cpu)
      found_.notes[sections[i].name] = "no in-process CPU device";
    else if (!sections[i].on_cpu)
      found_.notes[sections[i].name] = "the CPU or the system has it not";
    else
      wanted.push_back(i);
  if (wanted.empty()) return;
  const auto run = [&](const std::vector<size_t>& chosen) {
    Defines defines;
    for (const Section& section : sections) defines[section.define] = 0;
    for (const size_t i : chosen) defines[sections[i].define] = 1;
    return run_x86(defines);
  };
  // All sections in one program: a build and a first launch cost some 0.4 s on PoCL. Where the
  // compiler refuses one of them, each is tried alone.
  try {
    const std::vector<int32_t> out = run(wanted);
    for (const size_t i : wanted)
      probe(sections[i].name, sections[i].flag, [&] { return correct(out, i); });
  } catch (const Error&) {
    for (const size_t i : wanted)
      probe(sections[i].name, sections[i].flag, [&] { return correct(run({i}), i); });
  }
}

bool Prober::dot4_probe(int backend) {
  Buffer a = buffer_of(context_, data_.a);
  Buffer b = buffer_of(context_, data_.b);
  Buffer start = buffer_of(context_, data_.start);
  Buffer out = context_.allocate(3 * kLanes * sizeof(int32_t));
  out.fill(kPoison);
  Kernel kernel = context_.kernel("probe_dot4", "probe_dot4", {{"DOT4", backend}});
  kernel.args(a, b, start, out);
  context_.queue().launch(kernel, {kLanes, 1, 1}, {kLanes, 1, 1}, "probe");
  const std::vector<int32_t> sums = out.download<int32_t>();
  const auto row = [&](long index) {
    return std::vector<int32_t>(sums.begin() + index * kLanes, sums.begin() + (index + 1) * kLanes);
  };
  return row(0) == dot4<int8_t, int8_t>(data_) && row(1) == dot4<uint8_t, int8_t>(data_) &&
         row(2) == dot4<uint8_t, uint8_t>(data_);
}

void Prober::dot_products() {
  const DeviceInfo& device = context_.info();
  const bool nvidia = device.vendor.find("NVIDIA") != std::string::npos && device.type == "gpu";
  const bool amd =
      device.type == "gpu" && (device.vendor.find("Advanced Micro Devices") != std::string::npos ||
                               device.platform.find("AMD") != std::string::npos);
  matrix_units_of(nvidia, amd);
  for (const Dot4Backend& backend : kDot4Backends) {
    const auto works = [&] { return dot4_probe(backend.code); };
    const std::string name = backend.name;
    if (name == "int_dot_product")
      extension(backend.name, backend.flag, "cl_khr_integer_dot_product", works);
    else if (name == "arm_dot_acc")
      extension(backend.name, backend.flag, "cl_arm_integer_dot_product_accumulate_int8", works);
    // By vendor: ROCm prints the errors of a failed build, PTX means nothing to another compiler.
    else if (name == "ptx_dp4a" ? nvidia : amd)
      probe(backend.name, backend.flag, works);
    else
      found_.notes[name] = name == "ptx_dp4a" ? "no NVIDIA device" : "no AMD GPU";
  }
}

// By vendor and name: compilers of other devices print errors, or die.
void Prober::matrix_units_of(bool nvidia, bool amd) {
  const std::string& device = context_.info().name;
  const auto named = [&](auto... names) { return amd && (device.starts_with(names) || ...); };
  struct Home {
    std::string_view unit;
    bool is_here;
    const char* otherwise;
  };
  const Home homes[] = {
      {"ptx_mma_s8", nvidia, "no NVIDIA device"},
      {"amd_mfma_k16", named("gfx908", "gfx90a"), "no gfx908 or gfx90a of AMD"},
      {"amd_mfma_k32", named("gfx94", "gfx95"), "no gfx940 or later of AMD"},
      {"amd_wmma", named("gfx11"), "no gfx11 of AMD"},
  };
  for (const MatrixUnit& unit : matrix_units()) {
    const auto works = [&] { return matrix_probe(unit, false); };
    const auto* home = std::find_if(std::begin(homes), std::end(homes),
                                    [&](const Home& h) { return h.unit == unit.name; });
    if (home == std::end(homes))  // Intel's
      extension(unit.name, unit.flag, "cl_intel_subgroup_matrix_multiply_accumulate", works);
    else if (home->is_here)
      probe(unit.name, unit.flag, works);
    else
      found_.notes[unit.name] = home->otherwise;
  }
  if (const MatrixUnit* unit = matrix_unit_of(found_))
    probe("matrix_f16", &Capabilities::matrix_f16, [&] { return matrix_probe(*unit, true); });
  else
    found_.notes["matrix_f16"] = "no matrix unit";
  if (nvidia)
    probe("ptx_cp_async", &Capabilities::ptx_cp_async, [&] { return copy_async_probe(); });
  else
    found_.notes["ptx_cp_async"] = "no NVIDIA device";
}

// A tile of a matrix product whose elements are all different along each row and column, in every
// sub-group of a work-group; each has start values of its own. In half all values are powers of 2,
// so that the sums are exact.
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
  Buffer out = context_.allocate(expected.size() * sizeof(uint32_t));
  out.fill(kPoison);
  Kernel kernel = context_.kernel(
      "probe_matrix", "probe_matrix",
      {{"MATRIX_UNIT", unit.code}, {"MATRIX_EMULATED", 0}, {"MATRIX_F16", half ? 1 : 0}});
  kernel.args(buffer_of(context_, operand(unit.m)), buffer_of(context_, operand(unit.n)),
              buffer_of(context_, start), out);
  context_.queue().launch(kernel, {kItems, 1, 1}, {kItems, 1, 1}, "probe");
  return out.download<uint32_t>() == expected;
}

bool Prober::copy_async_probe() {
  constexpr int kItems = 32;
  std::vector<int32_t> values, expected;
  for (int i = 0; i < 4 * kItems; ++i) {
    values.push_back(3 * i + 1);
    const int item = kItems - 1 - i / 4;
    expected.push_back(item % 3 == 0 ? 0 : 3 * (item * 4 + i % 4) + 1);
  }
  Buffer out = context_.allocate(expected.size() * sizeof(int32_t));
  out.fill(kPoison);
  Kernel kernel = context_.kernel("probe_copy_async", "probe_copy_async", {{"COPY_ASYNC", 2}});
  kernel.args(buffer_of(context_, values), out);
  context_.queue().launch(kernel, {kItems, 1, 1}, {kItems, 1, 1}, "probe");
  return out.download<int32_t>() == expected;
}

// Programs of the form out[i] = a[i] + added for small integers.
bool Prober::sixteen(const std::string& program, int added) {
  std::vector<int32_t> values, expected;
  for (int i = 0; i < kLanes; ++i) {
    values.push_back(7 * i - 50);
    expected.push_back(7 * i - 50 + added);
  }
  Buffer a = buffer_of(context_, values);
  Buffer out = context_.allocate(kLanes * sizeof(int32_t));
  out.fill(kPoison);
  Kernel kernel = context_.kernel(program, program);
  kernel.args(a, out);
  context_.queue().launch(kernel, {kLanes, 1, 1}, {kLanes, 1, 1}, "probe");
  return out.download<int32_t>() == expected;
}

bool Prober::subgroups() {
  constexpr int kItems = 64;
  std::vector<int32_t> values;
  for (int i = 0; i < kItems; ++i) values.push_back(i * i - 100);
  Buffer a = buffer_of(context_, values);
  Buffer out = context_.allocate(2 * kItems * sizeof(int32_t));
  out.fill(kPoison);
  Kernel kernel = context_.kernel("probe_subgroups", "probe_subgroups");
  kernel.args(a, out);
  context_.queue().launch(kernel, {kItems, 1, 1}, {kItems, 1, 1}, "probe");
  const std::vector<int32_t> result = out.download<int32_t>();
  std::map<int32_t, int32_t> sum_of_group;
  for (size_t i = 0; i < kItems; ++i) sum_of_group[result[kItems + i]] += values[i];
  for (size_t i = 0; i < kItems; ++i)
    if (result[i] != sum_of_group[result[kItems + i]]) return false;
  return true;
}

}  // namespace

Capabilities run_probes(Context& context) { return Prober(context).run(); }

}  // namespace bertcl::opencl
