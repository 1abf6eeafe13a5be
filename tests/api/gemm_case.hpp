// SPDX-License-Identifier: Apache-2.0
// A GEMM of bertcl/gemm.h compared with plain loops on the host. Scales are powers of two and sums
// stay below 2^24, so that all of it but some activations is exact in float.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "bertcl/gemm.h"

namespace bertcl::tests {

using Mem = std::shared_ptr<_cl_mem>;
using QueuePointer = std::shared_ptr<_cl_command_queue>;

/// The first device and a context of it, as a caller has them.
struct CallersDevice {
  CallersDevice() {
    cl_platform_id platform = nullptr;
    clGetPlatformIDs(1, &platform, nullptr);
    clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr);
    context = {clCreateContext(nullptr, 1, &device, nullptr, nullptr, nullptr), clReleaseContext};
    queue = make_queue(0);
    cl_uint bits = 0;
    clGetDeviceInfo(device, CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof(bits), &bits, nullptr);
    align = std::max(1u, bits / 8);
  }
  QueuePointer make_queue(cl_command_queue_properties properties) const {
    return {clCreateCommandQueue(context.get(), device, properties, nullptr),
            clReleaseCommandQueue};
  }
  template <class T>
  Mem buffer(std::vector<T> values) const {
    return {clCreateBuffer(context.get(), CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                           values.size() * sizeof(T), values.data(), nullptr),
            clReleaseMemObject};
  }
  std::vector<std::uint8_t> read(const Mem& memory) const {
    std::size_t size = 0;
    clGetMemObjectInfo(memory.get(), CL_MEM_SIZE, sizeof(size), &size, nullptr);
    std::vector<std::uint8_t> bytes(size);
    EXPECT_EQ(clEnqueueReadBuffer(queue.get(), memory.get(), CL_TRUE, 0, size, bytes.data(), 0,
                                  nullptr, nullptr),
              CL_SUCCESS);
    return bytes;
  }
  cl_device_id device = nullptr;
  std::shared_ptr<_cl_context> context;
  QueuePointer queue;
  std::size_t align = 1;
};

inline const CallersDevice& callers_device() {
  static const CallersDevice* device = new CallersDevice;  // outlives what the driver has running
  return *device;
}

struct ContextFree {
  void operator()(bertcl_gemm_context* c) const { bertcl_gemm_context_free(c); }
};
struct WeightsFree {
  void operator()(bertcl_gemm_weights* w) const { bertcl_gemm_weights_free(w); }
};
struct GemmFree {
  void operator()(bertcl_gemm* g) const { bertcl_gemm_free(g); }
};
using ContextPointer = std::unique_ptr<bertcl_gemm_context, ContextFree>;
using WeightsPointer = std::unique_ptr<bertcl_gemm_weights, WeightsFree>;
using GemmPointer = std::unique_ptr<bertcl_gemm, GemmFree>;

inline ContextPointer make_context(const char* disabled = nullptr) {
  bertcl_gemm_options options{sizeof(options), disabled};
  bertcl_gemm_context* context = nullptr;
  EXPECT_EQ(bertcl_gemm_context_create(callers_device().queue.get(), &options, &context), BERTCL_OK)
      << bertcl_last_error();
  return ContextPointer(context);
}

struct GemmCase {
  int m = 1, n = 1, k = 1;
  int a_type = BERTCL_U8, out_type = BERTCL_I32, activation = BERTCL_ACTIVATION_NONE;
  int a_zero = 0;
  float a_scale = 1;
  std::vector<float> w_scales = {}, bias = {}, out_scales = {}, row_scales = {};
  std::vector<std::int32_t> w_zeros = {}, out_zeros = {};
  bool transposed = false, weights_in_buffer = false;
  std::vector<std::uint8_t> a = {};  // [m][k]
  std::vector<std::int8_t> w = {};   // [k][n]

  std::string text() const {
    return "M " + std::to_string(m) + " N " + std::to_string(n) + " K " + std::to_string(k) +
           " a " + std::to_string(a_type) + " out " + std::to_string(out_type) + " activation " +
           std::to_string(activation) + " zeros of w " + std::to_string(w_zeros.size()) +
           " transposed " + std::to_string(transposed);
  }
  std::size_t out_size() const { return out_type == BERTCL_F32 || out_type == BERTCL_I32 ? 4 : 1; }

