// SPDX-License-Identifier: Apache-2.0
// The int8 GEMMs as PTX, launched by CUDA's driver API: a stand-in for a machine whose NVIDIA
// driver has no OpenCL.
//
//   build-device/bin/ptx_gemm build-device/ptx
//
// The PTX is what clang makes of kernels_cl/gemm/gemm_s8_*.cl (tools/device/pack). Prints JSON: for
// each kernel and shape microseconds, TOP/s, and whether sampled sums equal those of the host.
#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

// The part of the driver API that is used (CUDA Driver API reference, cuda.h).
using Handle = void*;
using DevicePointer = std::uint64_t;

struct Driver {
  Handle library = dlopen("libcuda.so.1", RTLD_NOW);
  template <class... Args>
  void call(const char* name, Args... args) const {
    void* symbol = library ? dlsym(library, name) : nullptr;
    if (!symbol) throw std::runtime_error(std::string("libcuda.so.1 does not give ") + name);
    if (const int status = reinterpret_cast<int (*)(Args...)>(symbol)(args...))
      throw std::runtime_error(std::string(name) + " answers " + std::to_string(status));
  }
};
const Driver driver;

struct Variant {
  const char* file;
  unsigned tile_rows, tile_columns;
};
constexpr Variant variants[] = {
    {"mma", 128, 128}, {"mma_registers", 128, 128}, {"dot4", 128, 128}, {"dot4_small", 32, 64}};
// (N, K) of the products of BERT-base and -large; rows: tokens of a batch.
constexpr int shapes[][2] = {{2304, 768},  {768, 768},   {3072, 768},  {768, 3072},
                             {3072, 1024}, {1024, 1024}, {4096, 1024}, {1024, 4096}};
constexpr int rows[] = {128, 1024, 3072, 12288};

DevicePointer upload(const void* data, std::size_t bytes) {
  DevicePointer pointer = 0;
  driver.call("cuMemAlloc_v2", &pointer, bytes);
  if (data) driver.call("cuMemcpyHtoD_v2", pointer, data, bytes);
  return pointer;
}

struct Product {
  int M, N, K;
  std::vector<std::int8_t> a, b;  // b in panels of 64 columns, groups of four along K
  std::vector<DevicePointer> owned;
  DevicePointer da = 0, db = 0, out = 0, zeros = 0, ones = 0, colsum = 0;

  Product(int m, int n, int k) : M(m), N(n), K(k) {
    std::minstd_rand random(1);
    a.resize(static_cast<std::size_t>(M) * K);
    b.resize(static_cast<std::size_t>(N) * K);  // N is a multiple of 64, K of 4
    for (auto* bytes : {&a, &b})                // small, so that fp32 holds every sum
      for (auto& value : *bytes) value = static_cast<std::int8_t>(random() % 31) - 15;
    std::vector<std::int32_t> sums(N, 0);
    for (int n0 = 0; n0 < N; ++n0)
      for (int k0 = 0; k0 < K; ++k0) sums[n0] += weight(k0, n0);
    const std::vector<float> zero(N, 0), one(N, 1);
    owned = {da = upload(a.data(), a.size()),    db = upload(b.data(), b.size()),
             out = upload(nullptr, 4ul * M * N), zeros = upload(zero.data(), 4ul * N),
             ones = upload(one.data(), 4ul * N), colsum = upload(sums.data(), 4ul * N)};
  }
  ~Product() {
    for (const DevicePointer pointer : owned) driver.call("cuMemFree_v2", pointer);
  }
  Product(const Product&) = delete;
  Product& operator=(const Product&) = delete;

  std::int8_t weight(int k, int n) const {
    const std::size_t panel = static_cast<std::size_t>(n / 64) * (K / 4);
    return b[((panel + k / 4) * 64 + n % 64) * 4 + k % 4];
  }

  void launch(Handle kernel, const Variant& variant) {
    std::int32_t m = M, n = N, k = K, zero = 0, one = 1;
    DevicePointer none = 0;
    void* arguments[] = {&da,   &db,  &colsum, &ones, &zeros, &ones, &zeros, &out,  &m,    &n,   &k,
                         &zero, &one, &zero,   &zero, &zero,  &none, &none,  &none, &none, &none};
    driver.call("cuLaunchKernel", kernel, 1u, (M + variant.tile_rows - 1) / variant.tile_rows,
                (N + variant.tile_columns - 1) / variant.tile_columns, 256u, 1u, 1u, 0u, Handle(),
                static_cast<void**>(arguments), static_cast<void**>(nullptr));
  }

