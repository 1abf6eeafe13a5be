// SPDX-License-Identifier: Apache-2.0
// bench_threads [MODEL [THREADS [RUNS]]]: threads that run one session with sequences of mixed
// lengths. Fails where an answer is not that of one thread, bit for bit, or memory grows.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "mixed_load.hpp"

namespace {

using namespace bertcl;

constexpr std::size_t kInputs = 32;    // different ones
constexpr double kAllowedGrowth = 16;  // MiB of all runs but the first tenth

bool same_bits(const Tensors& a, const Tensors& b) {
  return std::ranges::equal(a, b, [](const auto& x, const auto& y) {
    return x.first == y.first && std::ranges::equal(x.second.bytes(), y.second.bytes());
  });
}

int run(const std::string& model, std::size_t threads, std::size_t runs) {
  const Session session = Session::load(model);
  std::mt19937 random(1);
  std::vector<Sequences> inputs;
  std::vector<Tensors> expected;
  for (std::size_t i = 0; i < kInputs; ++i) {
    inputs.push_back(bench::random_sequences(random, session));
    expected.push_back(session.run(inputs.back()));
  }
  std::atomic<std::size_t> wrong = 0, done = 0;
  std::atomic<double> early = 0;  // after the first tenth, when every request has its largest batch
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::thread> workers;
  for (std::size_t t = 0; t < threads; ++t)
    workers.emplace_back([&, t] {
      std::mt19937 order(static_cast<unsigned>(t));
      for (std::size_t i = 0; i < runs; ++i) {
        const std::size_t chosen = order() % kInputs;
        if (!same_bits(session.run(inputs[chosen]), expected[chosen])) ++wrong;
        if (++done == threads * runs / 10) early = bench::resident_mib();
      }
    });
  for (std::thread& worker : workers) worker.join();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  const double growth = bench::resident_mib() - early;
  const MemoryUse memory = session.memory();
  std::printf(
      "%s: %zu threads x %zu runs in %.1f s, %.0f runs/s\n"
      "answers that differ from those of one thread: %zu\n"
      "resident: %.1f MiB after a tenth, %+.1f MiB until the end\n"
      "weights %.1f MiB, values of %d requests %.1f MiB\n",
      session.info().device.c_str(), threads, runs, seconds.count(),
      static_cast<double>(threads * runs) / seconds.count(), wrong.load(), early.load(), growth,
      static_cast<double>(memory.weights) / (1 << 20), memory.requests,
      static_cast<double>(memory.runs) / (1 << 20));
  return wrong == 0 && growth < kAllowedGrowth ? 0 : 1;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    const auto number = [&](int i, std::size_t default_value) {
      return count > i ? static_cast<std::size_t>(std::atoll(arguments[i])) : default_value;
    };
    return run(count > 1 ? arguments[1] : "models/minilm-l6-squad/model.onnx", number(2, 8),
               number(3, 1000));
  } catch (const bertcl::Error& error) {
    std::fprintf(stderr, "bench_threads: %s\n", error.what());
    return 1;
  }
}
