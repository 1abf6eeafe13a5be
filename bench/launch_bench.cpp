// SPDX-License-Identifier: Apache-2.0
// What launches cost by themselves: runs of empty kernels, as many as a plan has steps, then a
// wait; and the same steps in one launch (kernels_cl/persistent/persistent.cl).
//
//   build/bench/bench_launch
//
// items 1 is a launch for one thread, items 64 wakes them all; threads that finish early sleep
// until the next launch, and to wake them is most of the cost on a CPU.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "bench/kernel_bench.hpp"
#include "opencl/device/capabilities.hpp"
#include "opencl/launch/persistent_kernel.hpp"

namespace {

using namespace bertcl::opencl;
using bertcl::bench::context;

constexpr int kSteps = 87;  // of BERT-base in int8

void run_empty_plan(benchmark::State& state) {
  Kernel kernel = context->kernel_from_source(
      "empty", "__kernel void empty(__global int* out, int value) { if (value) out[0] = value; }",
      "empty");
  const Buffer out = context->allocate(4);
  kernel.args(out, 0);
  const std::array<size_t, 3> grid = {static_cast<size_t>(state.range(0)), 1, 1};
  for (auto _ : state) {
    for (int step = 0; step < kSteps; ++step) context->queue().launch(kernel, grid, {1, 1, 1});
    context->queue().finish();
  }
  state.counters["s/launch"] = benchmark::Counter(
      kSteps, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

/// Steps of unpack.cl that find no rows to unpack.
void run_empty_persistent(benchmark::State& state) {
  const auto items = static_cast<std::uint64_t>(state.range(0));
  std::vector<std::uint64_t> words;
  for (std::uint64_t step = 0; step < kSteps; ++step)
    append_step(words, {0, step * items, {items, 1, 1}, {}});
  const Buffer steps = upload(*context, words);
  Buffer progress = context->allocate(kPersistentStateBytes);
  progress.fill(0);
  const Kernel unpack = context->unbuilt_kernel("unpack", "unpack");
  Kernel merged = persistent_kernel_of(*context, {&unpack, 1});
  merged.args(steps, progress, steps, 0, kSteps);
  const size_t groups = std::min<size_t>(items, context->info().compute_units);
  for (auto _ : state) {
    context->queue().launch(merged, {groups, 1, 1}, {1, 1, 1});
    context->queue().finish();
  }
  state.counters["s/step"] = benchmark::Counter(
      kSteps, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void register_all() {
  const auto add = [](const char* name, void (*run)(benchmark::State&)) {
    benchmark::RegisterBenchmark(name, run)
        ->ArgName("items")
        ->Arg(1)
        ->Arg(2)
        ->Arg(64)
        ->UseRealTime()
        ->Unit(benchmark::kMicrosecond);
  };
  add("empty_plan", run_empty_plan);
  if (context->capabilities().persistent_kernel) add("empty_persistent", run_empty_persistent);
}

}  // namespace

int main(int argc, char** argv) { return bertcl::bench::main_of(argc, argv, register_all); }
