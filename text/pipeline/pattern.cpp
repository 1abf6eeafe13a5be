// SPDX-License-Identifier: Apache-2.0
// Search for a string or, by ICU, for a regular expression.
#include "text/pipeline/pattern.hpp"

#include <fmt/format.h>
#include <unicode/regex.h>
#include <unicode/utext.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

#include "bertcl/error.hpp"
#include "text/base/data_file.hpp"
#include "text/pipeline/byte_level.hpp"

namespace bertcl::text {

struct Pattern::Expression {
  std::unique_ptr<icu::RegexPattern> compiled;
  bool is_gpt2 = false;
};

Pattern Pattern::of(const JsonNode& node) {
  Pattern pattern;
  if (const auto literal = node.find("String")) {
    pattern.literal_ = literal->string();
    return pattern;
  }
  const JsonNode source = node.at("Regex");
  UErrorCode status = U_ZERO_ERROR;
  UParseError place;
  const auto expression = std::make_shared<Expression>();
  expression->is_gpt2 = source.string() == kGpt2Pattern;
  // As in Oniguruma, ^ and $ are those of a line, and lines end at \n alone.
  constexpr std::uint32_t flags = UREGEX_MULTILINE | UREGEX_UNIX_LINES;
  expression->compiled.reset(icu::RegexPattern::compile(
      icu::UnicodeString::fromUTF8(source.string()), flags, place, status));
  if (U_FAILURE(status))
    source.fail("is not a valid ICU regular expression: {} at character {}", u_errorName(status),
                place.offset);
  pattern.expression_ = expression;
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

/// The matcher of ICU, and what of its time is left.
struct Pattern::Search::Matcher {
  std::unique_ptr<icu::RegexMatcher> icu;
  std::int32_t left;      // of ICU's units of time
  std::int32_t used = 0;  // of them, by the part
};

namespace {

/// ICU counts the places that it may have to come back to, in units of 10,000: about 0.2 to 0.9 ms
/// each (AMD EPYC with AVX2, 2026-11-29). A search that is linear needs one for 1,400 bytes at
/// least (GPT-4o's pattern, words and numbers), one whose time grows with the square of a run's
/// length all of them for 10,000 characters.
constexpr std::size_t kTimeUnits = 5000;
constexpr std::size_t kBytesOfUnit = 500;  // of longer texts

/// ICU takes 8 bytes where it counts 4. The patterns of Qwen2, Llama 3 and GPT-4o need 48 to 72 for
/// each character of a run of white space: this is enough for 2,500,000.
constexpr std::int32_t kStackLimit = 90'000'000;

[[noreturn]] void refuse_part(UErrorCode status, std::string_view part) {
  const std::string what =
      status == U_REGEX_TIME_OUT ? "backtracks too long" : "needs too much memory";
  if (status != U_REGEX_TIME_OUT && status != U_REGEX_STACK_OVERFLOW)
    throw Error(fmt::format("ICU cannot search '{}': {}", excerpt_of(part), u_errorName(status)));
  throw SearchError(
      fmt::format("the tokenizer's regular expression {} for the text '{}' ({} bytes); shorten the "
                  "text, or its runs of repeated characters",
                  what, excerpt_of(part), part.size()));
}

}  // namespace

Pattern::Search::Search(const Pattern& pattern, std::size_t bytes) : pattern_(pattern) {
  if (!pattern.expression_ || pattern.expression_->is_gpt2) return;
  const std::size_t units = std::max(kTimeUnits, bytes / kBytesOfUnit);
  UErrorCode status = U_ZERO_ERROR;
  matcher_ = std::make_unique<Matcher>();
  matcher_->left = static_cast<std::int32_t>(units);
  matcher_->icu.reset(pattern.expression_->compiled->matcher(status));
  const auto count = [](const void* matcher, std::int32_t used) -> UBool {
    static_cast<Matcher*>(const_cast<void*>(matcher))->used = used;
    return true;
  };
  if (U_SUCCESS(status)) {
    matcher_->icu->setStackLimit(kStackLimit, status);
    matcher_->icu->setMatchCallback(count, matcher_.get(), status);
  }
  if (U_FAILURE(status))
    throw Error(fmt::format("ICU cannot make a search: {}", u_errorName(status)),
                ErrorCode::out_of_memory);
}

Pattern::Search::~Search() = default;

void Pattern::Search::find(std::string_view part, std::vector<Match>& matches) {
  if (pattern_.expression_ && pattern_.expression_->is_gpt2) return find_gpt2(part, matches);
  Matches found(matches);
  const std::string& literal = pattern_.literal_;
  if (!matcher_) {
    for (std::size_t begin = 0; !literal.empty();) {
      begin = part.find(literal, begin);
      if (begin == part.npos) break;
      found.add(begin, begin + literal.size());
      begin += literal.size();
    }
  } else {
    icu::RegexMatcher& matcher = *matcher_->icu;
    UErrorCode status = U_ZERO_ERROR;
    UText utext = UTEXT_INITIALIZER;
    utext_openUTF8(&utext, part.data(), std::ssize(part), &status);
    matcher.setTimeLimit(matcher_->left, status);
    if (U_SUCCESS(status)) matcher.reset(&utext);
    std::size_t last = part.npos;  // where the last match ended
    while (U_SUCCESS(status) && matcher.find(status)) {
      const auto begin = static_cast<std::size_t>(matcher.start64(status));
      const auto end = static_cast<std::size_t>(matcher.end64(status));
      // As with Oniguruma, no empty match directly follows a match.
      if (begin == end && end == last) continue;
      found.add(begin, end);
      last = end;
    }
    utext_close(&utext);
    if (U_FAILURE(status)) refuse_part(status, part);
    // 0 would be no limit.
    matcher_->left = std::max(matcher_->left - std::exchange(matcher_->used, 0), 1);
  }
  found.between(part.size());
}

}  // namespace bertcl::text
