// SPDX-License-Identifier: Apache-2.0
// Decoders of WordPiece, byte-level BPE and Unigram.
#include "text/decoder.hpp"

#include <array>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "support/fail.hpp"
#include "text/unicode.hpp"

namespace bertcl::text {
namespace {

std::string replaced(const std::string& text, std::string_view from, std::string_view to) {
  std::string result;
  result.reserve(text.size());
  std::size_t begin = 0;
  for (std::size_t at; (at = text.find(from, begin)) != std::string::npos; begin = at + from.size())
    result.append(text, begin, at - begin).append(to);
  return result.append(text, begin);
}

/// A piece by itself, as `WordPiece` of Hugging Face's tokenizers decodes it: with a space in front
/// where it begins a word, but for some English punctuation. What spans pieces stays: "it ' s".
std::string join_word_pieces(const std::vector<std::string>& tokens) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 10> rules = {
      {{" .", "."},
       {" ?", "?"},
       {" !", "!"},
       {" ,", ","},
       {" ' ", "'"},
       {" n't", "n't"},
       {" 'm", "'m"},
       {" 's", "'s"},
       {" 've", "'ve"},
       {" 're", "'re"}}};
  std::string text;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    std::string piece = i == 0                        ? tokens[i]
                        : tokens[i].starts_with("##") ? tokens[i].substr(2)
                                                      : " " + tokens[i];
    for (const auto& [from, to] : rules) piece = replaced(piece, from, to);
    text += piece;
  }
  return text;
}

/// GPT-2's character of each byte: printable ones stand for themselves, the others for U+0100 on.
const std::unordered_map<char32_t, char>& byte_of_character() {
  static const auto table = [] {
    std::unordered_map<char32_t, char> bytes;
    char32_t next = 0x100;
    for (char32_t byte = 0; byte < 256; ++byte) {
      const bool itself =
          (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
      bytes[itself ? byte : next++] = static_cast<char>(byte);
    }
    return bytes;
  }();
  return table;
}

std::string join_bytes(const std::vector<std::string>& tokens) {
  std::string text;
  for (const std::string& token : tokens)
    for (std::size_t at = 0; at < token.size();) {
      const std::size_t begin = at;
      const auto found = byte_of_character().find(next_code_point(token, at));
      if (found != byte_of_character().end())
        text += found->second;
      else
        text += token.substr(begin, at - begin);
    }
  return text;
}

std::string join_pieces(const std::vector<std::string>& tokens) {
  std::string text;
  for (const std::string& token : tokens) text += token;
  text = replaced(text, "\u2581", " ");
  return text.starts_with(' ') ? text.substr(1) : text;
}

}  // namespace

Decoder::Decoder(std::shared_ptr<const Tokenizer> tokenizer) : tokenizer_(std::move(tokenizer)) {
  const SpecialTokens& special = tokenizer_->special();
  for (const auto* some : {&special.before, &special.after, &special.pair_before,
                           &special.pair_between, &special.pair_after})
    special_.insert(some->begin(), some->end());
  for (const char* name :
       {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "<s>", "</s>", "<pad>", "<unk>", "<mask>"})
    if (const auto id = tokenizer_->find_id(name)) special_.insert(*id);
}

std::string Decoder::operator()(std::span<const std::int64_t> ids, bool skip_special) const {
  std::vector<std::string> tokens;
  for (const std::int64_t id : ids) {
    if (id < 0 || id >= static_cast<std::int64_t>(tokenizer_->vocabulary_size()))
      fail("token id {} is outside the vocabulary of {} tokens", id, tokenizer_->vocabulary_size());
    const auto token = static_cast<std::int32_t>(id);
    if (!skip_special || !special_.contains(token)) tokens.push_back(tokenizer_->token(token));
  }
  switch (tokenizer_->spelling()) {
    case Spelling::word_pieces:
      return join_word_pieces(tokens);
    case Spelling::bytes:
      return join_bytes(tokens);
    case Spelling::pieces:
      break;
  }
  return join_pieces(tokens);
}

}  // namespace bertcl::text
