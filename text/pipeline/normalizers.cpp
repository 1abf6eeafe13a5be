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
template <typename EditCharacter>
void rewrite_characters(Parts& parts, const EditCharacter& edit_character) {
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

class LowercaseStage : public Stage {
 public:
  void apply(Parts& parts) const override { rewrite_characters(parts, put_lower); }
};

class StripAccentsStage : public Stage {
 public:
  void apply(Parts& parts) const override {
    if (is_ascii(parts.text)) return;
    rewrite_characters(parts, [](Edits& edits, char32_t c, std::size_t bytes) {
      is_mark_unicode9(c) ? edits.skip(bytes) : edits.keep(bytes);
    });
  }
};

class StripStage : public Stage {
 public:
  StripStage(bool left, bool right) : left_(left), right_(right) {}
  void apply(Parts& parts) const override {
    rewrite(parts, [&](Edits& edits) {
      const std::string_view text = edits.text();
      std::size_t begin = left_ ? text.size() : 0, end = right_ ? begin : text.size();
      bool seen = !left_;
      for (std::size_t position = 0; position < text.size();) {
        const std::size_t start = position;
        if (is_white_space(next_code_point(text, position))) continue;
        if (!seen) begin = start;
        seen = true;
        if (right_) end = position;
      }
      if (begin >= end) return;
      edits.skip(begin);
      edits.keep(end - begin);
    });
  }

 private:
  bool left_, right_;
};

class PrependStage : public Stage {
 public:
  explicit PrependStage(std::string text) : text_(std::move(text)) {}
  void apply(Parts& parts) const override {
    rewrite(parts, [&](Edits& edits) { prepend(edits, text_), edits.keep_rest(); });
  }

 private:
  std::string text_;
};

class ReplaceStage : public Stage {
 public:
  ReplaceStage(Pattern pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}
  void apply(Parts& parts) const override {
    Pattern::Search search(pattern_, parts.text.size());
    rewrite(parts, [&](Edits& edits) {
      std::vector<Match> matches;
      if (!edits.at_end()) search.find(edits.text(), matches);
      for (const auto& [begin, end, found] : matches) {
        if (found) {
          edits.skip(end - begin);
          edits.put_after(content_);
        } else {
          edits.keep(end - begin);
        }
      }
    });
  }

 private:
  Pattern pattern_;
  std::string content_;
};

/// `Nmt`: the rules of SentencePiece's nmt_nfkc without NFKC.
class NmtStage : public Stage {
 public:
  void apply(Parts& parts) const override {
    rewrite_characters(parts, [](Edits& edits, char32_t c, std::size_t bytes) {
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
    });
  }
};

class BertStage : public Stage {
 public:
  explicit BertStage(const BertNormalizerOptions& options)
      : options_(options), nfd_(unicode_normalizer(Normalization::nfd)) {}

  void apply(Parts& parts) const override {
    if (options_.clean_text) clean(parts);
    const bool ascii = is_ascii(parts.text);
    if (options_.split_cjk && !ascii) split_cjk(parts);
    if (options_.strip_accents && !ascii) strip_accents(parts);
    if (options_.lower_case) rewrite_characters(parts, put_lower);
  }

 private:
  static void clean(Parts& parts) {
    rewrite_characters(parts, [](Edits& edits, char32_t c, std::size_t bytes) {
      if (c > ' ' && c < 0x7F) return edits.keep(1);
      const bool blank = c == '\t' || c == '\n' || c == '\r';
      if (!blank && (c == 0 || c == 0xFFFD || is_other_unicode8(c))) return edits.skip(bytes);
      blank || is_white_space(c) ? edits.put(' ', 0) : edits.keep(bytes);
    });
  }

  static void split_cjk(Parts& parts) {
    rewrite_characters(parts, [](Edits& edits, char32_t c, std::size_t bytes) {
      if (!is_ideograph_of_library(c)) return edits.keep(bytes);
      edits.put(' ', 0);
      edits.put(c, 1);
      edits.put(' ', 1);
    });
  }

  void strip_accents(Parts& parts) const {
    nfd_->apply(parts);
    rewrite_characters(parts, [](Edits& edits, char32_t c, std::size_t bytes) {
      is_nonspacing_mark_unicode8(c) ? edits.skip(bytes) : edits.keep(bytes);
    });
  }

  BertNormalizerOptions options_;
  std::unique_ptr<Stage> nfd_;
};

/// The bytes of base64, or of a document made here; fails at the node.
std::string decode_base64(const JsonNode& node) {
  if (node.value().is_binary()) {
    const auto& bytes = node.value().get_binary();
    return {bytes.begin(), bytes.end()};
  }
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

std::unique_ptr<Stage> bert_normalizer(const BertNormalizerOptions& options) {
  return std::make_unique<BertStage>(options);
}

void add_normalizers(const JsonNode& node, Stages& stages) {
  const std::string& type = node.at("type").string();
  const auto add = [&]<typename S>(std::unique_ptr<S> stage) {
    stages.push_back(std::move(stage));
  };
  if (type == "Sequence") {
    node.at("normalizers").each([&](const JsonNode& each) { add_normalizers(each, stages); });
  } else if (type == "BertNormalizer") {
    BertNormalizerOptions options;
    options.clean_text = node.flag("clean_text", true);
    options.split_cjk = node.flag("handle_chinese_chars", true);
    options.lower_case = node.flag("lowercase", true);
    options.strip_accents = node.flag("strip_accents", options.lower_case);
    add(bert_normalizer(options));
  } else if (type == "NFC") {
    add(unicode_normalizer(Normalization::nfc));
  } else if (type == "NFD") {
    add(unicode_normalizer(Normalization::nfd));
  } else if (type == "NFKC") {
    add(unicode_normalizer(Normalization::nfkc));
  } else if (type == "NFKD") {
    add(unicode_normalizer(Normalization::nfkd));
  } else if (type == "Lowercase") {
    add(std::make_unique<LowercaseStage>());
  } else if (type == "StripAccents") {
    add(std::make_unique<StripAccentsStage>());
  } else if (type == "Strip") {
    add(std::make_unique<StripStage>(node.flag("strip_left", true),
                                     node.flag("strip_right", true)));
  } else if (type == "Prepend") {
    add(std::make_unique<PrependStage>(node.at("prepend").string()));
  } else if (type == "Replace") {
    add(std::make_unique<ReplaceStage>(Pattern::of(node.at("pattern")),
                                       node.at("content").string()));
  } else if (type == "Nmt") {
    add(std::make_unique<NmtStage>());
  } else if (type == "ByteLevel") {
    add(byte_characters());
  } else if (type == "Precompiled") {
    const JsonNode charsmap = node.at("precompiled_charsmap");
    add(charsmap_normalizer(decode_base64(charsmap), charsmap.path()));
  } else {
    node.fail(
        "has unsupported type '{}' (supported: BertNormalizer, ByteLevel, Lowercase, NFC, NFD, "
        "NFKC, NFKD, Nmt, Precompiled, Prepend, Replace, Sequence, Strip, StripAccents)",
        type);
  }
}

}  // namespace bertcl::text
