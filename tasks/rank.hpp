// SPDX-License-Identifier: Apache-2.0
// Passages ordered by how well they answer a query, as a cross-encoder scores the pairs.
#pragma once
#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "text/run_rows.hpp"
#include "text/tokenizer.hpp"

namespace bertcl::tasks {

struct Passage {
  std::string query, text;
  std::string id;  ///< may be empty
};

/// Lines of text as they are, blank ones too; or of JSON: text (or passage), and where given query
/// and id. `query` is that of all lines without one. Throws Error that names file and line, also
/// where a passage has no query.
std::vector<Passage> read_passages(const std::filesystem::path& path, const std::string& query);

struct RankOptions {
  std::string prompt;    ///< before each query
  int max_length = 512;  ///< tokens of query and passage with separators
  text::BatchOptions batches;
  bool sigmoid = true;           ///< scores from 0 to 1, else the logits
  std::size_t top_k = 0;         ///< passages of a query at most; 0: all
  bool allow_nonfinite = false;  ///< NaN and infinite scores, else an error
};

struct RankedPassage {
  std::size_t index = 0;  ///< in what was ranked
  double score = 0.0;
};

/// The passages of one query, best first; equal ones in their order, NaN last.
struct Ranking {
  std::string query;
  std::vector<RankedPassage> passages;
};

struct Rankings {
  std::vector<Ranking> queries;  ///< in the order of their first passages
  std::size_t tokens = 0;        ///< real tokens
  std::size_t truncated = 0;     ///< pairs that lost tokens
  double model_seconds = 0.0;
};

/// What a model needs for it: one logit for a pair.
const text::Head& rank_head();

/// Orders them, best first; equal ones in their order, NaN last. Keeps `top_k`, or all for 0.
void keep_best(std::vector<RankedPassage>& passages, std::size_t top_k);

/// Scores all passages and orders those of each query. Which batches they are in changes nothing,
/// if a row's output does not. Throws Error as text::run_rows(), and on logits that are not finite.
Rankings rank(const std::vector<Passage>& passages, const text::Tokenizer& tokenizer,
              const RankOptions& options, const text::RunBatchFn& model,
              const text::BatchDoneFn& progress = {});

}  // namespace bertcl::tasks
