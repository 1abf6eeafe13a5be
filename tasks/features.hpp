// SPDX-License-Identifier: Apache-2.0
// Turns texts into the token sequences of a BERT model.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/batch.hpp"
#include "text/tokenizer.hpp"
#include "text/truncation.hpp"

namespace bertcl::squad {
struct QuestionWindow;
}

namespace bertcl::tasks {

/// [CLS] text [SEP], or [CLS] text [SEP] text [SEP]; not padded.
struct Sequence : text::EncodedInput {
  std::vector<std::size_t> places = {};  ///< positions that are scored: words, or masked tokens
  /// [places] which word of the sentence stands there, or which of the hidden tokens of the text.
  std::vector<std::size_t> words = {};
  std::vector<std::int32_t> targets = {};  ///< [places] what stood at a masked position
  std::size_t part = 0;  ///< which of the texts or windows of its item, where it has several
  std::shared_ptr<const squad::QuestionWindow> window = {};  ///< of a question

  std::size_t length() const { return ids.size(); }
};

std::vector<text::Row> rows_of(std::span<const Sequence> sequences);

/// Word pieces that fit beside `specials` special tokens. Throws Error if there are none.
std::size_t room(int max_length, std::size_t specials);

/// A text as sentence-transformers prepares it for a vector: lower-cased where the model's files
/// say so, but for the special tokens in it.
std::string embedded_text(std::string_view text, bool lower_case, const text::Tokenizer& tokenizer);

// All throw Error if `max_length` leaves no room for a text.

/// A text, truncated on the side that text::Tokenizer::truncates_left() tells, as Hugging Face does
/// it.
Sequence encode_text(std::string_view text, const text::Tokenizer& tokenizer, int max_length);

/// The same of a text that is tokenized already; `truncates_left` instead of the tokenizer's.
Sequence encode_pieces(text::Tokens pieces, const text::Tokenizer& tokenizer, int max_length,
                       std::optional<bool> truncates_left = {});

/// encode_text() of embedded_text(); `part` says which text of its item it is.
Sequence encode_embedded(std::string_view text, bool lower_case, std::size_t part,
                         const text::Tokenizer& tokenizer, int max_length);

/// The whole text in as few sequences as it needs, whose lengths differ by at most one token.
std::vector<Sequence> encode_windows(std::string_view text, const text::Tokenizer& tokenizer,
                                     int max_length);

/// Two texts; the longer one loses word pieces, and so does the other once they are equal
/// (text::kept_of_pair); on the same side.
Sequence encode_pair(std::string_view first, std::string_view second,
                     const text::Tokenizer& tokenizer, int max_length);
Sequence encode_pair(text::Tokens first, text::Tokens second, const text::Tokenizer& tokenizer,
                     int max_length, std::optional<bool> truncates_left = {});

/// encode_text() or, of two texts, encode_pair().
Sequence encode_text(std::string_view text, const std::optional<std::string>& second,
                     const text::Tokenizer& tokenizer, int max_length);

/// A sentence that is given in words; the label of a word is that at its first word piece (BERT,
/// section 5.3). A sentence that is too long gives several sequences, each of whole words; a word
/// longer than a sequence is truncated. A word without word pieces is in no sequence.
std::vector<Sequence> encode_words(std::span<const std::string> words,
                                   const text::Tokenizer& tokenizer, int max_length);

/// A text with 15 % of its tokens hidden, in as many sequences as it needs, as
/// `create_masked_lm_predictions` of google-research/bert create_pretraining_data.py: of those
/// chosen, 80 % become [MASK], 10 % stay, 10 % become any token. `seed` alone decides which; the
/// result is the same on every machine. Throws Error if the vocabulary has no [MASK].
std::vector<Sequence> encode_masked(std::string_view text, const text::Tokenizer& tokenizer,
                                    int max_length, std::uint64_t seed);

}  // namespace bertcl::tasks
