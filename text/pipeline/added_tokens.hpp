// SPDX-License-Identifier: Apache-2.0
// Tokens that are found in a text before it is split into words.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/base/json_node.hpp"
#include "text/pipeline/parts.hpp"

namespace bertcl::text {

struct AddedToken {
  std::string content;
  std::int32_t id = 0;
  bool single_word = false;                      ///< not inside a word
  bool strip_left = false, strip_right = false;  ///< takes white space beside it along
  bool normalized = true;  ///< found in the normalized text, itself normalized
  bool special = false;    ///< stands for no text
};

AddedToken read_added_token(const JsonNode& node);

class AddedTokens {
 public:
  AddedTokens() = default;
  /// `normalizer` may be empty.
  AddedTokens(std::vector<AddedToken> tokens, const Stage& normalizer);

  /// Sets the tokens of one kind apart: those of the text as it is, or of the normalized text.
  void find(Parts& parts, bool normalized) const;

  const std::vector<AddedToken>& tokens() const { return tokens_; }

 private:
  struct Found {
    std::size_t begin, end;
    const AddedToken* token;
  };
  /// What is searched for, by first byte, longest first.
  struct Entry {
    std::string text;
    std::size_t token;
  };
  struct Table {
    std::array<std::vector<Entry>, 256> by_byte;
    bool empty = true;
  };

  const Entry* longest_at(const Table& table, std::string_view text, std::size_t position) const;
  std::vector<Found> search(const Table& table, std::string_view text) const;

  std::vector<AddedToken> tokens_;
  std::array<Table, 2> tables_;  // of the text as it is, and normalized
};

}  // namespace bertcl::text
