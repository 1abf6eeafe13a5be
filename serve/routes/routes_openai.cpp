// SPDX-License-Identifier: Apache-2.0
// The routes of OpenAI's interface: /v1/embeddings and /v1/models.
#include <bit>
#include <span>
#include <string>

#include "serve/inputs.hpp"
#include "serve/json_text.hpp"
#include "serve/routes/routes.hpp"
#include "text/base/base64.hpp"

namespace bertcl::serve {
namespace {

static_assert(std::endian::native == std::endian::little);  // as OpenAI's floats are

bool wants_base64(const text::JsonNode& body) {
  const auto format = body.find("encoding_format");
  if (!format || format->string() == "float") return false;
  if (format->string() != "base64") format->fail("is neither \"float\" nor \"base64\"");
  return true;
}

HttpResponse embeddings_route(Context& context) {
  const text::JsonNode body = context.body();
  Model& model = context.service.model_for(context, {Kind::embedding}, body);
  const EmbedRequest request = read_embed_request(context, model, body, "input");
  const bool as_base64 = wants_base64(body);
  const std::vector<Values> vectors = embed(context, model, request);
  HttpResponse response{200, R"({"object":"list","data":)"};
  append_list(response.body, vectors.size(), [&](std::size_t i) {
    response.body += R"({"object":"embedding","index":)" + std::to_string(i) + R"(,"embedding":)";
    if (as_base64)
      response.body += '"' + text::base64(std::as_bytes(std::span(vectors[i]))) + '"';
    else
      append_floats(response.body, vectors[i]);
    response.body += '}';
  });
  const nlohmann::ordered_json usage = {{"prompt_tokens", context.record.tokens},
                                        {"total_tokens", context.record.tokens}};
  response.body += R"(,"model":)" + dump(model.setup().name) + R"(,"usage":)" + dump(usage) + '}';
  return response;
}

nlohmann::ordered_json description(const Model& model) {
  return {{"id", model.setup().name}, {"object", "model"}, {"created", 0}, {"owned_by", "bertcl"}};
}

HttpResponse models_route(Context& context) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const auto& model : context.service.models()) list.push_back(description(*model));
  const nlohmann::ordered_json all = {{"object", "list"}, {"data", list}};
  return {200, dump(all)};
}

HttpResponse openai_model_route(Context& context) {
  const Model& model = context.service.model(context.arguments[0]);
  context.record.model = model.setup().name;
  return {200, dump(description(model))};
}

}  // namespace

std::vector<Route> openai_routes() {
  return {{"POST", "/v1/embeddings", embeddings_route},
          {"POST", "/embeddings", embeddings_route},
          {"GET", "/v1/models", models_route},
          {"GET", "/v1/models/{}", openai_model_route}};
}

}  // namespace bertcl::serve
