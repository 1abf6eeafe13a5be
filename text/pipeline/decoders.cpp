// SPDX-License-Identifier: Apache-2.0
// `decode_chain` of the decoders of Hugging Face's tokenizers (src/decoders).
#include "text/pipeline/decoders.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "text/base/unicode.hpp"
#include "text/pipeline/byte_level.hpp"
#include "text/pipeline/pattern.hpp"

namespace bertcl::text {
namespace {

using TokenTexts = std::vector<std::string>;
using DecoderFn = Decoders::value_type;

constexpr std::string_view kMetaspace = "\u2581", kReplacement = "\uFFFD";

std::string replaced(const std::string& text, std::string_view from, std::string_view to) {
  if (from.empty()) return text;
  std::string result;
  result.reserve(text.size());
  std::size_t begin = 0;
  for (std::size_t at; (at = text.find(from, begin)) != std::string::npos; begin = at + from.size())
    result.append(text, begin, at - begin).append(to);
  return result.append(text, begin);
}

std::string joined(const TokenTexts& tokens) {
  std::string text;
  for (const std::string& token : tokens) text += token;
  return text;
}

using Rule = std::pair<std::string_view, std::string_view>;

/// Of clean_up_tokenization() in transformers.
constexpr std::array<Rule, 10> kCleanUpRules = {{{" .", "."},
                                                 {" ?", "?"},
                                                 {" !", "!"},
                                                 {" ,", ","},
                                                 {" ' ", "'"},
                                                 {" n't", "n't"},
                                                 {" 'm", "'m"},
                                                 {" 's", "'s"},
                                                 {" 've", "'ve"},
                                                 {" 're", "'re"}}};

/// With a space in front of what begins a word, but for some English punctuation: in each token by
/// itself, so that what spans tokens stays: "it ' s".
DecoderFn word_piece_decoder(std::string prefix, bool cleans_up) {
  return [prefix = std::move(prefix), cleans_up](TokenTexts& tokens) {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      std::string& token = tokens[i];
      if (i > 0) token = token.starts_with(prefix) ? token.substr(prefix.size()) : " " + token;
      if (!cleans_up) continue;
      token = replaced(cleaned_up(std::move(token)), " do not", " don't");
    }
  };
}

const std::unordered_map<char32_t, char>& byte_of_character() {
  static const auto table = [] {
    std::unordered_map<char32_t, char> bytes;
    for (const char32_t c : characters_of_bytes())
      bytes.emplace(c, static_cast<char>(bytes.size()));
    return bytes;
  }();
  return table;
}

/// The bytes that a token spells; itself if it has other characters.
std::string bytes_of(const std::string& token) {
  std::string bytes;
  for (std::size_t at = 0; at < token.size();) {
    const auto found = byte_of_character().find(next_code_point(token, at));
    if (found == byte_of_character().end()) return token;
    bytes += found->second;
  }
  return bytes;
}

void join_bytes(TokenTexts& tokens) {
  std::string bytes, text;
  for (const std::string& token : tokens) bytes += bytes_of(token);
  for (std::size_t at = 0; at < bytes.size();) append_code_point(text, next_code_point(bytes, at));
  tokens = {std::move(text)};
}

/// The byte of a token such as "<0x0A>".
std::optional<char> fallback_byte(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || !token.ends_with('>')) return std::nullopt;
  std::uint8_t byte = 0;
  const auto [end, error] = std::from_chars(token.data() + 3, token.data() + 5, byte, 16);
  if (error != std::errc() || end != token.data() + 5) return std::nullopt;
  return static_cast<char>(byte);
}

/// Runs of bytes become one token, or U+FFFD for each byte where they are invalid UTF-8.
void gather_bytes(TokenTexts& tokens) {
  TokenTexts result;
  std::string bytes;
  const auto flush = [&] {
    if (!bytes.empty() && !first_ill_formed(bytes))
      result.push_back(bytes);
    else
      result.insert(result.end(), bytes.size(), std::string(kReplacement));
    bytes.clear();
  };
  for (std::string& token : tokens) {
    if (const auto byte = fallback_byte(token)) {
      bytes += *byte;
      continue;
    }
    flush();
    result.push_back(std::move(token));
  }
  flush();
  tokens = std::move(result);
}

void fuse(TokenTexts& tokens) { tokens = {joined(tokens)}; }

