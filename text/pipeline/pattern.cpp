// SPDX-License-Identifier: Apache-2.0
// Search for a string or, by ICU, for a regular expression.
#include "text/pipeline/pattern.hpp"

#include <unicode/regex.h>
#include <unicode/utext.h>

#include <cstdint>
#include <nlohmann/json.hpp>

#include "bertcl/error.hpp"
#include "text/pipeline/byte_level.hpp"

namespace bertcl::text {

struct Pattern::Expression {
  std::unique_ptr<icu::RegexPattern> compiled;
  bool is_gpt2 = false;
};

Pattern::Pattern() = default;
Pattern::Pattern(Pattern&&) noexcept = default;
Pattern& Pattern::operator=(Pattern&&) noexcept = default;
Pattern::~Pattern() = default;

Pattern Pattern::of(const JsonNode& node) {
  Pattern pattern;
  if (const auto literal = node.find("String")) {
    pattern.literal_ = literal->string();
    return pattern;
  }
  const JsonNode source = node.at("Regex");
  UErrorCode status = U_ZERO_ERROR;
  UParseError place;
  pattern.expression_ = std::make_unique<Expression>();
  pattern.expression_->is_gpt2 = source.string() == kGpt2Pattern;
  // As in Oniguruma, ^ and $ are those of a line, and lines end at \n alone.
  constexpr std::uint32_t flags = UREGEX_MULTILINE | UREGEX_UNIX_LINES;
  pattern.expression_->compiled.reset(icu::RegexPattern::compile(
      icu::UnicodeString::fromUTF8(source.string()), flags, place, status));
  if (U_FAILURE(status))
    source.fail("is not a valid ICU regular expression: {} at character {}", u_errorName(status),
                place.offset);
  return pattern;
}

namespace {

class Matches {
 public:
  explicit Matches(std::vector<Match>& to) : to_(to) {}
  void add(std::size_t begin, std::size_t end) {
    between(begin);
    to_.push_back({static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end), true});
    last_ = static_cast<std::uint32_t>(end);
  }
  void between(std::size_t end) {
    if (last_ < end) to_.push_back({last_, static_cast<std::uint32_t>(end), false});
  }

 private:
  std::vector<Match>& to_;
  std::uint32_t last_ = 0;
};

}  // namespace

void Pattern::find(std::string_view text, std::vector<Match>& matches) const {
  if (expression_ && expression_->is_gpt2) return find_gpt2(text, matches);
  Matches found(matches);
  if (!expression_) {
    for (std::size_t begin = 0; !literal_.empty();) {
      begin = text.find(literal_, begin);
      if (begin == text.npos) break;
      found.add(begin, begin + literal_.size());
      begin += literal_.size();
    }
  } else {
    UErrorCode status = U_ZERO_ERROR;
    UText utext = UTEXT_INITIALIZER;
    utext_openUTF8(&utext, text.data(), std::ssize(text), &status);
    const std::unique_ptr<icu::RegexMatcher> matcher(expression_->compiled->matcher(status));
    if (U_SUCCESS(status)) matcher->reset(&utext);
    std::size_t last = text.npos;  // where the last match ended
    while (U_SUCCESS(status) && matcher->find(status)) {
      const auto begin = static_cast<std::size_t>(matcher->start64(status));
      const auto end = static_cast<std::size_t>(matcher->end64(status));
      // As with Oniguruma, no empty match directly follows a match.
      if (begin == end && end == last) continue;
      found.add(begin, end);
      last = end;
    }
    utext_close(&utext);
    if (U_FAILURE(status))
      throw Error(std::string("ICU cannot search a text: ") + u_errorName(status));
  }
  found.between(text.size());
}

}  // namespace bertcl::text
