// SPDX-License-Identifier: Apache-2.0
// Candidates of all windows, the n-best list, and the null answer of SQuAD v2.0.
#include "squad/predictions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_set>

#include "bertcl/error.hpp"
#include "support/best_indexes.hpp"
#include "support/fail.hpp"
#include "support/option_name.hpp"
#include "text/base/unicode.hpp"
#include "text/run_rows.hpp"

namespace bertcl::squad {
namespace {

/// What run_squad.py starts its search for the least null score with; it stands as null_odds
/// where a question has no window or no candidate at all.
constexpr double kNoCandidateNullOdds = 1000000.0;

struct Candidate {
  const Feature* feature = nullptr;  // nullptr: the null answer
  std::size_t start = 0;             // token positions, both inclusive
  std::size_t end = 0;
  double start_logit = 0.0;
  double end_logit = 0.0;

  double score() const { return start_logit + end_logit; }
};

void check(const WindowLogits& window, bool allow_nonfinite) {
  const std::size_t length = window.feature->length();
  if (window.start.size() < length || window.end.size() != window.start.size()) {
    fail("a window of {} tokens has {} start and {} end logits", length, window.start.size(),
         window.end.size());
  }
  if (allow_nonfinite) return;
  if (!text::all_finite(window.start) || !text::all_finite(window.end)) {
    throw text::NonfiniteOutput(
        fmt::format("the model returned NaN or infinity for a window of {} tokens (question "
                    "{} of the data, counted from 0); {} continues",
                    length, window.feature->example_index, option_name("allow-nonfinite")),
        window.feature->example_index);
  }
}

void add_candidates(const WindowLogits& window, const PredictionOptions& options,
                    std::vector<Candidate>& candidates) {
  const Feature& feature = *window.feature;
  const auto count = static_cast<std::size_t>(options.n_best_size);
  const std::vector<std::size_t> ends = best_indexes(window.end, count);
  for (const std::size_t start : best_indexes(window.start, count)) {
    if (!feature.in_document(start)) continue;
    if (!feature.is_max_context[start - feature.doc_begin]) continue;
    for (const std::size_t end : ends) {
      if (!feature.in_document(end) || end < start) continue;
      if (end - start + 1 > static_cast<std::size_t>(options.max_answer_length)) continue;
      if (!std::isfinite(window.start[start] + window.end[end])) continue;
      candidates.push_back({&feature, start, end, window.start[start], window.end[end]});
    }
  }
}

/// Word pieces start..end as words: " ##" and "##" vanish, white space collapses.
std::string join_pieces(const Candidate& candidate, const text::Tokenizer& tokenizer) {
  std::string joined;
  for (std::size_t i = candidate.start; i <= candidate.end; ++i) {
    std::string_view piece = tokenizer.token(candidate.feature->input_ids[i]);
    const bool continues = piece.starts_with("##");
    if (continues) piece.remove_prefix(2);
    if (!continues && !joined.empty()) joined += ' ';
    joined += piece;
  }
  return joined;
}

/// The pieces of the first word of an answer that stand before the answer; [UNK] is empty.
std::vector<std::string_view> pieces_before(const Candidate& candidate, const Document& document,
                                            const text::Tokenizer& tokenizer) {
  const Feature& feature = *candidate.feature;
  const std::size_t end = feature.first_piece + candidate.start - feature.doc_begin;
  const std::vector<std::int32_t>& words = document.piece_to_word;
  std::size_t begin = end;
  while (begin > 0 && words[begin - 1] == words[end]) --begin;
  const auto unknown = tokenizer.unknown_id();
  std::vector<std::string_view> pieces;
  for (; begin < end; ++begin) {
    const std::int32_t id = document.piece_ids[begin];
    pieces.push_back(id == unknown ? std::string_view() : tokenizer.token(id));
  }
  return pieces;
}

/// Words first..last joined by one space each.
std::string join_words(const Document& document, std::size_t first, std::size_t last) {
  std::string joined;
  for (std::size_t word = first; word <= last; ++word) {
    if (word > first) joined += ' ';
    const auto [begin, end] = document.words[word];
    joined += document.context.substr(begin, end - begin);
  }
  return joined;
}

/// Byte of the context after `offset` bytes of join_words(document, first, ..); as `is_end` a
/// place at the border of two words belongs to the earlier one.
std::size_t to_context(const Document& document, std::size_t first, std::size_t offset,
                       bool is_end) {
  std::size_t word = first;
  for (;; ++word) {
    const auto [begin, end] = document.words[word];
    const std::size_t length = end - begin;
    if (offset < length || (is_end && offset == length)) return begin + offset;
    offset -= length + 1;
  }
}

/// Without the white space at its ends, which tokens take along, or consist of.
Span trimmed(std::string_view text, Span span) {
  std::size_t end = span.begin;  // of the last character that is not white space
  for (std::size_t position = span.begin; position < span.end;) {
    const std::size_t begin = position;
    const bool blank = text::is_space(text::next_code_point(text, position));
    if (!blank) end = position;
    if (blank && span.begin == begin) end = span.begin = position;
  }
  return {span.begin, end};
}

NBestEntry make_entry(const Candidate& candidate, const Document& document,
                      const text::Tokenizer& tokenizer) {
  NBestEntry entry;
  entry.start_logit = candidate.start_logit;
  entry.end_logit = candidate.end_logit;
  if (candidate.feature == nullptr) return entry;
  const auto word_of = [&](std::size_t position) {
    const Feature& feature = *candidate.feature;
    return static_cast<std::size_t>(feature.token_to_orig[position - feature.doc_begin]);
  };
  const std::size_t first = word_of(candidate.start);
  if (document.words_are_tokens) {
    const std::size_t last = document.words[word_of(candidate.end)].end;
    const Span span = trimmed(document.context, {document.words[first].begin, last});
    if (span.begin >= span.end) return entry;
    entry.text = document.context.substr(span.begin, span.end - span.begin);
    entry.span = span;
    return entry;
  }
  const std::string original = join_words(document, first, word_of(candidate.end));
  const std::string joined = join_pieces(candidate, tokenizer);
  const auto first_place = find_final_text(joined, original, tokenizer.basic());
  Span place = first_place.value_or(Span{0, original.size()});
  entry.text = original.substr(place.begin, place.end - place.begin);
  const auto before = pieces_before(candidate, document, tokenizer);
  if (first_place && !before.empty())
    place = find_final_text(joined, original, tokenizer.basic(), before).value_or(place);
  entry.span = Span{to_context(document, first, place.begin, false),
                    to_context(document, first, place.end, true)};
  return entry;
}

/// Softmax over the sums of start and end logit.
void set_probabilities(std::vector<NBestEntry>& entries) {
  const auto score = [](const NBestEntry& entry) { return entry.start_logit + entry.end_logit; };
  double largest = score(entries.front());
  for (const NBestEntry& entry : entries) largest = std::max(largest, score(entry));
  double total = 0.0;
  for (NBestEntry& entry : entries) {
    entry.probability = std::exp(score(entry) - largest);
    total += entry.probability;
  }
  for (NBestEntry& entry : entries) entry.probability /= total;
}

}  // namespace

void check(const PredictionOptions& options) {
  if (options.n_best_size < 1 || options.max_answer_length < 1)
    fail("{} {} and {} {} must be at least 1", option_name("n-best"), options.n_best_size,
         option_name("max-answer-length"), options.max_answer_length);
  if (std::isnan(options.null_score_diff_threshold))
    fail("{} is NaN", option_name("null-threshold"));
}

Prediction predict(const Document& document, std::span<const WindowLogits> windows,
                   const text::Tokenizer& tokenizer, const PredictionOptions& options) {
  check(options);
  std::vector<Candidate> candidates;
  Candidate null{.start_logit = kNoCandidateNullOdds};
  for (const WindowLogits& window : windows) {
    check(window, options.allow_nonfinite);
    add_candidates(window, options, candidates);
    const Candidate here{.start_logit = window.start[0], .end_logit = window.end[0]};
    if (std::isfinite(here.score()) && here.score() < null.score()) null = here;
  }
  if (options.version_2 && !windows.empty()) candidates.push_back(null);
  std::ranges::stable_sort(
      candidates, [](const Candidate& a, const Candidate& b) { return a.score() > b.score(); });

  Prediction prediction;
  std::unordered_set<std::string> seen;
  for (const Candidate& candidate : candidates) {
    if (prediction.nbest.size() >= static_cast<std::size_t>(options.n_best_size)) break;
    NBestEntry entry = make_entry(candidate, document, tokenizer);
    const bool null_answer = candidate.feature == nullptr;
    if (entry.text.empty() && !null_answer) continue;
    if (seen.insert(entry.text).second) prediction.nbest.push_back(std::move(entry));
  }
  // The null answer is always in the list, if need be as one entry more.
  if (options.version_2 && !windows.empty() && !seen.contains("")) {
    prediction.nbest.push_back(make_entry(null, document, tokenizer));
  }
  if (prediction.nbest.empty()) prediction.nbest.emplace_back().text = "empty";
  set_probabilities(prediction.nbest);

  const auto best = std::ranges::find_if(
      prediction.nbest, [](const NBestEntry& entry) { return !entry.text.empty(); });
  if (options.version_2) {
    const bool answered = best != prediction.nbest.end() && best->span.has_value();
    prediction.null_odds =
        answered ? null.score() - best->start_logit - best->end_logit : kNoCandidateNullOdds;
    if (!answered || *prediction.null_odds > options.null_score_diff_threshold) return prediction;
  }
  prediction.text = best->text;
  prediction.span = best->span;
  return prediction;
}

}  // namespace bertcl::squad
