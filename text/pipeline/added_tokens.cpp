// SPDX-License-Identifier: Apache-2.0
// Search for added tokens: the leftmost first, of several there the longest.
#include "text/pipeline/added_tokens.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "text/pipeline/properties.hpp"

namespace bertcl::text {
namespace {

bool ends_with_word(std::string_view text) {
  if (text.empty()) return false;
  std::size_t position = character_begin(text, text.size() - 1);
  return is_regex_word(next_code_point(text, position));
}

bool starts_with_word(std::string_view text) {
  std::size_t position = 0;
  return !text.empty() && is_regex_word(next_code_point(text, position));
}

std::size_t without_spaces_at_end(std::string_view text) {
  std::size_t end = text.size();
  while (end > 0) {
    const std::size_t begin = character_begin(text, end - 1);
    std::size_t position = begin;
    if (!is_white_space(next_code_point(text, position))) break;
    end = begin;
  }
  return end;
}

std::size_t spaces_at_begin(std::string_view text) {
  std::size_t end = 0;
  for (std::size_t position = 0; position < text.size(); end = position)
    if (!is_white_space(next_code_point(text, position))) break;
  return end;
}

}  // namespace

AddedToken read_added_token(const JsonNode& node) {
  AddedToken token;
  token.content = node.at("content").string();
  token.single_word = node.flag("single_word", false);
  token.strip_left = node.flag("lstrip", false);
  token.strip_right = node.flag("rstrip", false);
  token.special = node.flag("special", false);
  // Files that leave it out mean that special tokens are found as they are.
  token.normalized = node.flag("normalized", !token.special);
  return token;
}

AddedTokens::AddedTokens(std::vector<AddedToken> tokens, const Stage& normalizer)
    : tokens_(std::move(tokens)) {
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    const AddedToken& token = tokens_[i];
    Parts parts(token.content);
    if (token.normalized && normalizer) normalizer(parts);
    const std::string text(parts.text_of(parts.parts.front()));
    if (text.empty()) continue;
    Table& table = tables_[token.normalized ? 1 : 0];
    table.empty = false;
    table.by_byte[static_cast<unsigned char>(text[0])].push_back({text, i});
  }
  for (Table& table : tables_)
    for (std::vector<Entry>& entries : table.by_byte)
      std::ranges::stable_sort(
          entries, [](const Entry& a, const Entry& b) { return a.text.size() > b.text.size(); });
}

const AddedTokens::Entry* AddedTokens::longest_at(const Table& table, std::string_view text,
                                                  std::size_t position) const {
  for (const Entry& entry : table.by_byte[static_cast<unsigned char>(text[position])])
    if (text.substr(position).starts_with(entry.text)) return &entry;
  return nullptr;
}

std::vector<AddedTokens::Found> AddedTokens::search(const Table& table,
                                                    std::string_view text) const {
  std::vector<Found> all;
  std::size_t free = 0;  // after the last token and the white space that it took
  for (std::size_t position = 0; position < text.size();) {
    const Entry* entry = longest_at(table, text, position);
    if (entry == nullptr) {
      ++position;
      continue;
    }
    std::size_t begin = position, end = position + entry->text.size();
    position = end;
    const AddedToken& token = tokens_[entry->token];
    if (token.single_word &&
        (ends_with_word(text.substr(0, begin)) || starts_with_word(text.substr(end))))
      continue;
    if (token.strip_left) begin = std::max(without_spaces_at_end(text.substr(0, begin)), free);
    if (token.strip_right) end += spaces_at_begin(text.substr(end));
    all.push_back({begin, end, &token});
    free = end;
  }
  return all;
}

void AddedTokens::find(Parts& parts, bool normalized) const {
  const Table& table = tables_[normalized ? 1 : 0];
  std::vector<Part> result;
  for (const Part& part : parts.parts) {
    if (part.token >= 0) {
      result.push_back(part);
      continue;
    }
    const std::string_view text = parts.text_of(part);
    const auto add = [&](std::size_t from, std::size_t to, std::int32_t token) {
      if (from >= to) return;
      const std::uint32_t begin = part.begin + static_cast<std::uint32_t>(from);
      result.push_back(
          {begin, part.begin + static_cast<std::uint32_t>(to), parts.spans[begin].begin, token});
    };
    std::size_t last = 0;
    if (!table.empty) {
      for (const auto& [begin, end, token] : search(table, text)) {
        add(last, begin, -1);
        add(begin, end, token->id);
        last = end;
      }
    }
    add(last, text.size(), -1);
  }
  parts.parts = std::move(result);
}

}  // namespace bertcl::text
