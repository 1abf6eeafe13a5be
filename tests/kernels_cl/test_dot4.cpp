// SPDX-License-Identifier: Apache-2.0
// dot4.clh: every back end that the device has shown gives the bits of plain C++.
#include <random>

#include "opencl/program/sources.hpp"
#include "tests/kernels_cl/device_test.hpp"

namespace bertcl::tests {
namespace {

struct Backend {
  std::string name;
  int code;                           // DOT4_* of dot4.clh
  bool opencl::Capabilities::*needs;  // null: every device
};

const std::vector<Backend> backends = {
    {"emulated", 0, nullptr},
    {"shifted", 6, nullptr},
    {"khronos", 1, &opencl::Capabilities::int_dot_product},
    {"ptx", 2, &opencl::Capabilities::ptx_dp4a},
};

// Instructions of devices that are rarely at hand, as their makers describe them: the code around
// them runs on every device. A probe shows the instructions themselves (opencl/probe/probe.cpp).
const std::vector<Backend> described = {
    {"amd_sdot4", 3, nullptr}, {"amd_sudot4", 4, nullptr}, {"arm", 5, nullptr}};
constexpr const char* kInstructions = R"(
int described_dot(int a, int a_signed, int b, int b_signed, int acc) {
  uint sum = as_uint(acc);
  for (int shift = 0; shift < 32; shift += 8) {
    const int x = a_signed ? (int)(char)(a >> shift) : (int)(uchar)(a >> shift);
    const int y = b_signed ? (int)(char)(b >> shift) : (int)(uchar)(b >> shift);
    sum += as_uint(x * y);
  }
  return as_int(sum);
}
// v_dot4_i32_i8 and v_dot4_i32_iu8 of AMD's instruction sets; no clamp wraps around.
#define __builtin_amdgcn_sdot4(a, b, acc, clamp) described_dot(a, 1, b, 1, acc)
#define __builtin_amdgcn_sudot4(a_signed, a, b_signed, b, acc, clamp) \
  described_dot(a, a_signed, b, b_signed, acc)
// cl_arm_integer_dot_product_accumulate_int8
#define arm_dot_acc(a, b, acc) described_dot(as_int(a), 1, as_int(b), 1, acc)
)";

constexpr size_t kLanes = 16;  // of probe_dot4.cl

template <typename A, typename B>
int32_t dot4(uint32_t a, uint32_t b, int32_t start) {
  auto sum = static_cast<uint32_t>(start);
  for (int byte = 0; byte < 4; ++byte)
    sum += static_cast<uint32_t>(int{static_cast<A>(a >> (8 * byte))} *
                                 int{static_cast<B>(b >> (8 * byte))});
  return static_cast<int32_t>(sum);
}

// Words of any bytes, of the ends of both types, and start values next to the ends of s32.
std::vector<uint32_t> words(unsigned seed, bool extreme) {
  std::mt19937 generator(seed);
  const uint32_t ends[] = {0x00, 0x01, 0x7f, 0x80, 0x81, 0xff};
  std::vector<uint32_t> values(kLanes);
  for (uint32_t& value : values)
    for (int byte = 0; byte < 4; ++byte)
      value = value << 8 | (extreme ? ends[generator() % 6] : generator() % 256);
  return values;
}

/// probe_dot4 on words of all kinds against plain C++.
void expect_exact(opencl::Kernel kernel, const std::string& name) {
  for (unsigned round = 0; round < 40; ++round) {
    const auto a = words(round, round % 2), b = words(round + 1000, round % 2);
    std::vector<int32_t> start = integers<int32_t>(kLanes, round, INT32_MIN, INT32_MAX), expected;
    start[0] = INT32_MAX, start[1] = INT32_MIN, start[2] = INT32_MAX - 65535;
    for (size_t i = 0; i < kLanes; ++i)
      expected.push_back(dot4<int8_t, int8_t>(a[i], b[i], start[i]));
    for (size_t i = 0; i < kLanes; ++i)
      expected.push_back(dot4<uint8_t, int8_t>(a[i], b[i], start[i]));
    for (size_t i = 0; i < kLanes; ++i)
      expected.push_back(dot4<uint8_t, uint8_t>(a[i], b[i], start[i]));
    Output<int32_t> out(3 * kLanes);
    kernel.args(upload(a), upload(b), upload(start), out.buffer());
    run(kernel, kLanes);
    expect_equal(out.values(), expected, name + " round " + std::to_string(round));
  }
}

class Dot4 : public testing::TestWithParam<Backend> {};

TEST_P(Dot4, EqualsPlainArithmetic) {
  const Backend& backend = GetParam();
  if (const auto reason = lacks(backend.needs); !reason.empty())
    GTEST_SKIP() << backend.name << " " << reason;
  expect_exact(device().kernel("probe_dot4", "probe_dot4", {{"DOT4", backend.code}}), backend.name);
}

INSTANTIATE_TEST_SUITE_P(Backends, Dot4, testing::ValuesIn(backends),
                         [](const auto& suite) { return suite.param.name; });

class Dot4AsDescribed : public testing::TestWithParam<Backend> {};

TEST_P(Dot4AsDescribed, EqualsPlainArithmetic) {
  const opencl::FinalSource probe = opencl::final_source("probe_dot4");
  expect_exact(device().kernel_from_source(GetParam().name, kInstructions + probe.text,
                                           "probe_dot4", {{"DOT4", GetParam().code}}, probe.traits),
               GetParam().name);
}

INSTANTIATE_TEST_SUITE_P(Instructions, Dot4AsDescribed, testing::ValuesIn(described),
                         [](const auto& suite) { return suite.param.name; });

// The choice takes what was shown and not hidden, and the emulation where nothing was.
TEST(Dot4Choice, FirstThatTheDeviceHas) {
  opencl::Capabilities none, all;
  all.ptx_dp4a = all.int_dot_product = all.amd_sdot4 = all.amd_sudot4 = all.arm_dot_acc = true;
  EXPECT_EQ(opencl::dot4_of(none).code, 0);
  EXPECT_STREQ(opencl::dot4_of(none).name, "emulated");
  EXPECT_EQ(opencl::dot4_of(all).code, 2);
  all.ptx_dp4a = false;
  EXPECT_EQ(opencl::dot4_of(all).code, 1);
  all.int_dot_product = false;
  EXPECT_EQ(opencl::dot4_of(all).code, 3);
}

TEST(Dot4Choice, IntelsRuntimeHasTheKhronosForm) {
  if (const std::string& platform = device().info().platform; platform.find("Intel") != 0)
    GTEST_SKIP() << "this is " << platform << ", not Intel's runtime (tests/opencl/on_intel)";
  EXPECT_TRUE(device().capabilities().int_dot_product);
  EXPECT_TRUE(device().capabilities().subgroups);
  EXPECT_TRUE(device().capabilities().fp16);
}

}  // namespace
}  // namespace bertcl::tests
