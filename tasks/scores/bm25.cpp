// SPDX-License-Identifier: Apache-2.0
// Search by words: BM25.
#include "tasks/scores/bm25.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "support/best_indexes.hpp"
#include "text/base/unicode.hpp"

namespace bertcl::tasks {
namespace {

constexpr double kSaturation = 1.2, kLengthWeight = 0.75;  // k1 and b

}  // namespace

std::vector<std::string> words_of(std::string_view text) {
  const std::string lower = text::lower(text);
  std::vector<std::string> words;
  bool inside = false;
  for (std::size_t position = 0; position < lower.size();) {
    const std::size_t begin = position;
    const bool part = text::is_word_character(text::next_code_point(lower, position));
    if (part && !inside) words.emplace_back();
    if (part) words.back().append(lower, begin, position - begin);
    inside = part;
  }
  return words;
}

Bm25::Bm25(std::span<const std::string> texts) {
  std::vector<std::size_t> lengths;
  for (std::uint32_t index = 0; index < texts.size(); ++index) {
    const std::vector<std::string> words = words_of(texts[index]);
    lengths.push_back(words.size());
    for (const std::string& word : words) {
      std::vector<Posting>& found = postings_[word];
      if (found.empty() || found.back().text != index) found.push_back({index, 0});
      ++found.back().count;
    }
  }
  const double mean =
      static_cast<double>(std::accumulate(lengths.begin(), lengths.end(), std::size_t{0})) /
      static_cast<double>(std::max<std::size_t>(1, texts.size()));
  for (const std::size_t length : lengths)
    norms_.push_back(
        kSaturation *
        (1.0 - kLengthWeight + kLengthWeight * static_cast<double>(length) / std::max(1e-9, mean)));
}

std::vector<std::size_t> Bm25::best(std::string_view query, std::size_t top_k) const {
  std::vector<double> scores(norms_.size());
  for (const std::string& word : words_of(query)) {
    const auto found = postings_.find(word);
    if (found == postings_.end()) continue;
    const auto texts = static_cast<double>(found->second.size());
    const double idf =
        std::log(1.0 + (static_cast<double>(norms_.size()) - texts + 0.5) / (texts + 0.5));
    for (const Posting& posting : found->second) {
      const auto count = static_cast<double>(posting.count);
      scores[posting.text] += idf * count / (count + norms_[posting.text]);
    }
  }
  return best_indexes(std::span<const double>(scores), top_k);
}

}  // namespace bertcl::tasks
