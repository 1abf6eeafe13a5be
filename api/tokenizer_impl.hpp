// SPDX-License-Identifier: Apache-2.0
// What a public tokenizer holds, for the files that need it.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "api/boundary.hpp"
#include "bertcl/sequences.hpp"
#include "text/tokenizer.hpp"

namespace bertcl {

struct Tokenizer::Impl {
  explicit Impl(text::Tokenizer read)
      : tokenizer(read.as_tokenizer_json()), squad(std::move(read)) {}

  text::Tokenizer tokenizer;
  text::Tokenizer squad;  ///< for questions and contexts; differs where a vocab.txt was read

  /// The first text, and the second one where there is one, with their special tokens.
  void add(Sequences& to, std::string_view first, const std::string* second,
           std::int64_t max_length) const;
};

struct TokenizerAccess {
  static const text::Tokenizer& of(const Tokenizer& tokenizer) {
    return held(tokenizer.impl_, "tokenizer").tokenizer;
  }
  static const text::Tokenizer& of_squad(const Tokenizer& tokenizer) {
    return held(tokenizer.impl_, "tokenizer").squad;
  }
};

}  // namespace bertcl
