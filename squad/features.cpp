// SPDX-License-Identifier: Apache-2.0
// Sliding windows over a document, and for each token the window with most context around it.
#include "squad/features.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "support/fail.hpp"
#include "support/option_name.hpp"
#include "text/base/unicode.hpp"
#include "text/truncation.hpp"

namespace bertcl::squad {
namespace {

struct Window {
  std::size_t begin;
  std::size_t length;
};

/// The separators of the reference code, which are neither str.split()'s nor the tokenizer's.
bool splits_words(char32_t c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == 0x202F;
}

std::vector<Window> make_windows(std::size_t pieces, std::size_t room, std::size_t stride) {
  std::vector<Window> windows;
  for (std::size_t begin = 0; begin < pieces;) {
    const std::size_t length = std::min(pieces - begin, room);
    windows.push_back({begin, length});
    if (begin + length == pieces) break;
    begin += std::min(length, stride);
  }
  return windows;
}

/// [pieces] index of the window in which each has the most context; the first of equals.
std::vector<std::size_t> best_windows(const std::vector<Window>& windows, std::size_t pieces) {
  std::vector<std::size_t> best(pieces);
  std::vector<double> best_scores(pieces, -1.0);
  for (std::size_t i = 0; i < windows.size(); ++i) {
    const auto [begin, length] = windows[i];
    for (std::size_t left = 0; left < length; ++left) {
      const std::size_t right = length - 1 - left;
      const double score =
          static_cast<double>(std::min(left, right)) + 0.01 * static_cast<double>(length);
      if (score <= best_scores[begin + left]) continue;
      best_scores[begin + left] = score;
      best[begin + left] = i;
    }
  }
  return best;
}

}  // namespace

Document make_token_document(std::string_view context, const text::Tokenizer& tokenizer) {
  Document document;
  document.context = context;
  document.words_are_tokens = true;
  text::Encoding encoding = tokenizer.encode_with_spans(context);
  document.piece_ids = std::move(encoding.ids);
  document.token_words = std::move(encoding.words);
  for (const auto& [begin, end] : encoding.spans) {
    document.piece_to_word.push_back(static_cast<std::int32_t>(document.words.size()));
    document.words.push_back({begin, end});
  }
  return document;
}

Document make_document(std::string_view context, const text::Tokenizer& tokenizer) {
  if (!tokenizer.is_bert()) return make_token_document(context, tokenizer);
  Document document;
  document.context = context;
  bool open = false;
  for (std::size_t position = 0; position < context.size();) {
    const std::size_t begin = position;
    const char32_t c = text::next_code_point(context, position);
    if (splits_words(c)) {
      open = false;
      continue;
    }
    if (!open) document.words.push_back({begin, begin});
    document.words.back().end = position;
    open = true;
  }
  for (std::size_t word = 0; word < document.words.size(); ++word) {
    const auto [begin, end] = document.words[word];
    for (const std::int32_t id : tokenizer.encode(context.substr(begin, end - begin))) {
      document.piece_ids.push_back(id);
      document.piece_to_word.push_back(static_cast<std::int32_t>(word));
    }
  }
  return document;
}

std::vector<Feature> make_features(const Document& document, std::string_view question,
                                   const text::Tokenizer& tokenizer, const FeatureOptions& options,
                                   std::size_t example_index) {
  if (options.max_query_length < 0 || options.doc_stride < 1) {
    fail("{} {} must be at least 0 and {} {} at least 1", option_name("max-query-length"),
         options.max_query_length, option_name("doc-stride"), options.doc_stride);
  }
  std::vector<std::int32_t> query = tokenizer.encode(question);
  query.resize(std::min(query.size(), static_cast<std::size_t>(options.max_query_length)));
  const text::SpecialTokens& special = tokenizer.special();
  const auto room = static_cast<std::int64_t>(options.max_seq_length) -
                    static_cast<std::int64_t>(query.size() + special.pair_count());
  if (room < 1) {
    throw NoRoomForContext(fmt::format(
        "{} {} leaves no room for the context beside a question of {} word pieces and {} "
        "special tokens; raise it or lower {}",
        option_name("max-seq-length"), options.max_seq_length, query.size(), special.pair_count(),
        option_name("max-query-length")));
  }
  const std::vector<Window> windows =
      make_windows(document.piece_ids.size(), static_cast<std::size_t>(room),
                   static_cast<std::size_t>(options.doc_stride));
  if (options.max_windows > 0 && windows.size() > options.max_windows)
    throw TooManyWindows(fmt::format(
        "the context makes {} windows, the limit is {}; shorten it or let windows overlap less "
        "(doc_stride)",
        windows.size(), options.max_windows));
  const std::vector<std::size_t> best = best_windows(windows, document.piece_ids.size());
  std::vector<Feature> features;
  features.reserve(windows.size());
  for (std::size_t i = 0; i < windows.size(); ++i) {
    const auto [begin, length] = windows[i];
    Feature feature;
    feature.example_index = example_index;
    text::EncodedInput all = text::add_special_tokens(
        special, query, text::Tokens(document.piece_ids).subspan(begin, length),
        query.size() + length, false);
    feature.input_ids = std::move(all.ids);
    feature.second = all.second;
    feature.doc_begin = special.pair_before.size() + query.size() + special.pair_between.size();
    feature.first_piece = begin;
    const auto first = static_cast<std::ptrdiff_t>(begin);
    const auto last = static_cast<std::ptrdiff_t>(begin + length);
    feature.token_to_orig.assign(document.piece_to_word.begin() + first,
                                 document.piece_to_word.begin() + last);
    feature.is_max_context.resize(length);
    for (std::size_t k = 0; k < length; ++k) feature.is_max_context[k] = best[begin + k] == i;
    features.push_back(std::move(feature));
  }
  return features;
}

std::vector<Feature> make_features(const Dataset& dataset, const text::Tokenizer& tokenizer,
                                   const FeatureOptions& options) {
  std::vector<Feature> features;
  Document document;
  std::size_t context = dataset.contexts.size();
  for (std::size_t i = 0; i < dataset.questions.size(); ++i) {
    const Question& question = dataset.questions[i];
    if (question.context != context) {
      context = question.context;
      document = make_document(dataset.contexts[context], tokenizer);
    }
    for (Feature& feature : make_features(document, question.text, tokenizer, options, i)) {
      features.push_back(std::move(feature));
    }
  }
  return features;
}

}  // namespace bertcl::squad
