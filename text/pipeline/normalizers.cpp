// SPDX-License-Identifier: Apache-2.0
// Normalizers that go from character to character, and the reading of all of them.
#include "text/pipeline/normalizers.hpp"

#include <unicode/uchar.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "text/pipeline/byte_level.hpp"
#include "text/pipeline/pattern.hpp"
#include "text/pipeline/properties.hpp"

namespace bertcl::text {
namespace {

/// For rules that need no state: edit_character(edits, character, bytes).
template <auto edit_character>
void rewrite_characters(Parts& parts) {
  rewrite(parts, [&](Edits& edits) {
    const std::string_view text = edits.text();
    for (std::size_t position = 0; position < text.size();) {
      const std::size_t begin = position;
      const char32_t c = next_code_point(text, position);
      edit_character(edits, c, position - begin);
    }
  });
}

/// str.to_lowercase() of Rust for one character: the only one that gives two is U+0130.
void put_lower(Edits& edits, char32_t c, std::size_t bytes) {
  const auto lower = static_cast<char32_t>(u_tolower(static_cast<UChar32>(c)));
  if (c == 0x130) {
    edits.put('i', 0);
    edits.put(0x307, 1);
  } else if (lower == c) {
    edits.keep(bytes);
  } else {
    edits.put(lower, 0);
  }
}

template <auto is>
void put_unless(Edits& edits, char32_t c, std::size_t bytes) {
  is(c) ? edits.skip(bytes) : edits.keep(bytes);
}

void strip_accents(Parts& parts) {
  if (!is_ascii(parts.text)) rewrite_characters<put_unless<is_mark_unicode9>>(parts);
}

Stage strip_normalizer(bool left, bool right) {
  return [left, right](Parts& parts) {
    rewrite(parts, [&](Edits& edits) {
      const std::string_view text = edits.text();
      std::size_t begin = left ? text.size() : 0, end = right ? begin : text.size();
      bool seen = !left;
      for (std::size_t position = 0; position < text.size();) {
        const std::size_t start = position;
        if (is_white_space(next_code_point(text, position))) continue;
        if (!seen) begin = start;
        seen = true;
        if (right) end = position;
      }
      if (begin >= end) return;
      edits.skip(begin);
      edits.keep(end - begin);
    });
  };
}

Stage replace_normalizer(Pattern pattern, std::string content) {
  return [pattern = std::move(pattern), content = std::move(content)](Parts& parts) {
    Pattern::Search search(pattern, parts.text.size());
    rewrite(parts, [&](Edits& edits) {
      std::vector<Match> matches;
      if (!edits.at_end()) search.find(edits.text(), matches);
      for (const auto& [begin, end, found] : matches) {
        if (found) {
          edits.skip(end - begin);
          edits.put_after(content);
        } else {
          edits.keep(end - begin);
        }
      }
    });
  };
}

/// `Nmt`: the rules of SentencePiece's nmt_nfkc without NFKC.
void put_nmt(Edits& edits, char32_t c, std::size_t bytes) {
  if ((c >= 1 && c <= 8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F || c == 0x8F ||
      c == 0x9F) {
    edits.skip(bytes);
  } else if (c == 9 || c == 0xA || c == 0xC || c == 0xD || c == 0x1680 ||
             (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
             c == 0xFEFF || c == 0xFFFD) {
    edits.put(' ', 0);
  } else {
    edits.keep(bytes);
  }
}

void put_clean(Edits& edits, char32_t c, std::size_t bytes) {
  if (c > ' ' && c < 0x7F) return edits.keep(1);
  const bool blank = c == '\t' || c == '\n' || c == '\r';
  if (!blank && (c == 0 || c == 0xFFFD || is_other_unicode8(c))) return edits.skip(bytes);
  blank || is_white_space(c) ? edits.put(' ', 0) : edits.keep(bytes);
}

void put_apart(Edits& edits, char32_t c, std::size_t bytes) {
  if (!is_ideograph_of_library(c)) return edits.keep(bytes);
  edits.put(' ', 0);
  edits.put(c, 1);
  edits.put(' ', 1);
}

Stage bert_normalizer(const JsonNode& node) {
  const bool cleans = node.flag("clean_text", true);
  const bool splits_cjk = node.flag("handle_chinese_chars", true);
  const bool lower_cases = node.flag("lowercase", true);
  const bool strips = node.flag("strip_accents", lower_cases);
  return [=, decompose = unicode_normalizer(Normalization::nfd)](Parts& parts) {
    if (cleans) rewrite_characters<put_clean>(parts);
    const bool ascii = is_ascii(parts.text);
    if (splits_cjk && !ascii) rewrite_characters<put_apart>(parts);
    if (strips && !ascii) {
      decompose(parts);
      rewrite_characters<put_unless<is_nonspacing_mark_unicode8>>(parts);
    }
    if (lower_cases) lower_case(parts);
  };
}

/// Fails at the node.
std::string decode_base64(const JsonNode& node) {
  static constexpr std::string_view digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string_view text = node.string();
  while (text.ends_with('=')) text.remove_suffix(1);
  std::string bytes;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const std::size_t digit = digits.find(c);
    if (digit == digits.npos) node.fail("is not base64: it has the character '{}'", c);
    bits = bits << 6 | static_cast<std::uint32_t>(digit);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> count & 0xFF);
  }
  return bytes;
}

}  // namespace

void lower_case(Parts& parts) { rewrite_characters<put_lower>(parts); }

Stage read_normalizer(const JsonNode& node) {
  const std::string& type = node.at("type").string();
  if (type == "Sequence") return sequence_of(node.at("normalizers"), read_normalizer);
  if (type == "BertNormalizer") return bert_normalizer(node);
  if (type == "NFC") return unicode_normalizer(Normalization::nfc);
  if (type == "NFD") return unicode_normalizer(Normalization::nfd);
  if (type == "NFKC") return unicode_normalizer(Normalization::nfkc);
  if (type == "NFKD") return unicode_normalizer(Normalization::nfkd);
  if (type == "Lowercase") return lower_case;
  if (type == "StripAccents") return strip_accents;
  if (type == "Strip")
    return strip_normalizer(node.flag("strip_left", true), node.flag("strip_right", true));
  if (type == "Prepend")
    return [text = node.at("prepend").string()](Parts& parts) {
      rewrite(parts, [&](Edits& edits) { prepend(edits, text), edits.keep_rest(); });
    };
  if (type == "Replace")
    return replace_normalizer(Pattern::of(node.at("pattern")), node.at("content").string());
  if (type == "Nmt") return rewrite_characters<put_nmt>;
  if (type == "ByteLevel") return byte_characters();
  if (type == "Precompiled") {
    const JsonNode charsmap = node.at("precompiled_charsmap");
    return charsmap_normalizer(decode_base64(charsmap), charsmap.path());
  }
  node.fail(
      "has unsupported type '{}' (supported: BertNormalizer, ByteLevel, Lowercase, NFC, NFD, "
      "NFKC, NFKD, Nmt, Precompiled, Prepend, Replace, Sequence, Strip, StripAccents)",
      type);
}

Stage sequence_of(const JsonNode& nodes, Stage (*read)(const JsonNode&)) {
  std::vector<Stage> stages;
  nodes.each([&](const JsonNode& node) { stages.push_back(read(node)); });
  return [stages = std::move(stages)](Parts& parts) {
    for (const Stage& stage : stages) stage(parts);
  };
}

}  // namespace bertcl::text
