// SPDX-License-Identifier: Apache-2.0
// Turns question and context into the token windows of a BERT question-answering model.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "bertcl/error.hpp"
#include "squad/dataset.hpp"
#include "text/tokenizer.hpp"

namespace bertcl::squad {

/// A context that makes more windows than FeatureOptions::max_windows.
struct TooManyWindows : Error {
  using Error::Error;
};

/// The question leaves no room for the context within FeatureOptions::max_seq_length.
struct NoRoomForContext : Error {
  using Error::Error;
};

struct FeatureOptions {
  int max_seq_length = 384;     ///< tokens of a window with [CLS] and both [SEP]
  int doc_stride = 128;         ///< step between windows (Hugging Face: their overlap)
  int max_query_length = 64;    ///< word pieces of the question that are kept
  std::size_t max_windows = 0;  ///< of a context and a question; 0: any number
};

/// Bytes [begin, end) of a UTF-8 text.
struct Span {
  std::size_t begin = 0;
  std::size_t end = 0;
  friend bool operator==(const Span&, const Span&) = default;
};

/// A context, split once for all its questions. Refers to the text, which must outlive it.
struct Document {
  std::string_view context;
  /// Split at space, \t, \r, \n, U+202F ("doc_tokens"); or what each token stands for.
  std::vector<Span> words;
  std::vector<std::int32_t> piece_ids;      ///< tokens of all words
  std::vector<std::int32_t> piece_to_word;  ///< [piece_ids] word of each token
  bool words_are_tokens = false;            ///< by make_token_document()
  /// [words] then, which of the tokenizer's words a token belongs to (text::Encoding::words).
  std::vector<std::uint32_t> token_words;
};

/// One window: [CLS] question [SEP] part of the document [SEP], or what stands for them, not
/// padded.
struct Feature {
  std::size_t example_index = 0;            ///< question within the data set
  std::vector<std::int32_t> input_ids;      ///< [length]
  std::size_t doc_begin = 0;                ///< position of the first document token
  std::size_t first_piece = 0;              ///< which of Document::piece_ids that is
  std::size_t second = 0;                   ///< token types are 0 before it and 1 from it
  std::vector<std::int32_t> token_to_orig;  ///< [doc_length] word of each document token
  std::vector<bool> is_max_context;         ///< [doc_length] no other window shows more around it

  std::size_t length() const { return input_ids.size(); }
  std::size_t doc_length() const { return token_to_orig.size(); }
  bool in_document(std::size_t position) const {
    return position >= doc_begin && position < doc_begin + doc_length();
  }
};

/// A window and its document.
struct QuestionWindow {
  std::shared_ptr<const Document> document;  ///< for all its windows
  Feature feature;
};

/// The document for BERT's tokenizer; for others make_token_document().
Document make_document(std::string_view context, const text::Tokenizer& tokenizer);

/// Each token is a word, since what it stands for is known. Throws Error with the tokenizer of a
/// vocab.txt; see text::Tokenizer::as_tokenizer_json().
Document make_token_document(std::string_view context, const text::Tokenizer& tokenizer);

/// Windows over `document` for one question, as `convert_example_to_features` of
/// NVIDIA/TensorRT demo/BERT data_processing.py. A document without word pieces has none.
/// Throws NoRoomForContext, TooManyWindows, and Error on other options.
std::vector<Feature> make_features(const Document& document, std::string_view question,
                                   const text::Tokenizer& tokenizer, const FeatureOptions& options,
                                   std::size_t example_index = 0);

/// All windows of all questions, in the order of the data set.
std::vector<Feature> make_features(const Dataset& dataset, const text::Tokenizer& tokenizer,
                                   const FeatureOptions& options);

}  // namespace bertcl::squad
