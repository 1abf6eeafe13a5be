// SPDX-License-Identifier: Apache-2.0
// How well a model does on SQuAD or on data of another task: what `bertcl eval` measures.
#pragma once
#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bertcl/export.h"
#include "bertcl/sequences.hpp"
#include "bertcl/session.hpp"

namespace bertcl {

struct SquadOptions {
  int max_length = 384;          ///< tokens of a window, with question and separators
  int doc_stride = 128;          ///< tokens from window to window
  int max_query_length = 64;     ///< tokens of the question that are kept
  int max_answer_length = 30;    ///< tokens
  int n_best = 20;               ///< start and end positions of a window that are considered
  double null_threshold = 0;     ///< v2.0: no answer where the null odds are above it
  int batch_tokens = 4096;       ///< of a batch at most
  std::size_t limit = 0;         ///< only the first questions; 0: all
  bool allow_nonfinite = false;  ///< NaN and infinite logits, else an Error
};

struct SquadScores {
  double exact_match = 0, f1 = 0;         ///< percent
  std::map<std::string, double> metrics;  ///< all of the official script, by its names
  std::size_t questions = 0, windows = 0, tokens = 0;
  double model_seconds = 0, seconds = 0;
  std::map<std::string, std::string> answers;  ///< by id of the question
  std::string json;  ///< without answers, as `bertcl eval --json` writes it (docs/json.md)
};

/// Called with how many questions are done, of how many. False ends the evaluation: an Error of the
/// code `cancelled`.
using SquadProgress = std::function<bool(std::size_t done, std::size_t questions)>;

/// Answers the questions of a SQuAD file (v1.1 or v2.0) and scores them as its official script.
/// Throws Error if the model does not answer questions, has a smaller embedding table than the
/// tokenizer, or gives logits that are not finite.
BERTCL_API SquadScores evaluate_squad(const Session& session, const Tokenizer& tokenizer,
                                      const std::filesystem::path& data,
                                      const SquadOptions& options = {},
                                      const SquadProgress& progress = {});

struct TaskOptions {
  /// What the model's classes stand for, in the order of its output; empty: as bertcl.classes in
  /// the metadata of the session's model or id2label in the config.json beside its file say.
  std::vector<std::string> labels = {};
  /// Whether a text may be of several classes; none: as problem_type in that config.json, else as
  /// the data.
  std::optional<bool> multi_label = {};
  bool windows = false;          ///< "classify": read long texts in full, in windows
  int max_length = 0;            ///< tokens of a sequence; 0: as many as the model takes, or 512
  int batch_tokens = 0;          ///< of a batch at most; 0: 4096, for "fill-mask" 1024
  std::size_t limit = 0;         ///< only the first items; 0: all
  bool allow_nonfinite = false;  ///< NaN and infinite outputs, else an Error
};

struct TaskScores {
  /// Scores by their names in docs/tasks.md, the main one first: "accuracy", "macro_f1", ...
  /// Percentages, but for correlations, which are NaN where they are not defined.
  std::vector<std::pair<std::string, double>> metrics;
  std::size_t items = 0, sequences = 0, tokens = 0;
  std::size_t truncated = 0;  ///< items that lost tokens
  double model_seconds = 0, seconds = 0;
  /// What was predicted, by id of the item, in JSON: a label, a number, or a list of labels or
  /// tokens.
  std::map<std::string, std::string> predictions;
  std::string json;  ///< without predictions, as `bertcl eval --json` writes it (docs/json.md)
};

/// Called with how many sequences are done, of how many. False ends the evaluation: an Error of the
/// code `cancelled`.
using TaskProgress = std::function<bool(std::size_t done, std::size_t sequences)>;

/// Scores a model on a data file of a task by the name that `bertcl eval --task` has: "classify",
/// "tag", "fill-mask", "similarity", "retrieval" or "reranking" (docs/tasks.md has the files).
/// Retrieval needs a session with SessionOptions::pooling, by whose vectors similarity is measured,
/// too; the longest text, prompts and lower-casing are as the files beside the model say
/// (EmbeddingSettings). Throws Error if the model has another head, if labels of the data have no
/// class, or as evaluate_squad() does.
BERTCL_API TaskScores evaluate_task(const Session& session, const Tokenizer& tokenizer,
                                    std::string_view task, const std::filesystem::path& data,
                                    const TaskOptions& options = {},
                                    const TaskProgress& progress = {});

}  // namespace bertcl
