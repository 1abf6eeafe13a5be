// SPDX-License-Identifier: Apache-2.0
// The patterns of a tokenizer.json: {"String": ".."} and {"Regex": ".."}.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/json_node.hpp"
#include "text/pipeline/parts.hpp"

namespace bertcl::text {

class Pattern {
 public:
  /// Throws Error on a regular expression that ICU does not take.
  static Pattern of(const JsonNode& node);
  Pattern(Pattern&&) noexcept;
  Pattern& operator=(Pattern&&) noexcept;
  ~Pattern();

  /// Adds matches that cover a text, which is not empty.
  void find(std::string_view text, std::vector<Match>& matches) const;

 private:
  struct Expression;
  Pattern();
  std::string literal_;
  std::unique_ptr<Expression> expression_;
};

}  // namespace bertcl::text
