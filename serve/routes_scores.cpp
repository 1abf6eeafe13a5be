// SPDX-License-Identifier: Apache-2.0
// The routes of text-embeddings-inference for classes and scores: /predict and /rerank.
#include <string>
#include <utility>

#include "serve/inputs.hpp"
#include "serve/json_text.hpp"
#include "serve/routes.hpp"
#include "tasks/class_scores.hpp"

namespace bertcl::serve {
namespace {

/// Of one text, best first. Raw scores are the logits; else softmax, or sigmoids where a text may
/// be of several classes or the model gives one score.
std::vector<tasks::ClassScore> predictions(const ModelSetup& setup, const Values& logits,
                                           bool raw) {
  const bool independent = setup.multi_label || logits.size() == 1;
  const auto activation = raw           ? tasks::Activation::none
                          : independent ? tasks::Activation::sigmoid
                                        : tasks::Activation::softmax;
  return tasks::best_classes(tasks::class_scores(logits, activation), logits.size());
}

void append_predictions(std::string& text, const ModelSetup& setup,
                        const std::vector<tasks::ClassScore>& all) {
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::size_t label = all[i].label;
    const std::string name =
        label < setup.labels.size() ? setup.labels[label] : "LABEL_" + std::to_string(label);
    text += i == 0 ? R"([{"score":)" : R"(,{"score":)";
    append_float(text, all[i].score);
    text += R"(,"label":)" + dump(name) + '}';
  }
  text += ']';
}

/// A text, or two.
std::vector<std::string> read_pair(const text::JsonNode& node) {
  if (node.value().is_string()) return {node.string()};
  const std::size_t size = node.value().size();
  if (node.value().is_array() && (size == 0 || size > 2))
    node.fail("has " + std::to_string(size) + " texts; one text, or two that belong together");
  std::vector<std::string> pair;
  node.each([&](const text::JsonNode& text) { pair.push_back(text.string()); });
  return pair;
}

/// TEI's PredictInput: a text; two of them; or a list of [text] and [text, text].
std::vector<std::vector<std::string>> read_pairs(const Context& context, const text::JsonNode& node,
                                                 bool& is_batch) {
  is_batch = node.value().is_array() && (node.value().empty() || !node.value().front().is_string());
  if (!is_batch) return {read_pair(node)};
  context.check_count(node.value().size());
  std::vector<std::vector<std::string>> pairs;
  node.each([&](const text::JsonNode& pair) { pairs.push_back(read_pair(pair)); });
  return pairs;
}

bool flag(const text::JsonNode& body, const char* name) {
  const auto found = body.find(name);
  return found && found->boolean();
}

/// True for a reranker whose files say that its scores are its logits.
bool is_raw(const ModelSetup& setup) { return setup.kind == Kind::reranker && !setup.sigmoid; }

}  // namespace

Reply predict_route(Context& context) {
  const text::JsonNode body = context.body();
  const auto name = body.find("model");
  Model& model = context.service.model_for(context, {Kind::classifier, Kind::reranker},
                                           name ? name->string() : "");
  bool is_batch = false;
  const auto pairs = read_pairs(context, body.at("inputs"), is_batch);
  context.record.texts = pairs.size();
  const Truncation truncation = context.truncation(body);
  const bool raw = flag(body, "raw_scores") || is_raw(model.setup()) || model.setup().is_regression;
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
  Reply reply;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (is_batch) reply.body += i == 0 ? '[' : ',';
    append_predictions(reply.body, model.setup(), predictions(model.setup(), logits[i], raw));
  }
  if (is_batch) reply.body += ']';
  return reply;
}

Reply rerank_route(Context& context) {
  const text::JsonNode body = context.body();
  const auto name = body.find("model");
  Model& model = context.service.model_for(context, {Kind::reranker}, name ? name->string() : "");
  const std::string& query = body.at("query").string();
  const std::vector<std::string> texts = read_texts(context, body.at("texts"));
  context.record.texts = texts.size();
  const Truncation truncation = context.truncation(body);
  const bool raw = flag(body, "raw_scores") || is_raw(model.setup());
  const bool with_text = flag(body, "return_text");
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
  // Their labels are the places of the texts.
  const std::vector<tasks::ClassScore> ranks = tasks::best_classes(scores, scores.size());
  Reply reply{200, "["};
  for (const tasks::ClassScore& rank : ranks) {
    if (reply.body.size() > 1) reply.body += ',';
    reply.body += R"({"index":)" + std::to_string(rank.label);
    if (with_text) reply.body += R"(,"text":)" + dump(texts[rank.label]);
    reply.body += R"(,"score":)";
    append_float(reply.body, rank.score);
    reply.body += '}';
  }
  reply.body += ']';
  return reply;
}

}  // namespace bertcl::serve
