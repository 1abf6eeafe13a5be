// SPDX-License-Identifier: Apache-2.0
// NFC, NFD, NFKC and NFKD with the origin of every character.
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>

#include <algorithm>
#include <string>

#include "bertcl/error.hpp"
#include "text/pipeline/normalizers.hpp"

namespace bertcl::text {
namespace {

/// The version of the tables of the library (crate unicode-normalization-alignments).
bool has_normal_form(UChar32 c) {
  UVersionInfo age;
  u_charAge(c, age);
  return age[0] <= 9;
}

/// A character of the result; `change` is that of Edits::put.
struct Decomposed {
  char32_t c;
  int change;
  std::uint8_t combining_class;
};

class UnicodeNormalizer {
 public:
  explicit UnicodeNormalizer(Normalization form)
      : composes_(form == Normalization::nfc || form == Normalization::nfkc) {
    UErrorCode status = U_ZERO_ERROR;
    const bool compatible = form == Normalization::nfkc || form == Normalization::nfkd;
    normalizer_ = compatible ? icu::Normalizer2::getNFKCInstance(status)
                             : icu::Normalizer2::getNFCInstance(status);
    canonical_ = icu::Normalizer2::getNFCInstance(status);
    if (U_FAILURE(status))
      throw Error(std::string("ICU cannot normalize texts: ") + u_errorName(status));
  }

  void operator()(Parts& parts) const {
    if (is_ascii(parts.text)) return;
    // Only of short texts: its time is quadratic in a run of marks.
    constexpr std::size_t kShort = 4096;
    if (composes_ && parts.text.size() <= kShort) {
      UErrorCode status = U_ZERO_ERROR;
      if (normalizer_->isNormalizedUTF8(parts.text, status) && U_SUCCESS(status)) return;
    }
    rewrite(parts, [&](Edits& edits) {
      std::vector<Decomposed> characters = decompose(edits.text());
      if (composes_) compose(characters);
      for (const Decomposed& character : characters) edits.put(character.c, character.change);
    });
  }

 private:
  std::vector<Decomposed> decompose(std::string_view text) const {
    std::vector<Decomposed> result;
    result.reserve(text.size());
    std::size_t ordered = 0;  // what lies before is final
    const auto order = [&] {
      std::stable_sort(result.begin() + static_cast<std::ptrdiff_t>(ordered), result.end(),
                       [](const Decomposed& a, const Decomposed& b) {
                         return a.combining_class < b.combining_class;
                       });
      ordered = result.size();
    };
    const auto add = [&](char32_t c, bool first) {
      const std::uint8_t combining_class = class_of(c);
      if (combining_class == 0) order();
      result.push_back({c, first ? 0 : 1, combining_class});
    };
    icu::UnicodeString parts;
    for (std::size_t position = 0; position < text.size();) {
      const char32_t c = next_code_point(text, position);
      const auto point = static_cast<UChar32>(c);
      if (c < 0x80 || !has_normal_form(point) || !normalizer_->getDecomposition(point, parts)) {
        add(c, true);
        continue;
      }
      for (std::int32_t i = 0; i < parts.length(); i += U16_LENGTH(parts.char32At(i)))
        add(static_cast<char32_t>(parts.char32At(i)), i == 0);
    }
    order();
    return result;
  }

  std::uint8_t class_of(char32_t c) const {
    if (c < 0x300 || !has_normal_form(static_cast<UChar32>(c))) return 0;
    return canonical_->getCombiningClass(static_cast<UChar32>(c));
  }

  UChar32 pair_of(char32_t first, char32_t second) const {
    const UChar32 pair =
        canonical_->composePair(static_cast<UChar32>(first), static_cast<UChar32>(second));
    return pair >= 0 && has_normal_form(pair) ? pair : -1;
  }

  /// Joins each starter with the marks that nothing of their class keeps from it (UAX 15, D117).
  void compose(std::vector<Decomposed>& characters) const {
    std::vector<Decomposed> result;
    result.reserve(characters.size());
    std::size_t starter = characters.size();  // its place in the result; none yet
    int last_class = -1;                      // of the marks between; -1: there are none
    for (const Decomposed& character : characters) {
      const int own = character.combining_class;
      if (starter < result.size() && last_class < own) {
        const UChar32 pair = pair_of(result[starter].c, character.c);
        if (pair >= 0) {
          result[starter].c = static_cast<char32_t>(pair);
          result[starter].change += character.change - 1;
          continue;
        }
      }
      if (own == 0) {
        starter = result.size();
        last_class = -1;
      } else if (starter < result.size()) {
        last_class = own;
      }
      result.push_back(character);
    }
    characters = std::move(result);
  }

  bool composes_;
  const icu::Normalizer2* normalizer_;
  const icu::Normalizer2* canonical_;
};

}  // namespace

Stage unicode_normalizer(Normalization form) { return UnicodeNormalizer(form); }

}  // namespace bertcl::text
