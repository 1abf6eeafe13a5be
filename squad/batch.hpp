// SPDX-License-Identifier: Apache-2.0
// The logits of a model for windows.
#pragma once
#include <span>
#include <vector>

#include "squad/features.hpp"
#include "text/run_rows.hpp"

namespace bertcl::squad {

using text::Batch;
using text::BatchOptions;

/// Logits of the tokens of a window.
struct Logits {
  std::vector<float> start;
  std::vector<float> end;
};

/// Start and end logit of each token of a batch, [tokens, 2].
using LogitsFn = text::RunBatchFn;

/// What a model gives for each token.
const text::Head& logits_head();

std::vector<text::Row> rows_of(std::span<const Feature> features);

/// Logits of a window from those of its tokens, [length, 2].
Logits split_logits(std::span<const float> values);

/// Runs the model over all features, in batches of similar length, and gives the logits of each.
/// Throws Error if the model returns another number of logits.
std::vector<Logits> run_model(std::span<const Feature> features, const BatchOptions& options,
                              const LogitsFn& model);

}  // namespace bertcl::squad
