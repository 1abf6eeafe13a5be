// SPDX-License-Identifier: Apache-2.0
// Patterns by which tokenizers split texts: that of GPT-2, and the regular expressions of a file.
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/matchers.hpp"
#include "tests/text/stages.hpp"
#include "text/pipeline/byte_level.hpp"
#include "text/tokenizer.hpp"

namespace bertcl::text {
namespace {

using nlohmann::json;

Words gpt2(std::string_view text) {
  std::vector<Match> matches;
  find_gpt2(text, matches);
  Words words;
  for (const auto& [begin, end, found] : matches)
    words.emplace_back(text.substr(begin, end - begin));
  return words;
}

TEST(Gpt2Pattern, SplitsByCategories) {
  EXPECT_THAT(gpt2("I'm in Köln, 12½ km"),
              ElementsAre("I", "'m", " in", " Köln", ",", " 12½", " km"));
  EXPECT_THAT(gpt2("a  b \n c"), ElementsAre("a", " ", " b", " \n", " c"));
  EXPECT_THAT(gpt2("x \n"), ElementsAre("x", " \n"));
  EXPECT_THAT(gpt2("x\ny"), ElementsAre("x", "\n", "y"));
  EXPECT_THAT(gpt2("'S !'s"), ElementsAre("'", "S", " !'", "s"));
  EXPECT_THAT(gpt2("日本語１２"), ElementsAre("日本語", "１２"));
  EXPECT_THAT(gpt2("e\u0301"), ElementsAre("e", "\u0301")) << "a mark is not a letter";
}

TEST(Split, ObeysItsBehavior) {
  const auto words = [](const char* behavior) {
    return split("the-final--countdown", (R"({"type": "Split", "pattern": {"String": "-"},
      "invert": false, "behavior": ")" + std::string(behavior) +
                                          "\"}")
                                             .c_str())
        .words;
  };
  EXPECT_THAT(words("Removed"), ElementsAre("the", "final", "countdown"));
  EXPECT_THAT(words("Isolated"), ElementsAre("the", "-", "final", "-", "-", "countdown"));
  EXPECT_THAT(words("MergedWithPrevious"), ElementsAre("the-", "final-", "-", "countdown"));
  EXPECT_THAT(words("MergedWithNext"), ElementsAre("the", "-final", "-", "-countdown"));
  EXPECT_THAT(words("Contiguous"), ElementsAre("the", "-", "final", "--", "countdown"));
}

TEST(Split, RegularExpressionsMayLookAhead) {
  EXPECT_THAT(split("Ab1Cd", R"j({"type": "Split", "pattern": {"Regex": "\\p{Lu}(?=\\p{Ll})"},
                                  "behavior": "MergedWithNext"})j")
                  .words,
              ElementsAre("Ab1", "Cd"));
}

// By tokenizers 0.23.3, whose Oniguruma finds no empty match directly after a match.
TEST(Split, EmptyMatchesDoNotFollowAMatch) {
  const auto words = [](const char* behavior, bool inverted = false) {
    const json stage = {{"type", "Split"},
                        {"pattern", {{"Regex", "x*"}}},
                        {"behavior", behavior},
                        {"invert", inverted}};
    return split("xxab", stage.dump().c_str()).words;
  };
  EXPECT_THAT(words("MergedWithNext"), ElementsAre("xxa", "b"));
  EXPECT_THAT(words("MergedWithPrevious", true), ElementsAre("xxa", "b"));
  EXPECT_THAT(words("Isolated"), ElementsAre("xx", "a", "b"));
  const auto dashed = [](const char* text, const char* pattern) {
    const json stage = {{"type", "Replace"}, {"pattern", {{"Regex", pattern}}}, {"content", "-"}};
    return normalized(text, stage.dump().c_str()).words;
  };
  EXPECT_THAT(dashed("xab", "x*"), ElementsAre("-a-b-"));
  EXPECT_THAT(dashed("axxb", "x*"), ElementsAre("-a-b-"));
  EXPECT_THAT(dashed("xab", "x*?"), ElementsAre("-x-a-b-"));
  EXPECT_THAT(dashed("axxb", "^|x"), ElementsAre("-a--b"));
  EXPECT_THAT(dashed("axxb", "b*"), ElementsAre("-a-x-x-"));
}

/// A pre-tokenizer of a regular expression, after another if it is given.
std::string regex_split(const std::string& regex, const json& before = nullptr) {
  json stages = {{{"type", "Split"}, {"pattern", {{"Regex", regex}}}, {"behavior", "Isolated"}}};
  if (!before.is_null()) stages.insert(stages.begin(), before);
  return json{{"type", "Sequence"}, {"pretokenizers", stages}}.dump();
}

TEST(Split, ARegularExpressionThatBacktracksIsGivenUp) {
  std::string words;
  for (int i = 0; i < 20; ++i) words += "w ";
  EXPECT_THAT([&] { split(words, regex_split("(?:[^b]+)+c").c_str()); },
              ThrowsMessage<SearchError>(AllOf(
                  HasSubstr("the tokenizer's regular expression backtracks too long for the text "
                            "'w w w"),
                  HasSubstr("(40 bytes)"))));
  EXPECT_THAT(
      [&] {
        normalized(words, R"j({"type": "Replace", "pattern": {"Regex": "(?:[^b]+)+c"},
                               "content": ""})j");
      },
      ThrowsMessage<SearchError>(HasSubstr("backtracks too long")));
}

TEST(Split, TimeIsBoundedForATextNotForEachOfItsParts) {
  // Each part takes about a third of the time of a text.
  const std::string part = std::string(22, 'a') + "b";
  const std::string pattern = regex_split("(a+)+$", {{"type", "WhitespaceSplit"}});
  EXPECT_THAT(split(part, pattern.c_str()).words, ElementsAre(part));
  std::string text;
  for (int i = 0; i < 8; ++i) text += part + " ";
  EXPECT_THAT([&] { split(text, pattern.c_str()); },
              ThrowsMessage<SearchError>(HasSubstr("backtracks too long")));
}

TEST(Split, LongRunsOfSpacesFitInMemory) {
  // Of Qwen2, and of GPT-4o, as their tokenizer.json have them.
  const std::string qwen2 =
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|)"
      R"(\s*[\r\n]+|\s+(?!\S)|\s+)";
  const std::string gpt4o =
      R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
      R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|)"
      R"(\s+(?!\S)|\s+)";
  const std::string spaces(1'900'000, ' ');
  for (const std::string& pattern : {qwen2, gpt4o}) {
    const Words words = split("w1" + spaces + " w2", regex_split(pattern).c_str()).words;
    EXPECT_EQ(words, (Words{"w", "1", spaces, " w", "2"})) << pattern;
    const std::string too_long(6'000'000, ' ');
    EXPECT_THAT([&] { split(too_long, regex_split(pattern).c_str()); },
                ThrowsMessage<SearchError>(HasSubstr("needs too much memory")));
  }
}

}  // namespace
}  // namespace bertcl::text
