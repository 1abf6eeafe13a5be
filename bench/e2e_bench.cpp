// SPDX-License-Identifier: Apache-2.0
// Latency and tokens/s of whole models at batch 1 and 8, sequence 128 and 384.
//
//   build/bench/bench_e2e                                    the default model
//   BERTCL_BENCH_MODELS=base.onnx:base-int8.onnx build/bench/bench_e2e --benchmark_out=e2e.json
//
// BERTCL_DEVICE names the device. Times are host time of one run: inputs to the device, kernels,
// outputs back.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "ir/input_role.hpp"
#include "runtime/session.hpp"

namespace {

using bertcl::ir::InputRole;
using bertcl::runtime::Session;
using bertcl::runtime::Tensors;

/// Models are compiled once, at the first benchmark that needs them, on one device.
Session& session_of(const std::string& model) {
  static std::map<std::string, Session> sessions;
  static std::shared_ptr<bertcl::opencl::Context> context;
  auto found = sessions.find(model);
  if (found == sessions.end()) {
    bertcl::runtime::SessionOptions options;
    options.context = context;
    found = sessions.emplace(model, Session::load(model, options)).first;
    context = found->second.shared_context();
  }
  return found->second;
}

/// Random ids in full sequences; masks of ones, token types 0.
Tensors random_inputs(const Session& session, std::int64_t batch, std::int64_t seq) {
  std::mt19937 random(1);
  Tensors inputs;
  for (const auto& port : session.inputs()) {
    std::vector<std::int64_t> values(static_cast<std::size_t>(batch * seq), 0);
    const InputRole role = bertcl::ir::role_of_input(port.name);
    for (auto& value : values) {
      value = role == InputRole::mask  ? 1
              : role == InputRole::ids ? static_cast<std::int64_t>(random() % 20000)
                                       : 0;
    }
    inputs[port.name] = bertcl::ir::Tensor::of<std::int64_t>({batch, seq}, std::move(values));
  }
  return inputs;
}

void run_model(benchmark::State& state, const std::string& model, std::int64_t batch,
               std::int64_t seq) {
  try {
    Session& session = session_of(model);
    const Tensors inputs = random_inputs(session, batch, seq);
    session.run(inputs);
    for (auto _ : state) benchmark::DoNotOptimize(session.run(inputs));
    state.counters["tokens/s"] = benchmark::Counter(
        static_cast<double>(batch * seq * state.iterations()), benchmark::Counter::kIsRate);
  } catch (const std::exception& error) {
    state.SkipWithError(error.what());
  }
}

std::vector<std::string> models() {
  const char* named = std::getenv("BERTCL_BENCH_MODELS");
  std::string list =
      named && *named ? named : BERTCL_SOURCE_DIR "/models/minilm-l6-squad/model.onnx";
  std::vector<std::string> result;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(':', begin), list.size());
    if (end > begin) result.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  for (const std::string& model : models()) {
    for (const std::int64_t batch : {1, 8}) {
      for (const std::int64_t seq : {128, 384}) {
        const std::string name = fmt::format(
            "{}/batch{}/seq{}", std::filesystem::path(model).filename().string(), batch, seq);
        benchmark::RegisterBenchmark(
            name.c_str(), [=](benchmark::State& state) { run_model(state, model, batch, seq); })
            ->UseRealTime()
            ->Unit(benchmark::kMillisecond);
      }
    }
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
