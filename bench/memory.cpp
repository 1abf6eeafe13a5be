// SPDX-License-Identifier: Apache-2.0
// bench_memory [MODEL [BATCHES]]: batches of 1 to 4 sequences of 1 to 64 tokens, each of its own
// lengths, and the resident memory meanwhile. Fails where it grows by more than 5 % after the first
// tenth.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>

#include "bertcl/bertcl.hpp"

namespace {

using namespace bertcl;

constexpr double kAllowedGrowth = 0.05;

Sequences random_batch(std::mt19937& random, std::int64_t vocabulary) {
  std::uniform_int_distribution<std::int64_t> id(0, vocabulary - 1), count(1, 4), length(1, 64);
  Sequences batch;
  for (std::int64_t i = count(random); i > 0; --i) {
    for (std::int64_t token = length(random); token > 0; --token) batch.ids.push_back(id(random));
    batch.offsets.push_back(static_cast<std::int64_t>(batch.ids.size()));
  }
  return batch;
}

double resident_mib() {
  std::ifstream file("/proc/self/statm");
  double all = 0, resident = 0;
  file >> all >> resident;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE)) / (1 << 20);
}

int run(const char* model, int batches) {
  const Session session = Session::load(model);
  const std::int64_t vocabulary = std::max<std::int64_t>(1000, session.info().vocabulary);
  std::mt19937 random(1);
  double early = 0, most = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 1; i <= batches; ++i) {
    session.run(random_batch(random, vocabulary));
    const double now = resident_mib();
    if (i == std::max(1, batches / 10)) early = most = now;
    if (i > batches / 10) most = std::max(most, now);
    if (i == 1 || i % std::max(1, batches / 10) == 0)
      std::printf("batch %6d: %7.1f MiB resident\n", i, now);
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  const double growth = most / early - 1;
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
