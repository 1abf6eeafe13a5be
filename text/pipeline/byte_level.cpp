// SPDX-License-Identifier: Apache-2.0
// Bytes to characters (`bytes_to_unicode` of openai/gpt-2 src/encoder.py), and its pattern by hand.
#include "text/pipeline/byte_level.hpp"

#include "text/pipeline/properties.hpp"

namespace bertcl::text {
namespace {

/// Characters of the classes that the pattern has runs of.
enum class Kind { letter, number, space, other };

Kind kind_of(char32_t c) {
  if (is_letter(c)) return Kind::letter;
  if (is_numeric(c)) return Kind::number;
  return is_white_space(c) ? Kind::space : Kind::other;
}

/// Bytes of 's, 't, 're, 've, 'm, 'll or 'd at the beginning of a text; else 0.
std::size_t contraction(std::string_view text) {
  if (text.size() < 2 || text[0] != '\'') return 0;
  const char first = text[1];
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
  const std::string_view two = text.substr(1, 2);
  return two == "re" || two == "ve" || two == "ll" ? 3 : 0;
}

}  // namespace

std::array<char32_t, 256> characters_of_bytes() {
  std::array<char32_t, 256> table{};
  char32_t next = 256;
  for (char32_t byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte != 0xAD);
    table[byte] = printable ? byte : next++;
  }
  return table;
}

void find_gpt2(std::string_view text, std::vector<Match>& matches) {
  const auto kind_at = [&](std::size_t position) {  // of the character there, and its end
    const char32_t c = next_code_point(text, position);
    return std::pair(kind_of(c), position);
  };
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = begin + contraction(text.substr(begin));
    if (end == begin) {
      auto [kind, next] = kind_at(begin);
      if (text[begin] == ' ' && next < text.size()) {  // ` ?` takes it if a run of others follows
        const auto [second, after] = kind_at(next);
        if (second != Kind::space) kind = second, next = after;
      }
      end = next;
      std::size_t last = begin;  // where the last character of a run of spaces begins
      while (end < text.size()) {
        const auto [other, after] = kind_at(end);
        if (other != kind) break;
        last = end;
        end = after;
      }
      // `\s+(?!\S)` leaves the last space before a word to the word.
      if (kind == Kind::space && end < text.size() && last > begin) end = last;
    }
    matches.push_back({static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end), true});
    begin = end;
  }
}

Stage byte_characters() {
  return [table = characters_of_bytes()](Parts& parts) {
    rewrite(parts, [&](Edits& edits) {
      const std::string_view text = edits.text();
      for (std::size_t position = 0; position < text.size();) {
        const auto byte = static_cast<unsigned char>(text[position]);
        if (byte > ' ' && byte < 0x7F) {
          edits.keep(1);
          ++position;
          continue;
        }
        const std::size_t begin = position;
        next_code_point(text, position);
        for (std::size_t i = begin; i < position; ++i)
          edits.put(table[static_cast<unsigned char>(text[i])], i == begin ? 0 : 1);
      }
    });
  };
}

Stage byte_level(bool add_prefix_space, bool use_regex) {
  return [add_prefix_space, use_regex, write_bytes = byte_characters()](Parts& parts) {
    if (add_prefix_space)
      rewrite(parts, [](Edits& edits) {
        if (!edits.text().starts_with(' ')) prepend(edits, " ");
        edits.keep_rest();
      });
    if (use_regex) split(parts, Behavior::isolated, find_gpt2);
    write_bytes(parts);
  };
}

void prepend(Edits& edits, std::string_view characters) {
  if (edits.at_end()) return;
  const std::string_view text = edits.text();
  std::size_t position = 0;
  const char32_t first = next_code_point(text, position);
  bool begun = false;
  for (position = 0; position < characters.size(); begun = true)
    edits.put(next_code_point(characters, position), begun ? 1 : 0);
  if (begun) edits.put(first, 1);
}

}  // namespace bertcl::text
