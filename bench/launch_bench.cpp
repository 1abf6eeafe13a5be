// SPDX-License-Identifier: Apache-2.0
// What launches cost by themselves: runs of empty kernels, as many as a plan has steps, then a
// wait.
//
//   build/bench/bench_launch
//
// items 1 is a launch for one thread, items 64 wakes them all; threads that finish early sleep
// until the next launch, and to wake them is most of the cost on a CPU.
#include <benchmark/benchmark.h>

#include <memory>

#include "opencl/context.hpp"

namespace {

using namespace bertcl::opencl;

constexpr int kSteps = 89;  // of BERT-base in int8
std::shared_ptr<Context> context;

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

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  context = Context::create();
  benchmark::AddCustomContext("device", context->info().name);
  benchmark::RegisterBenchmark("empty_plan", run_empty_plan)
      ->ArgName("items")
      ->Arg(1)
      ->Arg(2)
      ->Arg(64)
      ->UseRealTime()
      ->Unit(benchmark::kMicrosecond);
  benchmark::RunSpecifiedBenchmarks();
  context.reset();
}
