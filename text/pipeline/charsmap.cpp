// SPDX-License-Identifier: Apache-2.0
// SentencePiece's precompiled rules of rewriting (its src/normalizer.cc), as the library applies
// them (its src/normalizers/precompiled.rs).
#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>

#include "support/fail.hpp"
#include "text/pipeline/graphemes.hpp"
#include "text/pipeline/normalizers.hpp"

namespace bertcl::text {
namespace {

/// A double-array trie of darts-clone: 32-bit units, each with the label of the byte that leads to
/// it, the offset to its children, and a bit that says whether a value is among them.
class DoubleArray {
 public:
  explicit DoubleArray(std::vector<std::uint32_t> units) : units_(std::move(units)) {}

  /// The value of the shortest prefix of `key` that has one.
  std::optional<std::uint32_t> shortest_prefix(std::string_view key) const {
    std::size_t node = offset(unit(0));
    for (const char c : key) {
      const auto byte = static_cast<unsigned char>(c);
      if (byte == 0) break;
      node ^= byte;
      const std::uint32_t here = unit(node);
      if ((here & (1U << 31 | 0xFF)) != byte) break;
      node ^= offset(here);
      if ((here >> 8 & 1) != 0) return unit(node) & ((1U << 31) - 1);
    }
    return std::nullopt;
  }

 private:
  std::uint32_t unit(std::size_t at) const { return at < units_.size() ? units_[at] : 0; }
  static std::size_t offset(std::uint32_t unit) {
    return static_cast<std::size_t>(unit >> 10) << ((unit & 1U << 9) >> 6);
  }
  std::vector<std::uint32_t> units_;
};

class Charsmap {
 public:
  Charsmap(std::vector<std::uint32_t> units, std::string replacements)
      : trie_(std::move(units)), replacements_(std::move(replacements)) {
    for (std::size_t c = 0; c < ascii_.size(); ++c) {
      const char character = static_cast<char>(c);
      ascii_[c] = character == '\r' || replacement(std::string_view(&character, 1)).has_value();
    }
  }

  void operator()(Parts& parts) const {
    rewrite(parts, [&](Edits& edits) { rewrite_part(edits); });
  }

 private:
  struct Changes {
    std::vector<std::pair<char32_t, int>> list;  // as Edits::put takes them
    bool exact = true;                           // they account for all that has been read
  };

  std::optional<std::string_view> replacement(std::string_view text) const {
    const auto begin = trie_.shortest_prefix(text);
    if (!begin || *begin > replacements_.size()) return std::nullopt;
    const std::size_t end = std::min(replacements_.find('\0', *begin), replacements_.size());
    return std::string_view(replacements_).substr(*begin, end - *begin);
  }

  /// Bytes at the beginning of a text that stay as they are, each a cluster of its own.
  std::size_t plain_prefix(std::string_view text) const {
    std::size_t end = 0;
    while (end < text.size() && static_cast<signed char>(text[end]) >= 0 && !ascii_[text[end]])
      ++end;
    return end < text.size() && end > 0 ? end - 1 : end;  // what follows may join the last one
  }

  void rewrite_part(Edits& edits) const {
    const std::string_view text = edits.text();
    Changes changes;
    const auto flush = [&] {
      for (const auto& [c, change] : changes.list) edits.put(c, change);
      changes.list.clear();
    };
    for (std::size_t begin = 0; begin < text.size();) {
      // A removal is noted in the character before it, which `changes` must hold for that.
      const std::size_t plain = changes.exact ? plain_prefix(text.substr(begin)) : 0;
      if (plain > 1) {
        flush();
        edits.keep(plain - 1);
        begin += plain - 1;
      }
      const std::size_t end = grapheme_end(text, begin);
      add_cluster(text.substr(begin, end - begin), changes);
      begin = end;
    }
    flush();
  }

  void add_cluster(std::string_view cluster, Changes& changes) const {
    if (cluster.size() < 6) {
      if (const auto found = replacement(cluster)) return replace(cluster, *found, changes);
    }
    for (std::size_t position = 0; position < cluster.size();) {
      const std::size_t begin = position;
      const char32_t c = next_code_point(cluster, position);
      const std::string_view character = cluster.substr(begin, position - begin);
      if (const auto found = replacement(character)) {
        replace(character, *found, changes);
      } else {
        changes.list.emplace_back(c, 0);
      }
    }
  }

  static void replace(std::string_view old, std::string_view by, Changes& changes) {
    const auto more =
        static_cast<int>(count_code_points(by)) - static_cast<int>(count_code_points(old));
    for (std::size_t position = 0; position < by.size();)
      changes.list.emplace_back(next_code_point(by, position), 0);
    std::vector<std::pair<char32_t, int>>& list = changes.list;
    // The library loses a removal that has no character before it, or one without a source. All
    // that follows is then told to come from too far left; ids do not change by that.
    if (by.empty() && (list.empty() || list.back().second > 0)) changes.exact = false;
    if (more < 0 && !list.empty()) list.back().second += more;
    for (int i = 0; i < more; ++i) list[list.size() - 1 - static_cast<std::size_t>(i)].second = 1;
  }

  DoubleArray trie_;
  std::string replacements_;
  std::array<bool, 128> ascii_{};  // which characters may have a replacement
};

}  // namespace

Stage charsmap_normalizer(std::string_view charsmap, const std::string& place) {
  std::uint32_t bytes = 0;
  if (charsmap.size() >= sizeof bytes) std::memcpy(&bytes, charsmap.data(), sizeof bytes);
  if (bytes == 0 || bytes % 4 != 0 || bytes > charsmap.size() - sizeof bytes)
    fail("{}: damaged: a charsmap of {} bytes with a trie of {}", place, charsmap.size(), bytes);
  std::vector<std::uint32_t> units(bytes / 4);
  std::memcpy(units.data(), charsmap.data() + sizeof bytes, bytes);
  std::string replacements(charsmap.substr(sizeof bytes + bytes));
  if (const auto bad = first_ill_formed(replacements))
    fail("{}: damaged: invalid UTF-8 at byte {} of its replacements", place, *bad);
  return Charsmap(std::move(units), std::move(replacements));
}

}  // namespace bertcl::text
