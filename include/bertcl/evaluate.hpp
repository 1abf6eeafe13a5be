// SPDX-License-Identifier: Apache-2.0
// How well a question-answering model does on SQuAD: what `bertcl eval` measures.
#pragma once
#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include "bertcl/export.h"
#include "bertcl/sequences.hpp"
#include "bertcl/session.hpp"

namespace bertcl {

struct SquadOptions {
  int max_length = 384;        ///< tokens of a window, with question and separators
  int doc_stride = 128;        ///< tokens from window to window
  int max_query_length = 64;   ///< tokens of the question that are kept
  int max_answer_length = 30;  ///< tokens
  int n_best = 20;             ///< start and end positions of a window that are considered
  double null_threshold = 0;   ///< v2.0: no answer where the null odds are above it
  int batch_tokens = 4096;     ///< of a batch at most
  std::size_t limit = 0;       ///< only the first questions; 0: all
};

struct SquadScores {
  double exact_match = 0, f1 = 0;         ///< percent
  std::map<std::string, double> metrics;  ///< all of the official script, by its names
  std::size_t questions = 0, windows = 0, tokens = 0;
  double model_seconds = 0, seconds = 0;
  std::map<std::string, std::string> answers;  ///< by id of the question
};

/// Called with how many questions are done, of how many. False ends the evaluation: an Error of the
/// code `cancelled`.
using SquadProgress = std::function<bool(std::size_t done, std::size_t questions)>;

/// Answers the questions of a SQuAD file (v1.1 or v2.0) and scores them as its official script.
/// Throws Error if the model does not answer questions, has a smaller word table than the
/// tokenizer, or gives logits that are not finite.
BERTCL_API SquadScores evaluate_squad(const Session& session, const Tokenizer& tokenizer,
                                      const std::filesystem::path& data,
                                      const SquadOptions& options = {},
                                      const SquadProgress& progress = {});

}  // namespace bertcl