/// Takes `character` off the ends of each token, as often as it is there, `begin` and `end` times
/// at most.
DecoderFn strip_decoder(std::string character, std::int64_t begin, std::int64_t end) {
  return [character = std::move(character), begin, end](TokenTexts& tokens) {
    for (std::string& token : tokens) {
      std::string_view rest = token;
      for (std::int64_t i = 0; i < begin && rest.starts_with(character); ++i)
        rest.remove_prefix(character.size());
      for (std::int64_t i = 0; i < end && rest.ends_with(character); ++i)
        rest.remove_suffix(character.size());
      token = std::string(rest);
    }
  };
}

DecoderFn replace_decoder(Pattern pattern, std::string content) {
  return [pattern = std::move(pattern), content = std::move(content)](TokenTexts& tokens) {
    std::size_t bytes = 0;
    for (const std::string& token : tokens) bytes += token.size();
    Pattern::Search search(pattern, bytes);
    for (std::string& token : tokens) {
      if (token.empty()) continue;
      std::vector<Match> matches;
      search.find(token, matches);
      std::string result;
      for (const auto& [begin, end, found] : matches)
        result +=
            found ? std::string_view(content) : std::string_view(token).substr(begin, end - begin);
      token = std::move(result);
    }
  };
}

/// What the pre-tokenizer put before a text goes from the first token.
DecoderFn metaspace_decoder(std::string replacement, bool prepended) {
  return [replacement = std::move(replacement), prepended](TokenTexts& tokens) {
    for (std::size_t i = 0; i < tokens.size(); ++i)
      tokens[i] = replaced(tokens[i], replacement, i == 0 && prepended ? "" : " ");
  };
}

DecoderFn suffix_decoder(std::string suffix) {
  return [suffix = std::move(suffix)](TokenTexts& tokens) {
    for (std::size_t i = 0; i < tokens.size(); ++i)
      tokens[i] = replaced(tokens[i], suffix, i + 1 == tokens.size() ? "" : " ");
  };
}

/// False: one is not supported.
bool add_decoders(const JsonNode& node, Decoders& decoders) {
  const std::string& type = node.at("type").string();
  if (type == "Sequence") {
    bool known = true;
    node.at("decoders").each([&](const JsonNode& each) {
      known = add_decoders(each, decoders) && known;
    });
    return known;
  }
  if (type == "WordPiece") {
    decoders.push_back(word_piece_decoder(node.at("prefix").string(), node.flag("cleanup", true)));
  } else if (type == "ByteLevel") {
    decoders.emplace_back(join_bytes);
  } else if (type == "ByteFallback") {
    decoders.emplace_back(gather_bytes);
  } else if (type == "Fuse") {
    decoders.emplace_back(fuse);
  } else if (type == "Strip") {
    const JsonNode content = node.at("content");
    if (count_code_points(content.string()) != 1)
      content.fail("is \"{}\"; expected one character", content.string());
    decoders.push_back(
        strip_decoder(content.string(), node.at("start").integer(), node.at("stop").integer()));
  } else if (type == "Replace") {
    decoders.push_back(
        replace_decoder(Pattern::of(node.at("pattern")), node.at("content").string()));
  } else if (type == "Metaspace") {
    const auto scheme = node.find("prepend_scheme");
    decoders.push_back(metaspace_decoder(
        node.at("replacement").string(),
        node.flag("add_prefix_space", true) && !(scheme && scheme->string() == "never")));
  } else if (type == "BPEDecoder") {
    decoders.push_back(suffix_decoder(node.at("suffix").string()));
  } else {
    return false;
  }
  return true;
}

}  // namespace

std::string cleaned_up(std::string text) {
  for (const auto& [from, to] : kCleanUpRules) text = replaced(text, from, to);
  return text;
}

Decoders decoders_of(Spelling spelling) {
  switch (spelling) {
    case Spelling::word_pieces:
      return {word_piece_decoder("##", true)};
    case Spelling::bytes:
      return {join_bytes};
    case Spelling::pieces:
      break;
  }
  return {metaspace_decoder(std::string(kMetaspace), false), gather_bytes, fuse,
          strip_decoder(" ", 1, 0)};
}

std::optional<Decoders> read_decoders(const JsonNode& node) {
  Decoders decoders;
  return add_decoders(node, decoders) ? std::optional(std::move(decoders)) : std::nullopt;
}

std::string decode(const Decoders& decoders, std::vector<std::string> tokens) {
  for (const auto& decoder : decoders) decoder(tokens);
  return joined(tokens);
}

}  // namespace bertcl::text
