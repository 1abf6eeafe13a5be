// SPDX-License-Identifier: Apache-2.0
// The most probable way to put a word together from tokens, by Viterbi's algorithm
// (`EncodeOptimized` of google/sentencepiece src/unigram_model.cc).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <string>

#include "support/fail.hpp"
#include "text/base/unicode.hpp"
#include "text/pipeline/model.hpp"

namespace bertcl::text {
namespace {

/// All tokens that a text begins with. Children of a node lie side by side, ordered by their byte.
class Trie {
 public:
  explicit Trie(const Vocabulary& vocabulary) {
    std::vector<std::int32_t> order;
    for (std::size_t i = 0; i < vocabulary.size(); ++i) {
      const auto id = static_cast<std::int32_t>(i);
      const std::string& token = vocabulary.at(id);
      if (!token.empty() && vocabulary.find(token) == id) order.push_back(id);
    }
    std::ranges::sort(
        order, [&](std::int32_t a, std::int32_t b) { return vocabulary.at(a) < vocabulary.at(b); });
    build(vocabulary, order);
  }

  /// Calls visit(end, id) for each token at `begin`, the shortest first.
  template <typename Visit>
  void each_prefix(std::string_view text, std::size_t begin, const Visit& visit) const {
    std::uint32_t node = 0;
    for (std::size_t end = begin; end < text.size();) {
      node = child(node, static_cast<unsigned char>(text[end++]));
      if (node == 0) return;
      if (nodes_[node].id >= 0) visit(end, nodes_[node].id);
    }
  }

 private:
  struct Node {
    std::uint32_t children = 0;  // the first one
    std::uint32_t count = 0;
    std::int32_t id = -1;
  };

  struct Range {  // tokens of `order` that share the path to a node
    std::size_t begin, end, depth;
    std::uint32_t node;
  };

  void build(const Vocabulary& vocabulary, const std::vector<std::int32_t>& order) {
    const auto byte_of = [&](std::size_t i, std::size_t depth) {
      return static_cast<unsigned char>(vocabulary.at(order[i])[depth]);
    };
    nodes_.emplace_back();
    bytes_.push_back(0);
    std::vector<Range> open{{0, order.size(), 0, 0}};
    while (!open.empty()) {
      Range range = open.back();
      open.pop_back();
      if (range.begin < range.end && vocabulary.at(order[range.begin]).size() == range.depth)
        nodes_[range.node].id = order[range.begin++];
      nodes_[range.node].children = static_cast<std::uint32_t>(nodes_.size());
      for (std::size_t begin = range.begin; begin < range.end;) {
        const unsigned char byte = byte_of(begin, range.depth);
        std::size_t end = begin + 1;
        while (end < range.end && byte_of(end, range.depth) == byte) ++end;
        open.push_back({begin, end, range.depth + 1, static_cast<std::uint32_t>(nodes_.size())});
        nodes_.emplace_back();
        bytes_.push_back(byte);
        ++nodes_[range.node].count;
        begin = end;
      }
    }
    for (std::uint32_t i = 0; i < nodes_[0].count; ++i)
      roots_[bytes_[nodes_[0].children + i]] = nodes_[0].children + i;
  }

  /// 0: none.
  std::uint32_t child(std::uint32_t node, unsigned char byte) const {
    if (node == 0) return roots_[byte];
    const auto begin = bytes_.begin() + nodes_[node].children;
    const auto end = begin + nodes_[node].count;
    const auto found = std::lower_bound(begin, end, byte);
    if (found == end || *found != byte) return 0;
    return nodes_[node].children + static_cast<std::uint32_t>(found - begin);
  }

  std::vector<Node> nodes_;
  std::vector<unsigned char> bytes_;        // [nodes] byte that leads to it
  std::array<std::uint32_t, 256> roots_{};  // children of the root by their byte
};

class UnigramModel : public Model {
 public:
  UnigramModel(const Vocabulary& vocabulary, UnigramOptions options)
      : vocabulary_(vocabulary), options_(std::move(options)), trie_(vocabulary) {
    constexpr double penalty = 10.0;
    unknown_score_ = std::accumulate(options_.scores.begin(), options_.scores.end(),
                                     std::numeric_limits<double>::infinity(),
                                     [](double a, double b) { return std::min(a, b); }) -
                     penalty;
  }

  void tokenize(std::string_view word, std::vector<Token>& tokens) const override {
    const std::vector<Step> steps = best_steps(word);
    const std::size_t before = tokens.size();
    for (std::size_t end = word.size(); end > 0;) {
      std::size_t begin = steps[end].begin;
      const std::int32_t id = steps[end].id;
      if (id != options_.unknown) {
        tokens.push_back({id, static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end)});
      } else {
        while (begin > 0 && steps[begin].id == id) begin = steps[begin].begin;
        add_unknown(word, begin, end, tokens);
      }
      end = begin;
    }
    std::reverse(tokens.begin() + static_cast<std::ptrdiff_t>(before), tokens.end());
  }

  std::optional<std::int32_t> unknown() const override { return options_.unknown; }

 private:
  /// The last token of the best way to a byte of the word.
  struct Step {
    double score = 0.0;  // of all the way
    std::int32_t id = -1;
    std::uint32_t begin = 0;
  };

  std::vector<Step> best_steps(std::string_view word) const {
    std::vector<Step> steps(word.size() + 1);
    for (std::size_t begin = 0; begin < word.size();) {
      std::size_t next = begin;
      next_code_point(word, next);
      const double score = steps[begin].score;
      bool single = false;  // a token of this one character
      const auto offer = [&](std::size_t end, std::int32_t id, double total) {
        Step& step = steps[end];
        if (step.id < 0 || total > step.score)
          step = {total, id, static_cast<std::uint32_t>(begin)};
      };
      trie_.each_prefix(word, begin, [&](std::size_t end, std::int32_t id) {
        offer(end, id, options_.scores[id] + score);
        single = single || end == next;
      });
      if (!single)
        offer(next, unknown_id(word.substr(begin, next - begin)), unknown_score_ + score);
      begin = next;
    }
    return steps;
  }

  std::int32_t unknown_id(std::string_view character) const {
    if (options_.unknown) return *options_.unknown;
    fail("no token for \"{}\", and the tokenizer has no unknown token (unk_id)", character);
  }

  /// Neighbouring unknown characters are one token, or their bytes. Added in reverse.
  void add_unknown(std::string_view word, std::size_t begin, std::size_t end,
                   std::vector<Token>& tokens) const {
    const std::string_view text = word.substr(begin, end - begin);
    const Token whole{vocabulary_.find(text).value_or(-1), static_cast<std::uint32_t>(begin),
                      static_cast<std::uint32_t>(end)};
    if (whole.id >= 0) return tokens.push_back(whole);
    const std::size_t before = tokens.size();
    for (auto byte = text.rbegin(); options_.byte_fallback && byte != text.rend(); ++byte) {
      const auto id =
          vocabulary_.find(fmt::format("<0x{:02X}>", static_cast<unsigned char>(*byte)));
      if (!id) {
        tokens.resize(before);
        break;
      }
      tokens.push_back({*id, whole.begin, whole.end});
    }
    if (tokens.size() == before) tokens.push_back({*options_.unknown, whole.begin, whole.end});
  }

  const Vocabulary& vocabulary_;
  UnigramOptions options_;
  Trie trie_;
  double unknown_score_;
};

}  // namespace

std::unique_ptr<Model> unigram_model(const Vocabulary& vocabulary, UnigramOptions options) {
  return std::make_unique<UnigramModel>(vocabulary, std::move(options));
}

}  // namespace bertcl::text
