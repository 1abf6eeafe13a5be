// SPDX-License-Identifier: Apache-2.0
// tokenizer.json of Hugging Face's tokenizers.
//
//   {"added_tokens": [{"id": 0, "content": "[PAD]", "special": true, ..}, ..],
//    "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
//                   "strip_accents": null, "lowercase": true},
//    "pre_tokenizer": {"type": "BertPreTokenizer"},
//    "post_processor": {"type": "TemplateProcessing", ..}, "truncation": null,
//    "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
//              "max_input_chars_per_word": 100, "vocab": {"[PAD]": 0, ..}}, ..}
#include "text/tokenizer_json.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "text/base/json_node.hpp"
#include "text/pipeline/normalizers.hpp"
#include "text/pipeline/pipeline.hpp"
#include "text/pipeline/pre_tokenizers.hpp"

namespace bertcl::text {
namespace {

using Json = nlohmann::json;

/// Its type; "" where it has none. That it is a string, the readers of parts check.
std::string type_of(const Json& part) {
  const auto type = part.find("type");
  return type != part.end() && type->is_string() ? type->get<std::string>() : "";
}

std::string kind_of(const Json& root, const char* part) {
  const auto found = root.find(part);
  return found != root.end() && found->is_object() ? type_of(*found) : "";
}

/// Sets the options in every BertNormalizer.
void set_options(Json& normalizer, const TokenizerOptions& options) {
  if (normalizer.is_array())
    for (Json& each : normalizer) set_options(each, options);
  if (!normalizer.is_object()) return;
  if (normalizer.contains("normalizers")) set_options(normalizer["normalizers"], options);
  if (!normalizer.contains("type") || normalizer["type"] != "BertNormalizer") return;
  const auto set = [&](const char* key, const std::optional<bool>& value) {
    if (value) normalizer[key] = *value;
  };
  set("lowercase", options.lower_case);
  set("strip_accents", options.strip_accents);
  set("handle_chinese_chars", options.split_cjk);
}

/// What BasicTokenizer does, if that and word pieces are what the file describes. Values of other
/// types are left to the readers of parts.
std::optional<TokenizerOptions> options_of_bert(const Json& root) {
  if (kind_of(root, "model") != "WordPiece" || kind_of(root, "normalizer") != "BertNormalizer" ||
      kind_of(root, "pre_tokenizer") != "BertPreTokenizer")
    return std::nullopt;
  const Json prefix = root["model"].value("continuing_subword_prefix", Json());
  if (!prefix.is_null() && prefix != "##") return std::nullopt;
  const auto flag = [&](const char* key) {
    const Json value = root["normalizer"].value(key, Json());
    return value.is_boolean() ? std::optional(value.get<bool>()) : std::nullopt;
  };
  if (!flag("clean_text").value_or(true)) return std::nullopt;
  return TokenizerOptions{.lower_case = flag("lowercase"),
                          .strip_accents = flag("strip_accents"),
                          .split_cjk = flag("handle_chinese_chars")};
}

std::optional<std::int64_t> id_in(const Json& document, const char* token) {
  const Json added = document.value("added_tokens", Json());
  for (const Json& each : added.is_array() ? added : Json::array())
    if (each.is_object() && each.value("content", Json()) == token && each.contains("id") &&
        each["id"].is_number_integer())
      return each["id"].get<std::int64_t>();
  const Json vocabulary = document["model"].value("vocab", Json());
  const auto found = vocabulary.find(token);
  if (found == vocabulary.end() || !found->is_number_integer()) return std::nullopt;
  return found->get<std::int64_t>();
}

/// Gives a file of BERT's parts that leaves the tokens around texts to the reader BERT's, as
/// BertTokenizer of transformers 5.23.0 does. Returns whether it is one.
bool surround_as_bert(Json& document) {
  const auto own = document.find("post_processor");
  if ((own != document.end() && !own->is_null()) || !options_of_bert(document)) return false;
  const auto begin = id_in(document, "[CLS]"), end = id_in(document, "[SEP]");
  if (!begin || !end) return false;
  document["post_processor"] = {
      {"type", "BertProcessing"}, {"cls", {"[CLS]", *begin}}, {"sep", {"[SEP]", *end}}};
  return true;
}

AddedTokens read_added_tokens(const JsonNode& root, const Pipeline& pipeline) {
  std::vector<AddedToken> tokens;
  if (const auto added = root.find("added_tokens")) {
    Vocabulary ids;  // finds ids that two tokens have
    added->each([&](const JsonNode& node) {
      AddedToken token = read_added_token(node);
      const JsonNode id = node.at("id");
      ids.add(token.content, id);
      token.id = static_cast<std::int32_t>(id.integer());
      if (const auto known = pipeline.vocabulary.find(token.content); known && *known != token.id)
        id.fail("is the id {}, but \"{}\" already has the id {}", token.id, token.content, *known);
      tokens.push_back(std::move(token));
    });
  }
  return {std::move(tokens), pipeline.normalizer};
}

/// Special tokens must be in the vocabulary.
void check_special(const JsonNode& node, const Pipeline& pipeline) {
  for (const std::int32_t id : pipeline.post_processor.special.all_ids())
    if (pipeline.token_of(id) == nullptr)
      node.fail("adds token id {}, which is not in the vocabulary of {} tokens", id,
                pipeline.size());
}

void read_truncation(const JsonNode& root, Pipeline& pipeline) {
  const auto truncation = root.find("truncation");
  if (!truncation) return;
  if (const auto direction = truncation->find("direction")) {
    pipeline.truncates_left = direction->string() == "Left";
    if (!pipeline.truncates_left && direction->string() != "Right")
      direction->fail(fmt::format("is \"{}\" (choose from Right, Left)", direction->string()));
  }
  const JsonNode length = truncation->at("max_length");
  const std::int64_t longest = length.integer();
  if (longest < 1 || longest > 1'000'000'000)
    length.fail("is {}; expected a number of tokens", longest);
  pipeline.longest = static_cast<int>(longest);
}

bool is_byte_level(const Json& pre_tokenizer) {
  if (!pre_tokenizer.is_object()) return false;
  if (type_of(pre_tokenizer) == "ByteLevel") return true;
  if (pre_tokenizer.contains("pretokenizers"))
    for (const Json& each : pre_tokenizer["pretokenizers"])
      if (is_byte_level(each)) return true;
  return false;
}

}  // namespace

bool overrule(Json& document, const TokenizerOptions& options) {
  const bool changed = options.adds_to_file && surround_as_bert(document);
  const auto normalizer = document.find("normalizer");
  if (normalizer == document.end()) return changed;
  const Json before = *normalizer;
  set_options(*normalizer, options);
  return changed || *normalizer != before;
}

std::shared_ptr<const Pipeline> make_pipeline(Json document, const std::string& origin,
                                              const TokenizerOptions& options) {
  overrule(document, options);
  const JsonNode root(document, origin, kTokenizerHint);
  const auto model = root.find("model");
  if (!model) root.fail("is JSON, but not a tokenizer.json: it has no model");

  auto pipeline = std::make_shared<Pipeline>();
  if (options.max_word_chars && document["model"].is_object())
    document["model"]["max_input_chars_per_word"] = *options.max_word_chars;
  pipeline->model = read_model(*model, pipeline->vocabulary);
  if (const auto node = root.find("normalizer")) pipeline->normalizer = read_normalizer(*node);
  if (const auto node = root.find("pre_tokenizer"))
    pipeline->pre_tokenizer = read_pre_tokenizer(*node);
  pipeline->added = read_added_tokens(root, *pipeline);
  pipeline->bert = options_of_bert(document);
  if (const auto node = root.find("post_processor")) {
    pipeline->post_processor = read_post_processor(*node);
    check_special(*node, *pipeline);
  }
  if (const auto node = root.find("decoder")) pipeline->decoders = read_decoders(*node);
  read_truncation(root, *pipeline);
  pipeline->truncates_left = options.cut_left.value_or(pipeline->truncates_left);
  pipeline->word_pieces = kind_of_model(*model) == "WordPiece";
  const auto prefix = model->find("continuing_subword_prefix");
  pipeline->marks_pieces = prefix ? !prefix->string().empty() : pipeline->word_pieces;
  pipeline->unknown_as_text = kind_of_model(*model) == "Unigram";
  pipeline->byte_level =
      document.contains("pre_tokenizer") && is_byte_level(document["pre_tokenizer"]);
  return pipeline;
}

}  // namespace bertcl::text
