// SPDX-License-Identifier: Apache-2.0
// What every kernel test needs: one device, outputs with poison and guard bytes, comparisons that
// tell.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/bind.hpp"
#include "kernels/contracts/elementwise.hpp"
#include "opencl/context.hpp"
#include "opencl/device/capabilities.hpp"
#include "tests/support/lacks.hpp"
#include "tests/support/random_values.hpp"
#include "type_codes.hpp"

namespace bertcl::tests {

using opencl::KernelArgument;

/// The device of BERTCL_DEVICE (or the first), shared by all tests of the program.
inline opencl::Context& device() {
  // Never destroyed: some drivers are gone before the statics of the program.
  static auto* context = new std::shared_ptr<opencl::Context>(opencl::Context::create());
  return **context;
}

/// The same for the device of these tests (tests/support/lacks.hpp).
inline std::string lacks(bool opencl::Capabilities::*needed) { return lacks(device(), needed); }

/// A kernel of work-groups, which only GPUs run. Where a CPU stands for one, it is compiled without
/// optimization: what the CPU's compiler makes of it says nothing of GPUs, and takes ten times as
/// long. For kernels that compute little; GEMMs take longer to run without.
inline opencl::Kernel group_kernel(std::string_view program, std::string_view name,
                                   const opencl::Defines& defines = {}) {
  if (!device().info().is_cpu()) return device().kernel(program, name, defines);
  return device()
      .linked_kernel(program, name, {{std::string(program), defines, " -cl-opt-disable"}})
      .build();
}

template <typename T>
opencl::Buffer upload(const std::vector<T>& values) {
  opencl::Buffer buffer = device().allocate(std::max<size_t>(values.size() * sizeof(T), 1));
  if (!values.empty()) buffer.upload(values);
  return buffer;
}

/// An output that starts as poison and has a guard after it that must stay as it was.
template <typename T>
class Output {
 public:
  explicit Output(size_t count)
      : count_(count), buffer_(device().allocate(count * sizeof(T) + kGuardBytes)) {
    buffer_.fill(kPoison);
  }
  const opencl::Buffer& buffer() const { return buffer_; }
  std::vector<T> values() const {
    const auto bytes = buffer_.download<uint8_t>();
    for (size_t i = count_ * sizeof(T); i < bytes.size(); ++i)
      EXPECT_EQ(bytes[i], kPoison)
          << "the kernel wrote " << i - count_ * sizeof(T) << " bytes after its output";
    std::vector<T> values(count_);
    if (count_ > 0) std::memcpy(values.data(), bytes.data(), count_ * sizeof(T));
    return values;
  }

 private:
  static constexpr uint8_t kPoison = 0xAA;
  static constexpr size_t kGuardBytes = 256;
  size_t count_;
  opencl::Buffer buffer_;
};

/// Launches independent work-items, in groups on a GPU, and waits.
inline void run(const opencl::Kernel& kernel, size_t x, size_t y = 1, size_t z = 1) {
  device().queue().launch_items(kernel, {x, y, z});
  device().queue().finish();
}

/// The same of a kernel and its arguments.
template <template <class> class Contract>
void run(std::string_view program, std::string_view name, size_t items,
         const Contract<KernelArgument>& arguments) {
  auto kernel = device().kernel(program, name);
  kernels::set(kernel, arguments);
  run(kernel, items);
}

inline size_t ceil_div(size_t value, size_t divisor) { return (value + divisor - 1) / divisor; }

/// Relative root mean square of the error in units of the machine epsilon of float; `limit` is 80
/// for every f32 operator unless a test says why.
template <typename T>
void expect_close(const std::vector<float>& actual, const std::vector<T>& expected,
                  const std::string& what, double limit = 80) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  double errors = 0, squares = 0, largest = 0;
  size_t worst = 0;
  for (size_t i = 0; i < actual.size(); ++i) {
    const double difference =
        std::abs(static_cast<double>(actual[i]) - static_cast<double>(expected[i]));
    ASSERT_FALSE(std::isnan(difference))
        << what << ": at " << i << " " << actual[i] << " for " << expected[i];
    errors += difference * difference;
    squares += static_cast<double>(expected[i]) * static_cast<double>(expected[i]);
    if (difference > largest) largest = difference, worst = i;
  }
  const double eps = std::numeric_limits<float>::epsilon();
  const double relative = squares > 0 ? std::sqrt(errors / squares) / eps : std::sqrt(errors) / eps;
  EXPECT_LE(relative, limit) << what << ": relative RMS in eps; largest difference " << largest
                             << " at " << worst << " of " << actual.size() << ": " << actual[worst]
                             << " for " << expected[worst];
}

/// Exact equality, with the first difference.
template <typename T>
void expect_equal(const std::vector<T>& actual, const std::vector<T>& expected,
                  const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  for (size_t i = 0; i < actual.size(); ++i)
    ASSERT_TRUE(actual[i] == expected[i])
        << what << ": first difference at " << i << " of " << actual.size() << ": " << +actual[i]
        << " for " << +expected[i];
}

/// Requantized integers: none off by more than 1, at least 99.9 % equal (one may differ in any
/// size).
template <typename T>
void expect_quantized(const std::vector<T>& actual, const std::vector<T>& expected,
                      const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  size_t unequal = 0;
  for (size_t i = 0; i < actual.size(); ++i) {
    const int difference = std::abs(static_cast<int>(actual[i]) - static_cast<int>(expected[i]));
    ASSERT_LE(difference, 1) << what << ": at " << i << " of " << actual.size() << ": "
                             << +actual[i] << " for " << +expected[i];
    unequal += difference != 0;
  }
  EXPECT_LE(unequal, std::max<size_t>(1, actual.size() / 1000)) << what;
}

/// The nearest value of 8 significant bits, half to even.
inline float to_bf16(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  return std::bit_cast<float>((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u);
}

/// NaN as arithmetic makes it, with other bits, and of an untouched buffer.
inline std::vector<float> nans() {
  return {std::bit_cast<float>(0x7fc00000u), std::bit_cast<float>(0xffc00001u),
          std::bit_cast<float>(0xffffffffu)};
}

/// The bits of bf16, and back.
inline std::vector<uint16_t> bf16_bits(const std::vector<float>& values) {
  std::vector<uint16_t> bits;
  for (float x : values)
    bits.push_back(static_cast<uint16_t>(std::bit_cast<uint32_t>(to_bf16(x)) >> 16));
  return bits;
}
inline std::vector<float> from_bf16(const std::vector<uint16_t>& bits) {
  std::vector<float> values;
  for (uint16_t b : bits) values.push_back(std::bit_cast<float>(static_cast<uint32_t>(b) << 16));
  return values;
}

/// QuantizeLinear: round half to even, then the zero point, then saturate to u8 or s8.
inline int quantized(double value, int zero_point, bool is_signed) {
  const double low = is_signed ? -128 : 0;
  return static_cast<int>(std::min(std::max(std::nearbyint(value) + zero_point, low), low + 255));
}

/// By cast.cl: f32 to half, or back.
template <typename To, typename From>
std::vector<To> cast(const std::vector<From>& from) {
  Output<To> to(from.size());
  const auto code = [](size_t bytes) { return bytes == 2 ? kF16 : kF32; };
  run("cast", "cast", ceil_div(from.size(), 64),
      kernels::Cast<KernelArgument>{.x = upload(from),
                                    .from = code(sizeof(From)),
                                    .y = to.buffer(),
                                    .to = code(sizeof(To)),
                                    .count = static_cast<int32_t>(from.size()),
                                    .chunk = 64});
  return to.values();
}

}  // namespace bertcl::tests
