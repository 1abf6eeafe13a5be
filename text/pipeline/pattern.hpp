// SPDX-License-Identifier: Apache-2.0
// The patterns of a tokenizer.json: {"String": ".."} and {"Regex": ".."}.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/base/json_node.hpp"
#include "text/pipeline/parts.hpp"
#include "text/pipeline/search_error.hpp"

namespace bertcl::text {

class Pattern {
 public:
  /// Throws Error on a regular expression that ICU does not take.
  static Pattern of(const JsonNode& node);

  /// Searches the parts of one text.
  class Search;

 private:
  struct Expression;
  std::string literal_;
  std::shared_ptr<const Expression> expression_;
};

/// Its time and memory are bounded: the pattern comes with a model, the text from anyone, and
/// together they may take time that doubles with each character. The pattern outlives it.
class Pattern::Search {
 public:
  /// A search through parts of `bytes` in all.
  Search(const Pattern& pattern, std::size_t bytes);
  Search(const Search&) = delete;
  Search& operator=(const Search&) = delete;
  ~Search();

  /// Adds matches that cover a part, which is not empty. Throws SearchError where a bound is
  /// met.
  void find(std::string_view part, std::vector<Match>& matches);

 private:
  struct Matcher;
  const Pattern& pattern_;
  std::unique_ptr<Matcher> matcher_;  // none for a string
};

}  // namespace bertcl::text
