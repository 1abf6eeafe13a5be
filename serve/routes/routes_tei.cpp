// SPDX-License-Identifier: Apache-2.0
// The routes of text-embeddings-inference for vectors, and what describes the server.
#include <algorithm>
#include <utility>

#include "serve/inputs.hpp"
#include "serve/json_text.hpp"
#include "serve/metrics.hpp"
#include "serve/routes/routes.hpp"
#include "tasks/scores/vector_similarity.hpp"

namespace bertcl::serve {
namespace {

HttpResponse embed_body(Context& context, const text::JsonNode& body) {
  Model& model = context.service.model_for(context, {Kind::embedding}, body);
  EmbedRequest request = read_embed_request(context, model, body, "inputs");
  request.normalize = body.flag("normalize", true);
  const std::vector<Values> vectors = embed(context, model, request);
  HttpResponse response;
  append_list(response.body, vectors.size(),
              [&](std::size_t i) { append_floats(response.body, vectors[i]); });
  return response;
}

HttpResponse embed_route(Context& context) { return embed_body(context, context.body()); }

HttpResponse predict_route(Context& context) { return predict(context, context.body(), false); }

HttpResponse embed_all_route(Context& context) {
  const text::JsonNode body = context.body();
  Model& model = context.service.model_for(context, {Kind::embedding, Kind::other}, body);
  std::vector<Sequence> sequences =
      sequences_of(context, model, read_embed_request(context, model, body, "inputs"));
  body.flag("normalize", true);  // of no effect, but no number either
  std::vector<std::size_t> tokens;
  for (const Sequence& sequence : sequences) tokens.push_back(sequence.ids.size());
  const std::vector<Values> values = embed_tokens(context, model, std::move(sequences));
  HttpResponse response;
  append_list(response.body, values.size(), [&](std::size_t i) {
    const std::size_t hidden = values[i].size() / tokens[i];
    append_list(response.body, tokens[i], [&](std::size_t token) {
      append_floats(response.body, std::span(values[i]).subspan(token * hidden, hidden));
    });
  });
  return response;
}

HttpResponse similarity_route(Context& context) {
  const text::JsonNode body = context.body();
  Model& model = context.service.model_for(context, {Kind::embedding}, body);
  const text::JsonNode inputs = body.at("inputs");
  const auto parameters = body.find("parameters");
  EmbedRequest request;
  request.prompt = prompt_of(model, parameters.value_or(body));
  request.truncation = context.truncation(parameters.value_or(body));
  for (const std::string& text : read_texts(context, inputs.at("sentences")))
    request.inputs.push_back({text, {}});
  request.inputs.insert(request.inputs.begin(), {inputs.at("source_sentence").string(), {}});
  // The bound is that of the list, to which the source does not belong.
  const std::vector<Values> vectors =
      context.run(model, model.batcher(), sequences_of(context, model, request));
  check_finite(vectors);
  Values similarities;
  for (std::size_t i = 1; i < vectors.size(); ++i)
    similarities.push_back(static_cast<float>(tasks::cosine(vectors[0], vectors[i])));
  HttpResponse response;
  append_floats(response.body, similarities);
  return response;
}

nlohmann::ordered_json type_of(const ModelSetup& setup) {
  if (setup.kind == Kind::embedding)
    return {{"embedding", {{"pooling", setup.pooling.empty() ? "model" : setup.pooling}}}};
  if (setup.kind != Kind::classifier && setup.kind != Kind::reranker)
    return {{name_of(setup.kind), nlohmann::ordered_json::object()}};
  nlohmann::ordered_json names = nlohmann::ordered_json::object(), ids = names;
  const auto classes = std::max<std::size_t>(setup.labels.size(), columns_of(setup).value_or(0));
  for (std::size_t i = 0; i < classes; ++i) {
    names[std::to_string(i)] = setup.label_of(i);
    ids[setup.label_of(i)] = i;
  }
  return {{name_of(setup.kind), {{"id2label", names}, {"label2id", ids}}}};
}

HttpResponse info_route(Context& context) {
  Service& service = context.service;
  const Model& model = *service.models().front();
  const ModelSetup& setup = model.setup();
  const ServiceOptions& options = service.options();
  nlohmann::ordered_json info = {
      {"model_id", setup.path},
      {"model_sha", nullptr},
      {"model_dtype", setup.dtype},
      {"served_model_name", setup.name},
      {"model_type", type_of(setup)},
      {"max_concurrent_requests", options.max_concurrent_requests},
      {"max_input_length", setup.max_length},
      {"max_batch_tokens", service.models().front()->batcher().options().max_batch_tokens},
      {"max_batch_requests", nullptr},
      {"max_client_batch_size", options.max_client_batch},
      {"auto_truncate", options.auto_truncate},
      {"tokenization_workers", options.threads},
      {"version", BERTCL_VERSION},
      {"sha", nullptr},
      {"docker_label", nullptr}};
  for (const auto& other : service.models())
    info["models"].push_back(
        {{"name", other->setup().name}, {"model_type", type_of(other->setup())}});
  return {200, dump(info)};
}

HttpResponse health_route(Context& context) {
  const std::string why = context.service.unavailable();
  if (!why.empty()) throw HttpError(503, "Unhealthy", why);
  return {200, "", "text/plain"};
}

HttpResponse metrics_route(Context& context) {
  return {200, context.service.metrics().text(context.service),
          "text/plain; version=0.0.4; charset=utf-8"};
}

/// Moves the options in `parameters` to where other routes have them.
void flatten_parameters(Context& context, const text::JsonNode& body) {
  const auto given = body.find("parameters");
  if (!given) return;
  if (!given->value().is_object()) given->fail("is not an object");
  nlohmann::json parameters = given->value();
  for (const char* no_option : {"inputs", "model"}) parameters.erase(no_option);
  context.document.update(parameters);
}

/// POST / does what the model is for, as Hugging Face's inference endpoints. Their clients expect
/// the classes of a text as those of a batch of one.
HttpResponse root_route(Context& context) {
  const text::JsonNode body = context.body();
  const auto inputs = body.find("inputs");
  const bool object = inputs && inputs->value().is_object();
  if (object && inputs->find("question")) return answer_route(context);
  if (object && inputs->find("source_sentence")) return similarity_route(context);
  if (body.find("question")) return answer_route(context);
  if (body.find("texts") || body.find("documents")) return rerank_route(context);
  const Model& model =
      context.service.model_for(context, {Kind::embedding, Kind::classifier, Kind::reranker}, body);
  flatten_parameters(context, body);
  if (model.setup().kind == Kind::embedding) return embed_body(context, body);
  return predict(context, body, true);
}

}  // namespace

std::vector<Route> tei_routes() {
  return {{"GET", "/health", health_route, true, true},
          {"GET", "/ping", health_route, true, true},
          {"GET", "/metrics", metrics_route, true, true},
          {"GET", "/info", info_route},
          {"POST", "/", root_route},
          {"POST", "/invocations", root_route},  // SageMaker's, which asks /ping for health
          {"POST", "/embed", embed_route},
          {"POST", "/embed_all", embed_all_route},
          {"POST", "/similarity", similarity_route},
          {"POST", "/predict", predict_route},
          {"POST", "/tokenize", tokenize_route},
          {"POST", "/decode", decode_route}};
}

}  // namespace bertcl::serve
