// SPDX-License-Identifier: Apache-2.0
// The routes of text-embeddings-inference for tokens: /tokenize and /decode.
#include <algorithm>
#include <string>
#include <utility>

#include "serve/inputs.hpp"
#include "serve/json_text.hpp"
#include "serve/routes/routes.hpp"

namespace bertcl::serve {
namespace {

using Json = nlohmann::ordered_json;

Model& any_model(Context& context, const text::JsonNode& body) {
  return context.service.model_for(
      context,
      {Kind::embedding, Kind::classifier, Kind::reranker, Kind::question_answering, Kind::other},
      body);
}

/// A list of tokens in JSON; its text is a fraction of what a document of it takes.
class TokenList {
 public:
  explicit TokenList(const text::Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  /// Without a place: a special token, or one of a tokenizer that does not tell.
  void add(std::int32_t id, bool special) {
    add(id, tokenizer_.token(id), special, "null", "null");
  }
  /// With the bytes that it stands for; part of a character is U+FFFD.
  void add(std::int32_t id, std::string_view text, text::Span place) {
    add(id, std::string(text.substr(place.begin, place.end - place.begin)), false,
        std::to_string(place.begin), std::to_string(place.end));
  }
  void add_special(const std::vector<std::int32_t>& ids) {
    for (const std::int32_t id : ids) add(id, true);
  }
  std::size_t count() const { return count_; }
  std::string text() && { return count_ == 0 ? "[]" : std::move(text_) + ']'; }

 private:
  void add(std::int32_t id, const std::string& text, bool special, const std::string& start,
           const std::string& stop) {
    text_ += count_++ == 0 ? "[" : ",";
    text_ += R"({"id":)" + std::to_string(id) + R"(,"text":)" + dump(text) + R"(,"special":)" +
             (special ? "true" : "false") + R"(,"start":)" + start + R"(,"stop":)" + stop + '}';
  }

  const text::Tokenizer& tokenizer_;
  std::string text_;
  std::size_t count_ = 0;
};

/// Of a text with at most `max` tokens. Throws HttpError 413.
TokenList tokens_of(const text::Tokenizer& tokenizer, const std::string& text, bool special,
                    std::size_t max) {
  const auto [ids, spans, words] = tokenizer.has_spans()
                                       ? tokenizer.encode_with_spans(text)
                                       : text::Encoding{tokenizer.encode(text), {}, {}};
  if (ids.size() > max)
    throw HttpError(413, "Validation",
                    "the texts have more tokens than the queue can ever hold (--max-queue-tokens)");
  TokenList tokens(tokenizer);
  if (special) tokens.add_special(tokenizer.special().before);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (i < spans.size())
      tokens.add(ids[i], text, spans[i]);
    else
      tokens.add(ids[i], false);
  }
  if (special) tokens.add_special(tokenizer.special().after);
  return tokens;
}

}  // namespace

HttpResponse tokenize_route(Context& context) {
  const text::JsonNode body = context.body();
  Model& model = any_model(context, body);
  const text::JsonNode inputs = body.at("inputs");
  const std::vector<std::string> texts = inputs.value().is_string()
                                             ? std::vector<std::string>{inputs.string()}
                                             : read_texts(context, inputs);
  context.record.texts = texts.size();
  const std::string prompt = body.find("prompt_name") ? prompt_of(model, body) : "";
  const bool special = body.flag("add_special_tokens", true);
  std::size_t left = model.batcher().options().max_queue_tokens;
  HttpResponse response;
  append_list(response.body, texts.size(), [&](std::size_t i) {
    context.check_time();
    TokenList tokens = tokens_of(*model.setup().tokenizer, prompt + texts[i], special, left);
    left -= std::min(left, tokens.count());
    context.record.tokens += tokens.count();
    response.body += std::move(tokens).text();
  });
  return response;
}

HttpResponse decode_route(Context& context) {
  const text::JsonNode body = context.body();
  const Model& model = any_model(context, body);
  const std::vector<Input> inputs = read_inputs(context, body.at("ids"));
  context.record.texts = inputs.size();
  const bool skip = body.flag("skip_special_tokens", true);
  Json texts = Json::array();
  for (const Input& input : inputs) {
    if (input.text) body.at("ids").fail("has a text; it takes token ids");
    context.record.tokens += input.ids.size();
    texts.push_back(model.decoder()(input.ids, skip));
  }
  return {200, dump(texts)};
}

}  // namespace bertcl::serve
