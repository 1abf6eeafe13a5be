// SPDX-License-Identifier: Apache-2.0
// Runs a model function on token sequences in batches of similar length.
#pragma once
#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "tasks/task.hpp"
#include "text/batch.hpp"

namespace bertcl::tasks {

/// Runs a model on one batch: [batch, classes], or [batch, seq, classes] by token.
using RunBatchFn = std::function<std::vector<float>(const text::Batch&)>;

/// Called for each sequence, in any order: its output, [classes], or [length, classes] by token.
using OutputVisitor = std::function<void(std::size_t index, std::span<const float> output)>;

/// Called after each batch: how many sequences are done, and the seconds so far inside the model.
using BatchDoneFn = std::function<void(std::size_t done, double model_seconds)>;

/// Runs `model` on all sequences; gives the seconds inside it. Exceptions of the model pass
/// through. Throws Error if the output has another size than the head.
double run_sequences(std::span<const Sequence> sequences, const Head& head,
                     const text::BatchOptions& batches, const RunBatchFn& model,
                     const OutputVisitor& visit, const BatchDoneFn& batch_done = {});

/// True if there is neither NaN nor infinity.
bool all_finite(std::span<const float> values);

}  // namespace bertcl::tasks
