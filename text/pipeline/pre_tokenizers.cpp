// SPDX-License-Identifier: Apache-2.0
// Pre-tokenizers, and the reading of all of them.
#include "text/pipeline/pre_tokenizers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "text/pipeline/byte_level.hpp"
#include "text/pipeline/normalizers.hpp"
#include "text/pipeline/pattern.hpp"
#include "text/pipeline/properties.hpp"

namespace bertcl::text {
namespace {

/// Splits at the characters of a kind.
Stage character_split(bool (*is)(char32_t), Behavior behavior) {
  return [is, behavior](Parts& parts) { split_at(parts, behavior, is); };
}

void bert_split(Parts& parts) {
  split_at(parts, Behavior::removed, is_white_space);
  split_at(parts, Behavior::isolated, is_punctuation_unicode8);
}

/// `\w+|[^\w\s]+`
void whitespace(Parts& parts) {
  split(parts, Behavior::removed, [](std::string_view text, std::vector<Match>& matches) {
    int last = -1;
    for (std::size_t position = 0; position < text.size();) {
      const auto begin = static_cast<std::uint32_t>(position);
      const char32_t c = next_code_point(text, position);
      const auto end = static_cast<std::uint32_t>(position);
      const int kind = is_regex_word(c) ? 0 : is_white_space(c) ? 1 : 2;
      if (kind == last) {
        matches.back().end = end;
      } else {
        matches.push_back({begin, end, kind == 1});
      }
      last = kind;
    }
  });
}

Stage pattern_split(Pattern pattern, Behavior behavior, bool invert) {
  return [pattern = std::move(pattern), behavior, invert](Parts& parts) {
    Pattern::Search search(pattern, parts.text.size());
    split(parts, behavior, [&](std::string_view text, std::vector<Match>& matches) {
      search.find(text, matches);
      if (!invert) return;
      for (Match& match : matches) match.found = !match.found;
    });
  };
}

/// Where `Metaspace` puts its character before a part: nowhere, before the first, before all.
enum class PrependScheme { never, first, always };

class Metaspace {
 public:
  Metaspace(std::string replacement, PrependScheme scheme, bool splits)
      : replacement_(std::move(replacement)), scheme_(scheme), splits_(splits) {}

  void operator()(Parts& parts) const {
    rewrite(parts, [&](Edits& edits) { replace_spaces(edits); });
    if (!splits_) return;
    split(parts, Behavior::merged_with_next,
          [&](std::string_view text, std::vector<Match>& matches) { find(text, matches); });
  }

 private:
  void replace_spaces(Edits& edits) const {
    const std::string_view text = edits.text();
    const bool begins = text.starts_with(' ') || text.starts_with(replacement_);
    const bool prepends = scheme_ == PrependScheme::always ||
                          (scheme_ == PrependScheme::first && edits.origin() == 0);
    if (prepends && !begins) prepend(edits, replacement_);
    while (!edits.at_end()) {
      const std::size_t begin = edits.position();
      const std::size_t space = std::min(text.find(' ', begin), text.size());
      edits.keep(space - begin);
      if (space == text.size()) break;
      edits.skip(1);
      edits.put_after(replacement_);
    }
  }

  void find(std::string_view text, std::vector<Match>& matches) const {
    std::size_t last = 0;
    const auto add = [&](std::size_t end, bool found) {
      if (last < end)
        matches.push_back(
            {static_cast<std::uint32_t>(last), static_cast<std::uint32_t>(end), found});
      last = end;
    };
    while (last < text.size()) {
      const std::size_t begin = std::min(text.find(replacement_, last), text.size());
      add(begin, false);
      if (begin < text.size()) add(begin + replacement_.size(), true);
    }
  }

  std::string replacement_;
  PrependScheme scheme_;
  bool splits_;
};

template <typename Value, std::size_t count>
using Names = std::array<std::pair<std::string_view, Value>, count>;

template <typename Value, std::size_t count>
Value choose(const JsonNode& node, const Names<Value, count>& names) {
  std::string known;
  for (const auto& [name, value] : names) {
    if (node.string() == name) return value;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", name);
  }
  node.fail("is \"{}\" (choose from {})", node.string(), known);
}

Behavior behavior_of(const JsonNode& node, Behavior default_value) {
  static constexpr Names<Behavior, 5> names{{{"Removed", Behavior::removed},
                                             {"Isolated", Behavior::isolated},
                                             {"MergedWithPrevious", Behavior::merged_with_previous},
                                             {"MergedWithNext", Behavior::merged_with_next},
                                             {"Contiguous", Behavior::contiguous}}};
  const auto found = node.find("behavior");
  return found ? choose(*found, names) : default_value;
}

Metaspace metaspace_of(const JsonNode& node) {
  static constexpr Names<PrependScheme, 3> names{{{"never", PrependScheme::never},
                                                  {"first", PrependScheme::first},
                                                  {"always", PrependScheme::always}}};
  const auto scheme = node.find("prepend_scheme");
  PrependScheme prepends = scheme ? choose(*scheme, names) : PrependScheme::always;
  if (!node.flag("add_prefix_space", true)) prepends = PrependScheme::never;
  return Metaspace(node.at("replacement").string(), prepends, node.flag("split", true));
}

}  // namespace

Stage read_pre_tokenizer(const JsonNode& node) {
  const std::string& type = node.at("type").string();
  if (type == "Sequence") return sequence_of(node.at("pretokenizers"), read_pre_tokenizer);
  if (type == "BertPreTokenizer") return bert_split;
  if (type == "Whitespace") return whitespace;
  if (type == "WhitespaceSplit") return character_split(is_white_space, Behavior::removed);
  if (type == "Punctuation")
    return character_split(is_punctuation_unicode8, behavior_of(node, Behavior::isolated));
  if (type == "Digits") {
    const bool each = node.flag("individual_digits", false);
    return character_split(is_numeric, each ? Behavior::isolated : Behavior::contiguous);
  }
  if (type == "ByteLevel")
    return byte_level(node.flag("add_prefix_space", true), node.flag("use_regex", true));
  if (type == "Metaspace") return metaspace_of(node);
  if (type == "Split")
    return pattern_split(Pattern::of(node.at("pattern")), behavior_of(node, Behavior::isolated),
                         node.flag("invert", false));
  node.fail(
      "has unsupported type '{}' (supported: BertPreTokenizer, ByteLevel, Digits, Metaspace, "
      "Punctuation, Sequence, Split, Whitespace, WhitespaceSplit)",
      type);
}

}  // namespace bertcl::text
