// SPDX-License-Identifier: Apache-2.0
// The default model and sequences for it.
#pragma once
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "bertcl/sequences.hpp"
#include "tests/support/files.hpp"

namespace bertcl::tests {

inline const std::filesystem::path folder = source_file("models/minilm-l6-squad");
inline const std::filesystem::path model = folder / "model.onnx";

inline std::string bytes_of_model() {
  std::ifstream file(model, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline Sequences sequences_of(const std::vector<std::int64_t>& lengths, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<std::int64_t> id(1000, 20000);
  Sequences sequences;
  for (const std::int64_t length : lengths) {
    for (std::int64_t place = 0; place < length; ++place) {
      sequences.ids.push_back(id(random));
      sequences.token_type_ids.push_back(place > length / 2);
    }
    sequences.offsets.push_back(static_cast<std::int64_t>(sequences.ids.size()));
  }
  return sequences;
}

}  // namespace bertcl::tests
