// SPDX-License-Identifier: Apache-2.0
// Search by words: BM25.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace bertcl::tasks {

/// Lower-cased runs of letters, digits and underscores, as `\w+` of Python's re.
std::vector<std::string> words_of(std::string_view text);

/// BM25 of Robertson et al. as Lucene has it: for each word of the query idf * tf / (tf + k1 * (1 -
/// b + b * length / mean length)), with idf = ln(1 + (N - n + 0.5) / (n + 0.5)), k1 = 1.2, b =
/// 0.75; a word that stands twice in the query counts twice. No stemming, no stop words.
class Bm25 {
 public:
  explicit Bm25(std::span<const std::string> texts);

  /// Indices of the best `top_k` texts, the best first, equal ones in their order.
  std::vector<std::size_t> best(std::string_view query, std::size_t top_k) const;

 private:
  struct Posting {
    std::uint32_t text, count;
  };
  std::unordered_map<std::string, std::vector<Posting>> postings_;  // of words
  std::vector<double> norms_;                                       // [texts] k1 * (1 - b + ..)
};

}  // namespace bertcl::tasks
