// SPDX-License-Identifier: Apache-2.0
// Words of the basic tokenizer: each rule on its own, and Unicode where it surprises.
#include "tests/support/matchers.hpp"
#include "text/base/unicode.hpp"
#include "text/tokenizer.hpp"

namespace bertcl::text {
namespace {

std::vector<std::string> words(std::string_view text) { return BasicTokenizer().tokenize(text); }

TEST(BasicTokenizer, SplitsAtWhiteSpaceAndPunctuation) {
  EXPECT_THAT(words("  Hello,\tWORLD!\r\nIt's 3.5%  "),
              ElementsAre("hello", ",", "world", "!", "it", "'", "s", "3", ".", "5", "%"));
  EXPECT_THAT(words("a$b+c<d=e>f^g`h|i~j"),
              ElementsAre("a", "$", "b", "+", "c", "<", "d", "=", "e", ">", "f", "^", "g", "`", "h",
                          "|", "i", "~", "j"));
  EXPECT_THAT(words("[CLS]"), ElementsAre("[", "cls", "]"));
}

TEST(BasicTokenizer, EmptyTextHasNoWords) {
  EXPECT_THAT(words(""), IsEmpty());
  EXPECT_THAT(words(" \t\n"), IsEmpty());
  EXPECT_THAT(words(std::string(3, '\0')), IsEmpty());
  EXPECT_THAT(words("\xCC\x81"), IsEmpty()) << "an accent alone vanishes";
}

TEST(BasicTokenizer, DropsAccentsAndKeepsUnicodePunctuationApart) {
  EXPECT_THAT(words("Café naïve Škoda"), ElementsAre("cafe", "naive", "skoda"));
  EXPECT_THAT(words("24–10 «oui»…"), ElementsAre("24", "–", "10", "«", "oui", "»", "…"));
  EXPECT_THAT(words("5€"), ElementsAre("5€")) << "currency signs beyond ASCII are category Sc";
}

// U+302E (class 224) and U+1D165 (class 216) are spacing marks, which stay and change places.
TEST(Unicode, WithoutAccentsPutsSpacingMarksInOrder) {
  EXPECT_EQ(without_accents("a\u302E\u0301\U0001D165b\u302E\u302F"),
            "a\U0001D165\u302Eb\u302E\u302F");
  EXPECT_EQ(without_accents("a\u302E\u034F\U0001D165"), "a\u302E\U0001D165")
      << "U+034F, of class 0, keeps their order";
  EXPECT_EQ(without_accents("\uAC01\u1EA5"), "\u1100\u1161\u11A8a") << "Hangul falls apart";
}

TEST(BasicTokenizer, LowerCasesByTheFullUnicodeMapping) {
  EXPECT_THAT(words("İstanbul"), ElementsAre("istanbul"))
      << "U+0130 -> i, U+0307; the mark is dropped";
  EXPECT_THAT(words("ΟΔΟΣ"), ElementsAre("οδος")) << "final sigma";
  EXPECT_THAT(words("Straße"), ElementsAre("straße"));
  EXPECT_THAT(words("\u212A"), ElementsAre("k")) << "Kelvin sign";
}

TEST(BasicTokenizer, CasedKeepsCaseAndAccents) {
  const BasicTokenizer cased({.lower_case = false});
  EXPECT_THAT(cased.tokenize("Café, ÉCOLE"), ElementsAre("Café", ",", "ÉCOLE"));
  const BasicTokenizer accents({.strip_accents = false});
  EXPECT_THAT(accents.tokenize("Café, ÉCOLE"), ElementsAre("café", ",", "école"));
  const BasicTokenizer letters({.lower_case = false, .strip_accents = true});
  EXPECT_THAT(letters.tokenize("Café, ÉCOLE"), ElementsAre("Cafe", ",", "ECOLE"));
}

TEST(BasicTokenizer, DropsControlCharactersWithoutSplitting) {
  EXPECT_THAT(words("ab\u200Dcd\u00ADef"), ElementsAre("abcdef")) << "format characters";
  EXPECT_THAT(words("ab\x0B"
                    "cd\x7F"
                    "ef\u0085gh"),
              ElementsAre("abcdefgh"));
  EXPECT_THAT(words("ab\uFFFD\uE000cd"), ElementsAre("abcd")) << "replacement and private use";
}

TEST(BasicTokenizer, SplitsAtUnicodeSpaces) {
  EXPECT_THAT(words("a\u00A0b\u3000c\u2009d\u202Fe"), ElementsAre("a", "b", "c", "d", "e"));
  EXPECT_THAT(words("a\u2028b\u2029c"), ElementsAre("a", "b", "c"))
      << "line and paragraph separator";
}

TEST(BasicTokenizer, SetsChineseCharactersApartButNotKana) {
  EXPECT_THAT(words("x東京y"), ElementsAre("x", "東", "京", "y"));
  EXPECT_THAT(words("\U00020000ひらがな"), ElementsAre("\U00020000", "ひらかな"))
      << "the voicing mark of U+304C is a Mn after NFD";
}

TEST(BasicTokenizer, DropsIllFormedUtf8) {
  EXPECT_THAT(words("ab\xFF"
                    "cd\xC3"),
              ElementsAre("abcd"));
  EXPECT_THAT(words("\xED\xA0\x80x"), ElementsAre("x")) << "a surrogate in UTF-8";
}

TEST(Unicode, CodePoints) {
  EXPECT_EQ(count_code_points(""), 0u);
  EXPECT_EQ(count_code_points("aé–\U0001F600"), 4u);
  std::string text;
  append_code_point(text, U'\U0001F600');
  std::size_t position = 0;
  EXPECT_EQ(next_code_point(text, position), U'\U0001F600');
  EXPECT_EQ(position, 4u);
}

TEST(Unicode, ClassesAsInPython) {
  for (const char32_t c : {U' ', U'\t', U'\x1C', U'\x85', U'\xA0', U'\u2028', U'\u3000'}) {
    EXPECT_TRUE(is_space(c)) << static_cast<unsigned>(c);
  }
  for (const char32_t c : {U'a', U'\x00', U'\u200B', U'\u180E'}) {
    EXPECT_FALSE(is_space(c)) << static_cast<unsigned>(c);
  }
  for (const char32_t c : {U'z', U'7', U'_', U'é', U'²', U'½', U'Ⅷ', U'東'}) {
    EXPECT_TRUE(is_word_character(c)) << static_cast<unsigned>(c);
  }
  for (const char32_t c : {U'-', U' ', U'\u0301', U'–', U'€'}) {
    EXPECT_FALSE(is_word_character(c)) << static_cast<unsigned>(c);
  }
}

}  // namespace
}  // namespace bertcl::text
