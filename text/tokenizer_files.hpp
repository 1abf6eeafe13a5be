// SPDX-License-Identifier: Apache-2.0
// Tokenizers of older files, as the document that transformers converts them to.
#pragma once
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>

#include "text/tokenizer.hpp"

namespace bertcl::text {

/// What to do with files that are not read.
inline constexpr const char* kSaveAsJson =
    "save the tokenizer as tokenizer.json by transformers: "
    "AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER)";

/// Throws Error if tokenizer_config.json or config.json beside the vocab.txt `path` names a class
/// whose tokenizer is not BERT's: others have other special tokens, or split texts in another way.
void check_word_pieces(const std::filesystem::path& path);

/// A SentencePiece model is a protobuf message that begins with its pieces.
bool is_sentence_piece(std::string_view content);

/// The tokenizer.json of XLM-RoBERTa with the pieces of a SentencePiece model: its ids are those of
/// the model plus one, after <s>, <pad>, </s> and <unk>, with <mask> at the end
/// (`XLMRobertaConverter` of transformers 5.23.0). Throws Error if the model is damaged, not of
/// type unigram, or of another family: its first pieces are others, or tokenizer_config.json or
/// config.json beside `path` names another class. With the tokens that files beside it add
/// (add_tokens_beside()).
nlohmann::json document_of_sentence_piece(const std::string& content,
                                          const std::filesystem::path& path);

/// The tokenizer.json of RoBERTa with a vocab.json, whose content is `vocabulary`, and merges.txt
/// beside `path`. Throws Error if merges.txt is damaged, or if the vocabulary lacks <s>, <pad>,
/// </s>, <unk> or <mask>, or a file beside it names another class: other models split texts in
/// another way. Added tokens as above.
nlohmann::json document_of_merges(nlohmann::json vocabulary, const std::filesystem::path& path);

/// The tokenizer.json of BERT with the tokens of a vocab.txt; needs [UNK], [CLS] and [SEP].
nlohmann::json document_of_vocabulary(std::span<const std::string> tokens,
                                      const TokenizerOptions& options);

}  // namespace bertcl::text
