// SPDX-License-Identifier: Apache-2.0
// Words -> word pieces by greedy longest match.
#include <algorithm>
#include <string>

#include "text/base/unicode.hpp"
#include "text/pipeline/model.hpp"

namespace bertcl::text {
namespace {

class WordPieceModel : public Model {
 public:
  WordPieceModel(const Vocabulary& vocabulary, WordPieceOptions options)
      : vocabulary_(vocabulary),
        options_(std::move(options)),
        unknown_(vocabulary.find(options_.unknown).value()) {
    for (std::size_t id = 0; id < vocabulary.size(); ++id)
      longest_ = std::max(longest_, vocabulary.at(static_cast<std::int32_t>(id)).size());
  }

  void tokenize(std::string_view word, std::vector<Token>& tokens) const override {
    const std::size_t before = tokens.size();
    const auto size = static_cast<std::uint32_t>(word.size());
    bool known =
        word.size() <= options_.longest_word || count_code_points(word) <= options_.longest_word;
    std::string piece;  // with the prefix
    for (std::uint32_t begin = 0; known && begin < size;) {
      piece.assign(begin == 0 ? "" : options_.prefix);
      const std::size_t prefix = piece.size();
      piece.append(word.substr(begin, longest_));
      known = false;
      for (std::size_t length = piece.size(); length > prefix; --length) {
        const auto end = begin + static_cast<std::uint32_t>(length - prefix);
        if (is_inside(word, end)) continue;
        const auto id = vocabulary_.find(std::string_view(piece).substr(0, length));
        if (!id) continue;
        tokens.push_back({*id, begin, end});
        begin = end;
        known = true;
        break;
      }
    }
    if (known) return;
    tokens.resize(before);
    tokens.push_back({unknown_, 0, size});
  }

  std::optional<std::int32_t> unknown() const override { return unknown_; }

 private:
  const Vocabulary& vocabulary_;
  WordPieceOptions options_;
  std::int32_t unknown_;
  std::size_t longest_ = 0;  // bytes of the longest token
};

}  // namespace

std::unique_ptr<Model> wordpiece_model(const Vocabulary& vocabulary, WordPieceOptions options) {
  return std::make_unique<WordPieceModel>(vocabulary, std::move(options));
}

}  // namespace bertcl::text
