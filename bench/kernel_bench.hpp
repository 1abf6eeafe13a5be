// SPDX-License-Identifier: Apache-2.0
// What the benches of kernels share: the device, its buffers, launches that are timed, and main().
#pragma once
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "opencl/context.hpp"
#include "opencl/queue.hpp"
#include "opencl/upload.hpp"
#include "support/ceil_div.hpp"
#include "support/stopwatch.hpp"

namespace bertcl::bench {

using bertcl::ceil_div;

inline std::shared_ptr<opencl::Context> context;  // while main_of() runs

template <typename T>
opencl::Buffer upload(const std::vector<T>& values) {
  return opencl::upload(*context, values);
}

inline opencl::Buffer random_bytes(std::size_t count) {
  std::mt19937 generator(1);
  std::vector<std::uint8_t> values(count);
  for (std::uint8_t& value : values) value = static_cast<std::uint8_t>(generator());
  return upload(values);
}

inline double seconds_of(const opencl::Kernel& kernel, std::array<std::size_t, 3> grid,
                         int launches) {
  const Stopwatch clock;
  for (int i = 0; i < launches; ++i) context->queue().launch(kernel, grid, {1, 1, 1});
  context->queue().finish();
  return clock.seconds();
}

/// So many launches in a row that their start and end do not count.
inline int enough_launches(const opencl::Kernel& kernel, std::array<std::size_t, 3> grid) {
  seconds_of(kernel, grid, 1);
  return std::max(1, static_cast<int>(5e-3 / seconds_of(kernel, grid, 1)));
}

/// Registers a bench that sets the time of its iterations itself.
template <typename Body>
void add(const std::string& name, Body&& body) {
  benchmark::RegisterBenchmark(name.c_str(), body)
      ->UseManualTime()
      ->MinTime(0.05)
      ->Unit(benchmark::kMicrosecond);
}

/// main() of a program whose benches `register_all` adds. Returns the exit code.
template <typename Register>
int main_of(int argc, char** argv, const Register& register_all) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  context = opencl::Context::create();
  benchmark::AddCustomContext("device", context->info().name);
  benchmark::AddCustomContext("driver", context->info().platform_version);
  register_all();
  benchmark::RunSpecifiedBenchmarks();
  context.reset();
  return 0;
}

}  // namespace bertcl::bench
