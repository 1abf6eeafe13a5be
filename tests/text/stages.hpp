// SPDX-License-Identifier: Apache-2.0
// What stages of a tokenizer make of a text.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "text/json_node.hpp"
#include "text/pipeline/normalizers.hpp"
#include "text/pipeline/parts.hpp"
#include "text/pipeline/pre_tokenizers.hpp"

namespace bertcl::text {

using Words = std::vector<std::string>;

/// Parts of a text after stages, and what each stands for in the text.
struct StageResult {
  Words words, originals;
};

inline StageResult apply_stages(std::string_view text, const Stages& stages) {
  Parts parts(text);
  for (const auto& stage : stages) stage->apply(parts);
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
  Stages stages;
  add_normalizers(JsonNode(document), stages);
  return apply_stages(text, stages);
}

inline StageResult split(std::string_view text, const char* pre_tokenizer) {
  const nlohmann::json document = nlohmann::json::parse(pre_tokenizer);
  Stages stages;
  add_pre_tokenizers(JsonNode(document), stages);
  return apply_stages(text, stages);
}

}  // namespace bertcl::text
