// SPDX-License-Identifier: Apache-2.0
// What the tests of this folder share: tokenizers, a small data set, a model.
#pragma once
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "squad/batch.hpp"
#include "squad/predictions.hpp"
#include "tests/support/files.hpp"
#include "tests/support/matchers.hpp"
#include "tests/support/scratch_folder.hpp"
#include "text/tokenizer.hpp"

namespace bertcl::squad {

inline nlohmann::json read_shared(const std::string& relative) {
  std::ifstream file(tests::shared_file(relative));
  return nlohmann::json::parse(file);
}

/// The tokenizer of the model that the project carries.
inline const text::Tokenizer& bert_tokenizer() {
  static const auto tokenizer =
      text::Tokenizer::from_file(tests::source_file("models/minilm-l6-squad/vocab.txt"));
  return tokenizer;
}

/// Letters a..z, each also as continuation, and some words: every lower-case word has pieces.
inline const text::Tokenizer& letter_tokenizer() {
  static const auto tokenizer = [] {
    std::vector<std::string> tokens = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", ".", ",", "?", "'"};
    for (char c = 'a'; c <= 'z'; ++c) {
      tokens.push_back(std::string(1, c));
      tokens.push_back(std::string("##") + c);
    }
    for (const char* word : {"who", "the", "cat", "dog", "sat", "on", "mat"})
      tokens.push_back(word);
    return text::Tokenizer::from_tokens(tokens);
  }();
  return tokenizer;
}

using tests::ScratchFile;

/// As run_squad.py has it.
inline std::string get_final_text(std::string_view prediction, std::string_view original,
                                  const text::BasicTokenizer& tokenizer) {
  const auto [begin, end] =
      find_final_text(prediction, original, tokenizer).value_or(Span{0, original.size()});
  return std::string(original.substr(begin, end - begin));
}

/// Logits in [-8, 8) that depend on nothing but the tokens of the row and the position.
inline std::vector<float> hash_model(const Batch& batch) {
  std::vector<float> logits;
  for (std::size_t row = 0; row < batch.rows(); ++row) {
    const auto begin = static_cast<std::size_t>(batch.offsets[row]);
    const auto end = static_cast<std::size_t>(batch.offsets[row + 1]);
    std::uint64_t hash = 14695981039346656037ULL;
    for (std::size_t at = begin; at < end; ++at)
      hash = (hash ^ static_cast<std::uint64_t>(batch.ids[at] * 2 + batch.token_type_ids[at])) *
             1099511628211ULL;
    for (std::size_t i = 0; begin + i < end; ++i) {
      const std::uint64_t value = (hash ^ static_cast<std::uint64_t>(i)) * 0x9E3779B97F4A7C15ULL;
      logits.push_back(static_cast<float>(value >> 54) / 64.0F - 8.0F);
      logits.push_back(static_cast<float>((value >> 40) & 1023) / 64.0F - 8.0F);
    }
  }
  return logits;
}

}  // namespace bertcl::squad
