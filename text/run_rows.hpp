// SPDX-License-Identifier: Apache-2.0
// Runs a model function on token sequences in batches of similar length.
#pragma once
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "bertcl/error.hpp"
#include "text/batch.hpp"

namespace bertcl::text {

/// The output that a model needs for a task.
struct Head {
  bool by_token = false;    ///< [tokens, classes]; else [rows, classes]
  std::size_t classes = 0;  ///< their number,
  bool or_more = false;     ///< or more
  std::string meaning;      ///< for messages: "2 classes: neg, pos"
  bool is_span = false;     ///< of two classes: the start and the end of an answer
};

/// Runs a model on one batch: [rows, classes], or [tokens, classes] by token. Called from one
/// thread at a time, always the same one.
using RunBatchFn = std::function<std::vector<float>(const Batch&)>;

/// Called for each row, in any order: its output, [classes], or [length, classes] by token.
using OutputVisitor = std::function<void(std::size_t index, std::span<const float> output)>;

/// What has been run so far.
struct Done {
  std::size_t rows = 0, tokens = 0;
  double seconds = 0.0;  ///< inside the model
};
using BatchDoneFn = std::function<void(const Done&)>;

/// Runs `model` on all rows, and tells after each batch. It does not get rows without tokens, whose
/// output is 0. Exceptions of the model pass through. Throws Error if the output has another size
/// than the head.
Done run_rows(std::span<const Row> rows, const Head& head, const BatchOptions& options,
              const RunBatchFn& model, const OutputVisitor& visit,
              const BatchDoneFn& batch_done = {});

/// True if there is neither NaN nor infinity.
bool all_finite(std::span<const float> values);

/// A model's output that no score can be made of. item(): its index among the evaluated ones, for
/// callers that know its place in the file.
class NonfiniteOutput : public Error {
 public:
  NonfiniteOutput(const std::string& message, std::size_t item) : Error(message), item_(item) {}

  std::size_t item() const noexcept { return item_; }

 private:
  std::size_t item_;
};

}  // namespace bertcl::text
