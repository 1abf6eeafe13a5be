// SPDX-License-Identifier: Apache-2.0
// A text on its way through a tokenizer: rewritten and split, and where each byte comes from.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/base/unicode.hpp"
#include "text/pipeline/encoding.hpp"

namespace bertcl::text {

/// What the next stage works on by itself; or an added token, which no stage touches.
struct Part {
  std::uint32_t begin = 0, end = 0;  ///< bytes of Parts::text
  std::uint32_t origin = 0;          ///< where its original text begins
  std::int32_t token = -1;           ///< id of an added token
};

struct Parts {
  /// The whole text as one part. Ill-formed UTF-8 becomes U+FFFD.
  explicit Parts(std::string_view original);
  Parts() = default;

  std::string_view text_of(const Part& part) const {
    return std::string_view(text).substr(part.begin, part.end - part.begin);
  }
  /// The original of bytes [begin, end) of `text`, which are not empty.
  Span original(std::size_t begin, std::size_t end) const {
    return {spans[begin].begin, spans[end - 1].end};
  }

  std::string text;
  std::vector<Span> spans;  ///< [bytes of text] original of the character there
  std::vector<Part> parts;  ///< in their order, with gaps where a stage removes something
};

/// Writes one part anew, from its beginning to its end. The rules for what a new character comes
/// from are those of NormalizedString::transform_range in Hugging Face's tokenizers.
class Edits {
 public:
  Edits(const Parts& from, const Part& part, Parts& to)
      : from_(from), part_(part), to_(to), position_(part.begin) {}

  std::string_view text() const { return from_.text_of(part_); }
  bool at_end() const { return position_ >= part_.end; }
  std::size_t position() const { return position_ - part_.begin; }  ///< in text()
  std::uint32_t origin() const { return part_.origin; }
  /// The next bytes as they are.
  void keep(std::size_t bytes);
  /// All bytes that are left.
  void keep_rest() { keep(part_.end - position_); }
  void skip(std::size_t bytes) { position_ += static_cast<std::uint32_t>(bytes); }
  /// A character for the next one (change 0), for the next one and the -change after it, or after
  /// the last one (change 1), whose origin it shares.
  void put(char32_t c, int change);
  /// Characters that share the origin of what lies before.
  void put_after(std::string_view characters);

 private:
  void skip_character();
  Span before() const;
  const Parts& from_;
  const Part& part_;
  Parts& to_;
  std::uint32_t position_;
};

/// Calls edit(Edits&) for each part that is not a token.
template <typename Edit>
void rewrite(Parts& parts, const Edit& edit) {
  Parts result;
  result.text.reserve(parts.text.size() + 8);
  result.spans.reserve(parts.text.size() + 8);
  result.parts.reserve(parts.parts.size());
  for (const Part& part : parts.parts) {
    Part next = part;
    next.begin = static_cast<std::uint32_t>(result.text.size());
    Edits edits(parts, part, result);
    if (part.token < 0) {
      edit(edits);
    } else {
      edits.keep_rest();
    }
    next.end = static_cast<std::uint32_t>(result.text.size());
    result.parts.push_back(next);
  }
  parts = std::move(result);
}

/// Bytes of a part that a pattern has found, or that lie between.
struct Match {
  std::uint32_t begin, end;
  bool found;
};

/// What becomes of that which a pattern finds: `SplitDelimiterBehavior` of the same library.
enum class Behavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

/// Joins and drops matches, which cover a text, as the behavior says; those left are the parts.
void join_matches(std::vector<Match>& matches, Behavior behavior);

/// Splits each part that is not a token. find(text, matches) adds the matches that cover a text.
template <typename Find>
void split(Parts& parts, Behavior behavior, const Find& find) {
  std::vector<Part> result;
  result.reserve(parts.parts.size() * 2);
  std::vector<Match> matches;
  for (const Part& part : parts.parts) {
    if (part.token >= 0) {
      result.push_back(part);
      continue;
    }
    matches.clear();
    if (part.begin < part.end) find(parts.text_of(part), matches);
    join_matches(matches, behavior);
    for (const Match& match : matches) {
      if (match.begin == match.end) continue;
      const std::uint32_t begin = part.begin + match.begin;
      result.push_back({begin, part.begin + match.end, parts.spans[begin].begin, -1});
    }
  }
  parts.parts = std::move(result);
}

/// The same where is(character) finds single characters.
template <typename Is>
void split_at(Parts& parts, Behavior behavior, const Is& is) {
  split(parts, behavior, [&](std::string_view text, std::vector<Match>& matches) {
    std::uint32_t last = 0;
    for (std::size_t position = 0; position < text.size();) {
      const auto begin = static_cast<std::uint32_t>(position);
      if (!is(next_code_point(text, position))) continue;
      if (last < begin) matches.push_back({last, begin, false});
      last = static_cast<std::uint32_t>(position);
      matches.push_back({begin, last, true});
    }
    if (last < text.size())
      matches.push_back({last, static_cast<std::uint32_t>(text.size()), false});
  });
}

/// A step of a tokenizer that changes or splits the text. Any number of threads may call it.
using Stage = std::function<void(Parts&)>;

}  // namespace bertcl::text
