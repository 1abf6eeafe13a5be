// SPDX-License-Identifier: Apache-2.0
// bench_memory [MODEL [BATCHES]]: batches of 1 to 4 sequences of 1 to 64 tokens, each of its own
// lengths, and the resident memory meanwhile. Fails where it grows by more than 5 % after the first
// tenth.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "mixed_load.hpp"

namespace {

using namespace bertcl;

constexpr double kAllowedGrowth = 0.05;

int run(const char* model, int batches) {
  const Session session = Session::load(model);
  std::mt19937 random(1);
  double early = 0, peak = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 1; i <= batches; ++i) {
    session.run(bench::random_sequences(random, session));
    const double now = bench::resident_mib();
    if (i == std::max(1, batches / 10)) early = peak = now;
    if (i > batches / 10) peak = std::max(peak, now);
    if (i == 1 || i % std::max(1, batches / 10) == 0)
      std::printf("batch %6d: %7.1f MiB resident\n", i, now);
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  const double growth = peak / early - 1;
  std::printf("%s: %d batches in %.1f s; %.1f MiB after a tenth, %+.2f %% at most until the end\n",
              session.info().device.c_str(), batches, seconds.count(), early, 100 * growth);
  return growth <= kAllowedGrowth ? 0 : 1;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    return run(count > 1 ? arguments[1] : "models/minilm-l6-squad/model.onnx",
               count > 2 ? std::atoi(arguments[2]) : 10'000);
  } catch (const bertcl::Error& error) {
    std::fprintf(stderr, "bench_memory: %s\n", error.what());
    return 1;
  }
}