  template <class T>
  static T of_column(const std::vector<T>& values, int n, T default_value) {
    if (values.empty()) return default_value;
    return values.size() == 1 ? values[0] : values[static_cast<std::size_t>(n)];
  }
  std::int64_t sum(int row, int column) const {
    std::int64_t total = 0;
    for (int i = 0; i < k; ++i) {
      const std::uint8_t byte = a[static_cast<std::size_t>(row) * k + i];
      const int left = a_type == BERTCL_I8 ? static_cast<std::int8_t>(byte) : byte;
      total += (left - a_zero) *
               (w[static_cast<std::size_t>(i) * n + column] - of_column(w_zeros, column, 0));
    }
    return total;
  }
  /// Before the activation.
  double linear(int row, int column) const {
    double scale = static_cast<double>(a_scale) * of_column(w_scales, column, 1.0f);
    if (!row_scales.empty()) scale *= row_scales[static_cast<std::size_t>(row)];
    return static_cast<double>(sum(row, column)) * scale + of_column(bias, column, 0.0f);
  }
  double activated(double x) const {
    switch (activation) {
      case BERTCL_ACTIVATION_GELU:
        return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
      case BERTCL_ACTIVATION_GELU_TANH:
        return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
      case BERTCL_ACTIVATION_RELU:
        return std::max(x, 0.0);
      case BERTCL_ACTIVATION_TANH:
        return std::tanh(x);
      default:
        return x;
    }
  }
  double quantized(double y, int column) const {
    const double lowest = out_type == BERTCL_I8 ? -128 : 0;
    const double q =
        std::nearbyint(y / of_column(out_scales, column, 1.0f)) + of_column(out_zeros, column, 0);
    return std::clamp(q, lowest, lowest + 255);
  }
};

template <class T, class Random>
std::vector<T> random_values(std::size_t count, Random& random, int low, int high) {
  std::uniform_int_distribution<int> of(low, high);
  std::vector<T> values(count);
  for (T& value : values) value = static_cast<T>(of(random));
  return values;
}

/// None, one or one for each of n.
template <class Random>
std::size_t random_count(Random& random, int n, bool may_be_none = true) {
  const auto choice = random() % (may_be_none ? 3 : 2);
  return choice == 0 ? static_cast<std::size_t>(n) : choice == 1 ? 1 : 0;
}

template <class Random>
std::vector<float> powers_of_two(std::size_t count, Random& random, int low, int high) {
  std::vector<float> values;
  for (const int e : random_values<int>(count, random, low, high))
    values.push_back(std::ldexp(1.0f, e));
  return values;
}

/// Everything random but the sizes, the types and the activation.
inline GemmCase random_case(int m, int n, int k, int a_type, int out_type, int activation,
                            unsigned seed) {
  std::mt19937 random(seed);
  GemmCase c{m, n, k, a_type, out_type, activation};
  c.a = random_values<std::uint8_t>(static_cast<std::size_t>(m) * k, random, 0, 255);
  c.w = random_values<std::int8_t>(static_cast<std::size_t>(k) * n, random, -128, 127);
  const int lowest = a_type == BERTCL_I8 ? -128 : 0;
  c.a_zero = lowest + static_cast<int>(random() % 256);
  if (random() % 2) c.w_zeros = random_values<int>(random_count(random, n), random, -128, 127);
  c.w_scales = powers_of_two(random_count(random, n), random, -12, -10);
  c.transposed = random() % 2, c.weights_in_buffer = random() % 2;
  if (out_type == BERTCL_I32) return c;
  c.a_scale = 0.5f;
  if (random() % 2)
    for (const int b : random_values<int>(static_cast<std::size_t>(n), random, -64, 64))
      c.bias.push_back(static_cast<float>(b) / 16);
  if (random() % 4 == 0) c.row_scales = powers_of_two(static_cast<std::size_t>(m), random, -1, 1);
  if (out_type == BERTCL_F32) return c;
  const int lowest_out = out_type == BERTCL_I8 ? -128 : 0;
  c.out_scales = powers_of_two(random_count(random, n, false), random, -4, 0);
  c.out_zeros = random_values<int>(random_count(random, n), random, lowest_out, lowest_out + 255);
  return c;
}

inline bertcl_status create_gemm(const WeightsPointer& weights, const GemmCase& c,
                                 bertcl_gemm** gemm) {
  bertcl_gemm_desc desc{};
  desc.size = sizeof(desc), desc.a_type = c.a_type, desc.a_zero_point = c.a_zero;
  desc.a_scale = c.a_scale, desc.activation = c.activation, desc.out_type = c.out_type;
  if (!c.bias.empty()) desc.bias = c.bias.data();
  if (!c.out_scales.empty()) desc.out_scales = c.out_scales.data();
  desc.out_scale_count = static_cast<std::int64_t>(c.out_scales.size());
  if (!c.out_zeros.empty()) desc.out_zero_points = c.out_zeros.data();
  desc.out_zero_point_count = static_cast<std::int64_t>(c.out_zeros.size());
  return bertcl_gemm_create(weights.get(), &desc, gemm);
}

}  // namespace bertcl::tests
