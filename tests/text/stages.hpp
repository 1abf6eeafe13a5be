// SPDX-License-Identifier: Apache-2.0
// What stages of a tokenizer make of a text.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "text/base/json_node.hpp"
#include "text/pipeline/normalizers.hpp"
#include "text/pipeline/parts.hpp"
#include "text/pipeline/pre_tokenizers.hpp"

namespace bertcl::text {

using Words = std::vector<std::string>;

/// Parts of a text after a stage, and what each stands for in the text.
struct StageResult {
  Words words, originals;
};

inline StageResult apply_stage(std::string_view text, const Stage& stage) {
  Parts parts(text);
  stage(parts);
  StageResult result;
  for (const Part& part : parts.parts) {
    result.words.emplace_back(parts.text_of(part));
    if (part.begin == part.end) continue;
    const Span span = parts.original(part.begin, part.end);
    result.originals.emplace_back(text.substr(span.begin, span.end - span.begin));
  }
  return result;
}

inline StageResult normalized(std::string_view text, const char* normalizer) {
  const nlohmann::json document = nlohmann::json::parse(normalizer);
  return apply_stage(text, read_normalizer(JsonNode(document)));
}

inline StageResult split(std::string_view text, const char* pre_tokenizer) {
  const nlohmann::json document = nlohmann::json::parse(pre_tokenizer);
  return apply_stage(text, read_pre_tokenizer(JsonNode(document)));
}

}  // namespace bertcl::text
