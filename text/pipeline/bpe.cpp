// SPDX-License-Identifier: Apache-2.0
// Words -> symbols of one character each -> tokens, by merging pairs in the order of their ranks.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "support/fail.hpp"
#include "text/base/unicode.hpp"
#include "text/pipeline/model.hpp"

namespace bertcl::text {
namespace {

struct Merge {
  std::uint32_t rank;
  std::int32_t id;  // of the token that the pair becomes
};

/// Merges by the ids of a pair: a hash table with open addressing, at most half full.
class Merges {
 public:
  explicit Merges(std::size_t count) {
    std::size_t size = 16;
    while (size < 2 * count) size *= 2;
    entries_.resize(size);
  }

  void set(std::int32_t left, std::int32_t right, Merge merge) {
    Entry& entry = entries_[place_of(key_of(left, right))];
    entry = {key_of(left, right), merge};
  }

  const Merge* find(std::int32_t left, std::int32_t right) const {
    const Entry& entry = entries_[place_of(key_of(left, right))];
    return entry.key == kFree ? nullptr : &entry.merge;
  }

 private:
  static constexpr std::uint64_t kFree = ~std::uint64_t{0};
  struct Entry {
    std::uint64_t key = kFree;
    Merge merge{};
  };

  static std::uint64_t key_of(std::int32_t left, std::int32_t right) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 |
           static_cast<std::uint32_t>(right);
  }

  std::size_t place_of(std::uint64_t key) const {
    std::uint64_t hash = key * 0x9E3779B97F4A7C15U;
    hash ^= hash >> 32;
    const std::size_t mask = entries_.size() - 1;
    std::size_t place = static_cast<std::size_t>(hash) & mask;
    while (entries_[place].key != kFree && entries_[place].key != key) place = (place + 1) & mask;
    return place;
  }

  std::vector<Entry> entries_;
};

struct Symbol {
  std::int32_t id;
  int previous, next;    // -1: none
  std::uint32_t length;  // bytes; 0: merged into the one before
};

struct Candidate {
  std::uint32_t rank;
  int place;  // of the left symbol
  std::int32_t id;
  /// The least rank first, then the leftmost.
  friend bool operator<(const Candidate& a, const Candidate& b) {
    return a.rank != b.rank ? a.rank > b.rank : a.place > b.place;
  }
};

/// The symbols of a word, and its pairs that can be merged.
class Word {
 public:
  explicit Word(const Merges& merges) : merges_(merges) {}

  void add(std::int32_t id, std::uint32_t length) {
    const int place = static_cast<int>(symbols_.size());
    if (place > 0) symbols_.back().next = place;
    symbols_.push_back({id, place - 1, -1, length});
  }

  void merge_all() {
    for (int place = 0; place + 1 < static_cast<int>(symbols_.size()); ++place) add_pair(place);
    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end());
      const Candidate best = heap_.back();
      heap_.pop_back();
      merge(best);
    }
  }

  /// Tokens of a word of `size` bytes. Bytes of a prefix or suffix count as bytes of the word, as
  /// in Hugging Face's tokenizers; those past its end stand for its last byte.
  void give(std::uint32_t size, std::vector<Token>& tokens) const {
    std::uint32_t begin = 0;
    for (const Symbol& symbol : symbols_) {
      if (symbol.length == 0) continue;
      const std::uint32_t end = begin + symbol.length;
      tokens.push_back({symbol.id, std::min(begin, size - 1), std::min(end, size)});
      begin = end;
    }
  }

 private:
  Symbol& at(int place) { return symbols_[place]; }

  void add_pair(int place) {
    const int next = at(place).next;
    if (next < 0) return;
    const Merge* merge = merges_.find(at(place).id, at(next).id);
    if (merge == nullptr) return;
    heap_.push_back({merge->rank, place, merge->id});
    std::push_heap(heap_.begin(), heap_.end());
  }

  void merge(const Candidate& best) {
    Symbol& left = at(best.place);
    if (left.length == 0 || left.next < 0) return;
    Symbol& right = at(left.next);
    // The pair may be another one by now.
    const Merge* merge = merges_.find(left.id, right.id);
    if (merge == nullptr || merge->id != best.id) return;
    left.id = best.id;
    left.length += right.length;
    left.next = right.next;
    right.length = 0;
    if (left.next >= 0) at(left.next).previous = best.place;
    if (left.previous >= 0) add_pair(left.previous);
    add_pair(best.place);
  }

  const Merges& merges_;
  std::vector<Symbol> symbols_;
  std::vector<Candidate> heap_;
};

