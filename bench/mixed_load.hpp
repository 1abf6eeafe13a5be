// SPDX-License-Identifier: Apache-2.0
// Batches of mixed lengths, and the memory that they take.
#pragma once
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <random>

#include "bertcl/bertcl.hpp"

namespace bertcl::bench {

/// 1 to 4 sequences of 1 to 64 tokens.
inline Sequences random_sequences(std::mt19937& random, const Session& session) {
  const std::int64_t vocabulary = std::max<std::int64_t>(1000, session.info().vocab_size);
  std::uniform_int_distribution<std::int64_t> id(0, vocabulary - 1), count(1, 4), length(1, 64);
  Sequences sequences;
  for (std::int64_t i = count(random); i > 0; --i) {
    for (std::int64_t token = length(random); token > 0; --token)
      sequences.ids.push_back(id(random));
    sequences.offsets.push_back(std::ssize(sequences.ids));
  }
  return sequences;
}

/// Resident memory of the process.
inline double resident_mib() {
  std::ifstream file("/proc/self/statm");
  double all = 0, resident = 0;
  file >> all >> resident;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE)) / (1 << 20);
}

}  // namespace bertcl::bench
