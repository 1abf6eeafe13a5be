// SPDX-License-Identifier: Apache-2.0
// Windows in batches, and the logits of a model for them.
#pragma once
#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "squad/features.hpp"
#include "text/batch.hpp"

namespace bertcl::squad {

using text::Batch;
using text::BatchOptions;

/// Outputs of a question-answering head, each [batch, seq].
struct Logits {
  std::vector<float> start;
  std::vector<float> end;
};

/// Runs a model on one batch. Called from one thread at a time, always the same one.
using LogitsFn = std::function<Logits(const Batch&)>;

/// Groups features of similar length, longest first. Each index stands in exactly one group.
/// Throws Error if a bound is below 1.
std::vector<std::vector<std::size_t>> group_by_length(std::span<const Feature> features,
                                                      const BatchOptions& options);

/// Inputs for the features at `indexes`, one row each.
Batch make_batch(std::span<const Feature> features, std::span<const std::size_t> indexes);

/// Runs the model over all features in groups. The result is [features], each cut to the tokens
/// of its window. `after_batch(indexes, seconds)` follows each call of the model, where set.
/// Throws Error if the model returns logits of another size than [batch, seq].
using AfterBatchFn = std::function<void(std::span<const std::size_t> indexes, double seconds)>;
std::vector<Logits> run_model(std::span<const Feature> features, const BatchOptions& options,
                              const LogitsFn& model, const AfterBatchFn& after_batch = {});

}  // namespace bertcl::squad
