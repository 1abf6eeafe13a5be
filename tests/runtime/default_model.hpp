// SPDX-License-Identifier: Apache-2.0
// The default model, and batches for it.
#pragma once
#include <filesystem>
#include <random>
#include <vector>

#include "runtime/session.hpp"
#include "tests/support/files.hpp"

namespace bertcl::runtime {

inline const std::filesystem::path model = tests::source_file("models/minilm-l6-squad/model.onnx");

/// Random token ids with the given lengths; padding rows hold garbage that must not matter.
inline Tensors batch_of(const std::vector<std::int64_t>& lengths, std::int64_t seq, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<std::int64_t> id(1000, 20000);
  std::vector<std::int64_t> ids, mask, types;
  for (const std::int64_t length : lengths)
    for (std::int64_t s = 0; s < seq; ++s) {
      ids.push_back(id(random));
      mask.push_back(s < length);
      types.push_back(s > length / 2 && s < length);
    }
  const ir::Sizes shape{static_cast<std::int64_t>(lengths.size()), seq};
  return {{"input_ids", ir::Tensor::of(shape, ids)},
          {"attention_mask", ir::Tensor::of(shape, mask)},
          {"token_type_ids", ir::Tensor::of(shape, types)}};
}

}  // namespace bertcl::runtime
