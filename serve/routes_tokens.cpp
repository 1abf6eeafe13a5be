// SPDX-License-Identifier: Apache-2.0
// The routes of text-embeddings-inference for tokens: /tokenize and /decode.
#include <algorithm>
#include <string>
#include <utility>

#include "bertcl/error.hpp"
#include "serve/decode.hpp"
#include "serve/inputs.hpp"
#include "serve/json_text.hpp"
#include "serve/routes.hpp"
#include "text/unicode.hpp"

namespace bertcl::serve {
namespace {

using Json = nlohmann::ordered_json;

Model& any_model(Context& context, const text::JsonNode& body) {
  const auto name = body.find("model");
  return context.service.model_for(
      context,
      {Kind::embedding, Kind::classifier, Kind::reranker, Kind::question_answering, Kind::other},
      name ? name->string() : "");
}

bool flag_or_true(const text::JsonNode& body, const char* name) {
  const auto found = body.find(name);
  return !found || found->boolean();
}

/// Where tokens are in the text, in code points; empty with a vocab.txt, which does not tell.
std::vector<text::Span> spans_of(const text::Tokenizer& tokenizer, const std::string& text,
                                 std::vector<std::int32_t>& ids) {
  try {
    text::Encoding encoding = tokenizer.encode_with_spans(text);
    ids = std::move(encoding.ids);
    return std::move(encoding.spans);
  } catch (const Error&) {
    ids = tokenizer.encode(text);
    return {};
  }
}

Json tokens_of(const text::Tokenizer& tokenizer, const std::string& text, bool special) {
  std::vector<std::int32_t> ids;
  const std::vector<text::Span> spans = spans_of(tokenizer, text, ids);
  Json tokens = Json::array();
  const auto add = [&](std::int32_t id, bool is_special) -> Json& {
    tokens.push_back({{"id", id},
                      {"text", tokenizer.token(id)},
                      {"special", is_special},
                      {"start", nullptr},
                      {"stop", nullptr}});
    return tokens.back();
  };
  if (special)
    for (const std::int32_t id : tokenizer.special().before) add(id, true);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    Json& token = add(ids[i], false);
    if (i >= spans.size()) continue;
    const std::string_view all = text;
    token["start"] = text::count_code_points(all.substr(0, spans[i].begin));
    token["stop"] = text::count_code_points(all.substr(0, spans[i].end));
  }
  if (special)
    for (const std::int32_t id : tokenizer.special().after) add(id, true);
  return tokens;
}

}  // namespace

Reply tokenize_route(Context& context) {
  const text::JsonNode body = context.body();
  const Model& model = any_model(context, body);
  const text::JsonNode inputs = body.at("inputs");
  const std::vector<std::string> texts =
      inputs.value().is_string() ? std::vector<std::string>{inputs.string()} : read_texts(inputs);
  context.check_count(texts.size());
  context.record.texts = texts.size();
  const std::string prompt = body.find("prompt_name") ? prompt_of(model, body) : "";
  const bool special = flag_or_true(body, "add_special_tokens");
  Json all = Json::array();
  for (const std::string& text : texts) {
    all.push_back(tokens_of(*model.setup().tokenizer, prompt + text, special));
    context.record.tokens += all.back().size();
  }
  return {200, dump(all)};
}

Reply decode_route(Context& context) {
  const text::JsonNode body = context.body();
  const Model& model = any_model(context, body);
  const std::vector<Input> inputs = read_inputs(body.at("ids"));
  context.check_count(inputs.size());
  context.record.texts = inputs.size();
  const bool skip = flag_or_true(body, "skip_special_tokens");
  Json texts = Json::array();
  for (const Input& input : inputs) {
    if (input.text) body.at("ids").fail("has a text; it takes token ids");
    context.record.tokens += input.ids.size();
    texts.push_back(decode(*model.setup().tokenizer, input.ids, skip));
  }
  return {200, dump(texts)};
}

}  // namespace bertcl::serve
