// SPDX-License-Identifier: Apache-2.0
// The routes for classes and scores: /predict and /rerank of text-embeddings-inference, and the
// rerank of Cohere, Jina and vLLM.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "serve/inputs.hpp"
#include "serve/json_text.hpp"
#include "serve/routes/routes.hpp"
#include "tasks/scores/class_scores.hpp"

namespace bertcl::serve {
namespace {

/// True for a reranker whose files say that its scores are its logits.
bool is_raw(const ModelSetup& setup) { return setup.kind == Kind::reranker && !setup.sigmoid; }

/// How a request wants the classes of a text.
struct ClassOptions {
  std::optional<tasks::Activation> activation;  ///< none: as the model has it
  std::size_t top_k = std::numeric_limits<std::size_t>::max();
};

/// TEI's `raw_scores`, and the options of Hugging Face's pipeline.
ClassOptions class_options(const text::JsonNode& body) {
  using tasks::Activation;
  ClassOptions options;
  if (body.flag("raw_scores", false)) options.activation = Activation::none;
  if (const auto function = body.find("function_to_apply")) {
    const std::map<std::string, std::optional<Activation>> known = {
        {"none", Activation::none},
        {"sigmoid", Activation::sigmoid},
        {"softmax", Activation::softmax},
        {"default", std::nullopt}};
    const auto found = known.find(function->string());
    if (found == known.end())
      function->fail("is \"{}\" (choose from none, sigmoid, softmax, default)", function->string());
    options.activation = found->second;
  }
  if (const auto max = read_count(body, "top_k")) options.top_k = static_cast<std::size_t>(*max);
  return options;
}

/// Of one text, best first. By default softmax, or sigmoids where a text may be of several classes
/// or the model gives one score.
std::vector<tasks::ClassScore> predictions(const ModelSetup& setup, const Values& logits,
                                           const ClassOptions& options) {
  const bool independent = setup.multi_label || logits.size() == 1;
  const auto activation = is_raw(setup) || setup.is_regression ? tasks::Activation::none
                          : independent                        ? tasks::Activation::sigmoid
                                                               : tasks::Activation::softmax;
  return tasks::best_classes(tasks::class_scores(logits, options.activation.value_or(activation)),
                             options.top_k);
}

void append_predictions(std::string& text, const ModelSetup& setup,
                        const std::vector<tasks::ClassScore>& all) {
  append_list(text, all.size(), [&](std::size_t i) {
    text += R"({"score":)";
    append_float(text, all[i].score);
    text += R"(,"label":)" + dump(setup.label_of(all[i].label)) + '}';
  });
}

/// A text, or two.
std::vector<std::string> read_pair(const text::JsonNode& node) {
  if (node.value().is_string()) return {node.string()};
  const std::size_t size = node.value().size();
  if (node.value().is_array() && (size == 0 || size > 2))
    node.fail("has " + std::to_string(size) + " texts, expected one text or a pair");
  std::vector<std::string> pair;
  node.each([&](const text::JsonNode& text) { pair.push_back(text.string()); });
  return pair;
}

/// TEI's PredictInput: a text; two of them; or a list of [text] and [text, text].
std::vector<std::vector<std::string>> read_pairs(const Context& context, const text::JsonNode& node,
                                                 bool& is_batch) {
  is_batch = node.value().is_array() && (node.value().empty() || !node.value().front().is_string());
  if (!is_batch) return {read_pair(node)};
  context.check_text_count(node.value().size());
  std::vector<std::vector<std::string>> pairs;
  node.each([&](const text::JsonNode& pair) { pairs.push_back(read_pair(pair)); });
  return pairs;
}

/// Clients of Cohere expect that documents are cut, and cannot ask for it.
void limit_documents(Truncation& truncation, const text::JsonNode& body) {
  if (!body.find("truncate")) truncation.truncate = true;
  if (const auto max = read_count(body, "max_tokens_per_doc"))
    truncation.max_second_tokens = static_cast<std::size_t>(*max);
}

/// The places of `texts` as labels, best first. The body is gone then.
std::vector<tasks::ClassScore> ranks_of(Context& context, Model& model, const text::JsonNode& body,
                                        const std::vector<std::string>& texts) {
  const std::string& query = body.at("query").string();
  context.record.texts = texts.size();
  Truncation truncation = context.truncation(body);
  if (body.find("documents")) limit_documents(truncation, body);
  const bool raw = body.flag("raw_scores", false) || is_raw(model.setup());
  std::vector<Sequence> sequences;
  const std::vector<std::int32_t> query_ids =
      model.setup().tokenizer->encode(prompt_of(model, body) + query);
  for (const std::string& text : texts) {
    check_not_empty(query, text);
    sequences.push_back(context.encode(model, query_ids, text, truncation));
  }
  const std::vector<Values> logits = context.run(model, model.batcher(), std::move(sequences));
  check_finite(logits);
  std::vector<float> scores;
  for (const Values& logit : logits)
    scores.push_back(static_cast<float>(raw ? logit.at(0) : tasks::sigmoid(logit.at(0))));
  return tasks::best_classes(scores, scores.size());
}

/// As vLLM replies, whose members are those of Cohere's and Jina's replies, too.
HttpResponse documents_response(const Context& context, const std::vector<tasks::ClassScore>& ranks,
                                const std::vector<std::string>& texts, bool with_text) {
  static std::atomic<std::uint64_t> last = 0;
  std::string results;
  append_list(results, ranks.size(), [&](std::size_t i) {
    const auto& [label, score] = ranks[i];
    results += R"({"index":)" + std::to_string(label) + R"(,"relevance_score":)";
    append_float(results, score);
    if (with_text) results += R"(,"document":{"text":)" + dump(texts[label]) + '}';
    results += '}';
  });
  return {200, fmt::format(R"({{"id":"rerank-{}","model":{},"usage":{{"prompt_tokens":{},)"
                           R"("total_tokens":{}}},"results":{}}})",
                           ++last, dump(context.record.model), context.record.tokens,
                           context.record.tokens, results)};
}

}  // namespace

HttpResponse predict(Context& context, const text::JsonNode& body, bool always_batch) {
  Model& model = context.service.model_for(context, {Kind::classifier, Kind::reranker}, body);
  bool is_batch = false;
  const auto pairs = read_pairs(context, body.at("inputs"), is_batch);
  context.record.texts = pairs.size();
  const Truncation truncation = context.truncation(body);
  const ClassOptions options = class_options(body);
  std::vector<Sequence> sequences;
  const std::string prompt = prompt_of(model, body);
  for (const std::vector<std::string>& pair : pairs) {
    check_not_empty(pair.front(), pair.back());
    const std::string first = prompt + pair[0];
    sequences.push_back(pair.size() == 1 ? context.encode(model, first, truncation)
                                         : context.encode(model, first, pair[1], truncation));
  }
  const std::vector<Values> logits = context.run(model, model.batcher(), std::move(sequences));
  check_finite(logits);
  HttpResponse response;
  const auto append = [&](std::size_t i) {
    append_predictions(response.body, model.setup(),
                       predictions(model.setup(), logits[i], options));
  };
  if (is_batch || always_batch)
    append_list(response.body, logits.size(), append);
  else
    append(0);
  return response;
}

HttpResponse rerank_route(Context& context) {
  const text::JsonNode body = context.body();
  Model& model = context.service.model_for(context, {Kind::reranker}, body);
  const auto documents = body.find("documents");
  const std::vector<std::string> texts =
      documents ? read_texts(context, *documents, true) : read_texts(context, body.at("texts"));
  const bool with_text = body.flag(documents ? "return_documents" : "return_text", false);
  const std::int64_t limit = documents ? read_count(body, "top_n", 0).value_or(0) : 0;
  const std::size_t count = limit > 0 ? static_cast<std::size_t>(limit) : texts.size();
  std::vector<tasks::ClassScore> ranks = ranks_of(context, model, body, texts);
  ranks.resize(std::min(ranks.size(), count));
  if (documents) return documents_response(context, ranks, texts, with_text);
  HttpResponse response;
  append_list(response.body, ranks.size(), [&](std::size_t i) {
    const auto& [label, score] = ranks[i];
    response.body += R"({"index":)" + std::to_string(label);
    if (with_text) response.body += R"(,"text":)" + dump(texts[label]);
    response.body += R"(,"score":)";
    append_float(response.body, score);
    response.body += '}';
  });
  return response;
}

std::vector<Route> rerank_routes() {
  return {{"POST", "/rerank", rerank_route},
          {"POST", "/v1/rerank", rerank_route},
          {"POST", "/v2/rerank", rerank_route}};
}

}  // namespace bertcl::serve