  bool is_exact() const {
    std::vector<float> result(static_cast<std::size_t>(M) * N);
    driver.call("cuMemcpyDtoH_v2", static_cast<void*>(result.data()), out, 4ul * M * N);
    std::minstd_rand random(2);
    for (int i = 0; i < 512; ++i) {
      const int m = i == 0 ? M - 1 : static_cast<int>(random() % M);
      const int n = i == 0 ? N - 1 : static_cast<int>(random() % N);
      std::int32_t sum = 0;
      for (int k = 0; k < K; ++k) sum += a[static_cast<std::size_t>(m) * K + k] * weight(k, n);
      if (result[static_cast<std::size_t>(m) * N + n] != static_cast<float>(sum)) return false;
    }
    return true;
  }

  /// Microseconds of a launch, the best of five series.
  double measure(Handle kernel, const Variant& variant) {
    Handle begin = nullptr, end = nullptr;
    driver.call("cuEventCreate", &begin, 0u);
    driver.call("cuEventCreate", &end, 0u);
    float best = 1e9f;
    constexpr int kLaunches = 20;
    for (int series = 0; series < 5; ++series) {
      driver.call("cuEventRecord", begin, Handle());
      for (int i = 0; i < kLaunches; ++i) launch(kernel, variant);
      driver.call("cuEventRecord", end, Handle());
      driver.call("cuEventSynchronize", end);
      float ms = 0;
      driver.call("cuEventElapsedTime", &ms, begin, end);
      best = std::min(best, ms);
    }
    driver.call("cuEventDestroy_v2", begin);
    driver.call("cuEventDestroy_v2", end);
    return 1e3 * static_cast<double>(best) / kLaunches;
  }
};

Handle load(const std::string& path, Handle& module) {
  std::ifstream stream(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  if (text.empty()) throw std::runtime_error(path + " is not there; tools/device/pack makes it");
  driver.call("cuModuleLoadData", &module, static_cast<const void*>(text.c_str()));
  Handle kernel = nullptr;
  driver.call("cuModuleGetFunction", &kernel, module, "gemm_s8");
  return kernel;
}

/// Whether every product was exact.
bool run(const std::string& folder) {
  driver.call("cuInit", 0u);
  int device = 0;
  Handle context = nullptr;
  driver.call("cuDeviceGet", &device, 0);
  char name[256] = "";
  driver.call("cuDeviceGetName", static_cast<char*>(name), 256, device);
  driver.call("cuDevicePrimaryCtxRetain", &context, device);
  driver.call("cuCtxSetCurrent", context);
  std::printf(
      "{\"device\": \"%s\", \"by\": \"PTX of kernels_cl by the CUDA driver API\", \"products\": [",
      name);
  const char* separator = "\n";
  bool all_exact = true;
  for (const Variant& variant : variants) {
    Handle module = nullptr;
    const Handle kernel = load(folder + "/" + variant.file + ".ptx", module);
    for (const auto& [N, K] : shapes)
      for (const int M : rows) {
        Product product(M, N, K);
        product.launch(kernel, variant);
        driver.call("cuCtxSynchronize");
        const bool exact = product.is_exact();
        all_exact = all_exact && exact;
        const double us = product.measure(kernel, variant);
        std::printf(
            "%s  {\"kernel\": \"%s\", \"m\": %d, \"n\": %d, \"k\": %d, \"us\": %.2f, "
            "\"tops\": %.2f, \"exact\": %s}",
            separator, variant.file, M, N, K, us, 2e-6 * M * N * K / us, exact ? "true" : "false");
        std::fflush(stdout);
        separator = ",\n";
      }
    driver.call("cuModuleUnload", module);
  }
  std::printf("\n]}\n");
  return all_exact;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: ptx_gemm FOLDER-OF-PTX\n");
    return 2;
  }
  try {
    if (!run(argv[1])) throw std::runtime_error("products are not exact");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ptx_gemm: %s\n", error.what());
    return 1;
  }
  return 0;
}
