// SPDX-License-Identifier: Apache-2.0
// GEMMs of bertcl/gemm.h, u8 x s8 to u8 with bias and GELU, compared with SGEMM of CLBlast on the
// same queue, over linears of BERT-base and a square one: a table of the fastest of several calls.
//
//   build/bench/bench_gemm_library [SECONDS PER ROW AND LIBRARY]
#include <clblast_c.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <vector>

#include "bertcl/gemm.h"
#include "support/stopwatch.hpp"

namespace {

cl_device_id device;
cl_context context;
cl_command_queue queue;

[[noreturn]] void fail(const char* what) {
  fmt::print(stderr, "{}: {}\n", what, bertcl_last_error());
  std::exit(1);
}

void check(bertcl_status status, const char* what) {
  if (status != BERTCL_OK) fail(what);
}

template <class T>
cl_mem random_buffer(std::size_t count) {
  std::mt19937 random(1);
  std::vector<T> values(count);
  for (T& value : values) value = static_cast<T>(random() % 256);
  return clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, count * sizeof(T),
                        values.data(), nullptr);
}

/// Seconds of the fastest of the calls that `seconds` hold, at least three.
template <class Call>
double fastest(double seconds, const Call& call) {
  double best = 1e9;
  call(), clFinish(queue);
  const bertcl::Stopwatch all;
  for (int i = 0; i < 3 || all.seconds() < seconds; ++i) {
    const bertcl::Stopwatch one;
    call(), clFinish(queue);
    best = std::min(best, one.seconds());
  }
  return best;
}

struct Row {
  std::size_t m, n, k;
};

void print(bertcl_gemm_context* gemms, const Row& row, double seconds) {
  const auto [m, n, k] = row;
  const cl_mem weights_buffer = random_buffer<std::int8_t>(k * n);
  const float scale = 1e-4f, out_scale = 0.05f;
  const std::vector<float> bias(n, 0.5f);
  bertcl_gemm_weights_desc weights_desc{};
  weights_desc.size = sizeof(weights_desc), weights_desc.k = static_cast<std::int64_t>(k);
  weights_desc.n = static_cast<std::int64_t>(n), weights_desc.buffer = weights_buffer;
  weights_desc.scales = &scale, weights_desc.scale_count = 1;
  bertcl_gemm_weights* weights = nullptr;
  check(bertcl_gemm_weights_create(gemms, &weights_desc, &weights), "weights");
  bertcl_gemm_desc desc{};
  desc.size = sizeof(desc), desc.a_type = BERTCL_U8, desc.a_zero_point = 128;
  desc.bias = bias.data(), desc.activation = BERTCL_ACTIVATION_GELU, desc.out_type = BERTCL_U8;
  desc.out_scales = &out_scale, desc.out_scale_count = 1;
  bertcl_gemm* gemm = nullptr;
  check(bertcl_gemm_create(weights, &desc, &gemm), "gemm");
  bertcl_gemm_info info{};
  info.size = sizeof(info);
  check(bertcl_gemm_get_info(gemm, static_cast<std::int64_t>(m), &info), "info");

  const cl_mem a = random_buffer<std::uint8_t>(m * k), out = random_buffer<std::uint8_t>(m * n);
  bertcl_gemm_args args{};
  args.size = sizeof(args), args.m = static_cast<std::int64_t>(m), args.a = a, args.out = out;
  const double ours = fastest(seconds, [&] {
    check(bertcl_gemm_enqueue(gemm, queue, &args, 0, nullptr, nullptr), "enqueue");
  });
  const cl_mem fa = random_buffer<float>(m * k), fb = random_buffer<float>(k * n),
               fc = random_buffer<float>(m * n);
  const double theirs = fastest(seconds, [&] {
    if (CLBlastSgemm(CLBlastLayoutRowMajor, CLBlastTransposeNo, CLBlastTransposeNo, m, n, k, 1.0f,
                     fa, 0, k, fb, 0, n, 0.0f, fc, 0, n, &queue, nullptr) != CLBlastSuccess)
      fail("CLBlastSgemm");
  });
  const double operations = 2e-9 * static_cast<double>(m * n * k);
  fmt::print("| {} x {} x {} | {} | {:.3f} | {:.0f} | {:.3f} | {:.0f} | {:.1f} |\n", m, n, k,
             info.variant, ours * 1e3, operations / ours, theirs * 1e3, operations / theirs,
             theirs / ours);
  bertcl_gemm_free(gemm);
  bertcl_gemm_weights_free(weights);
  for (const cl_mem memory : {weights_buffer, a, out, fa, fb, fc}) clReleaseMemObject(memory);
}

}  // namespace

int main(int count, char** arguments) {
  const double seconds = count > 1 ? std::atof(arguments[1]) : 0.5;
  cl_platform_id platform = nullptr;
  if (clGetPlatformIDs(1, &platform, nullptr) != CL_SUCCESS ||
      clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr) != CL_SUCCESS)
    fail("no OpenCL device");
  context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, nullptr);
  queue = clCreateCommandQueue(context, device, 0, nullptr);
  char name[256] = "";
  clGetDeviceInfo(device, CL_DEVICE_NAME, sizeof(name), name, nullptr);
  bertcl_gemm_context* gemms = nullptr;
  check(bertcl_gemm_context_create(queue, nullptr, &gemms), "context");
  fmt::print("{}\n\n| M x N x K | variant | int8 ms | GOP/s | SGEMM ms | GFLOP/s | ratio |\n",
             name);
  fmt::print("| --- | --- | --- | --- | --- | --- | --- |\n");
  for (const Row& row : {Row{1, 768, 768}, Row{16, 768, 768}, Row{128, 768, 768},
                         Row{128, 3072, 768}, Row{128, 768, 3072}, Row{1024, 1024, 1024}})
    print(gemms, row, seconds);
  bertcl_gemm_context_free(gemms);
  clReleaseCommandQueue(queue);
  clReleaseContext(context);
}