class BpeModel : public Model {
 public:
  BpeModel(const Vocabulary& vocabulary, const BpeOptions& options, const std::string& place)
      : vocabulary_(vocabulary),
        merges_(options.merges.size()),
        prefix_(options.prefix),
        suffix_(options.suffix),
        fuse_unknown_(options.fuse_unknown),
        ignore_merges_(options.ignore_merges) {
    if (options.unknown) unknown_ = vocabulary.find(*options.unknown);
    if (options.byte_fallback) find_bytes();
    for (std::size_t rank = 0; rank < options.merges.size(); ++rank) {
      const auto& [left, right] = options.merges[rank];
      const auto id_of = [&](const std::string& token) {
        const auto id = vocabulary.find(token);
        if (!id)
          fail(
              "{}[{}] merges \"{}\" and \"{}\", but \"{}\" is not in the "
              "vocabulary of {} tokens",
              place, rank, left, right, token, vocabulary.size());
        return *id;
      };
      const std::string merged = left + right.substr(std::min(prefix_.size(), right.size()));
      merges_.set(id_of(left), id_of(right), {static_cast<std::uint32_t>(rank), id_of(merged)});
    }
  }

  void tokenize(std::string_view word, std::vector<Token>& tokens) const override {
    const auto size = static_cast<std::uint32_t>(word.size());
    if (ignore_merges_) {
      if (const auto id = vocabulary_.find(word)) return tokens.push_back({*id, 0, size});
    }
    Word symbols(merges_);
    std::uint32_t unknown = 0;  // bytes of the unknown token that is still open
    const auto close_unknown = [&] {
      if (unknown > 0) symbols.add(*unknown_, unknown);
      unknown = 0;
    };
    std::string text;  // of a symbol with prefix and suffix
    for (std::size_t position = 0; position < word.size();) {
      const std::size_t begin = position;
      next_code_point(word, position);
      const std::string_view character = word.substr(begin, position - begin);
      std::string_view symbol = character;
      if ((begin > 0 && !prefix_.empty()) || (position == word.size() && !suffix_.empty())) {
        text.assign(begin > 0 ? prefix_ : "").append(character);
        if (position == word.size()) text.append(suffix_);
        symbol = text;
      }
      const auto length = static_cast<std::uint32_t>(character.size());
      if (const auto id = vocabulary_.find(symbol)) {
        close_unknown();
        symbols.add(*id, length);
      } else if (has_bytes(symbol)) {
        for (const char byte : symbol) symbols.add(bytes_[static_cast<unsigned char>(byte)], 1);
      } else if (unknown_) {
        if (!fuse_unknown_) close_unknown();
        unknown += length;
      }
    }
    close_unknown();
    symbols.merge_all();
    symbols.give(size, tokens);
  }

  std::optional<std::int32_t> unknown() const override { return unknown_; }

 private:
  void find_bytes() {
    for (int byte = 0; byte < 256; ++byte)
      bytes_[byte] = vocabulary_.find(fmt::format("<0x{:02X}>", byte)).value_or(-1);
  }

  bool has_bytes(std::string_view text) const {
    return std::ranges::all_of(
        text, [&](char byte) { return bytes_[static_cast<unsigned char>(byte)] >= 0; });
  }

  static std::array<std::int32_t, 256> no_bytes() {
    std::array<std::int32_t, 256> none{};
    none.fill(-1);
    return none;
  }

  const Vocabulary& vocabulary_;
  Merges merges_;
  std::string prefix_, suffix_;
  bool fuse_unknown_, ignore_merges_;
  std::optional<std::int32_t> unknown_;
  std::array<std::int32_t, 256> bytes_ = no_bytes();  // tokens "<0x0A>"; -1: none, or no fallback
};

}  // namespace

std::unique_ptr<Model> bpe_model(const Vocabulary& vocabulary, const BpeOptions& options,
                                 const std::string& place) {
  return std::make_unique<BpeModel>(vocabulary, options, place);
}

}  // namespace bertcl::text
