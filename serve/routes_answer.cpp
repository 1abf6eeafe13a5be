// SPDX-License-Identifier: Apache-2.0
// POST /answer: a question about a text, with the result of Hugging Face's pipeline.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "serve/inputs.hpp"
#include "serve/json_text.hpp"
#include "serve/routes.hpp"
#include "text/unicode.hpp"

namespace bertcl::serve {
namespace {

using Json = nlohmann::ordered_json;

struct AskRequest {
  std::string question, context;
  squad::AnswerOptions options;
  std::size_t top_k = 1;
};

constexpr int kMostAnswers = 100, kMostTokens = 100'000;

void read_int(const std::optional<text::JsonNode>& options, const char* name, int& value,
              int most = kMostTokens) {
  const auto found = options ? options->find(name) : std::nullopt;
  if (!found) return;
  const std::int64_t given = found->integer();
  if (given < 1 || given > most) found->fail("is not from 1 to " + std::to_string(most));
  value = static_cast<int>(given);
}

/// {question, context} with options beside them, or {inputs: {..}, parameters: {..}}.
AskRequest read_ask_request(Model& model, const text::JsonNode& body) {
  const text::JsonNode asked = body.find("inputs").value_or(body);
  const std::optional<text::JsonNode> options =
      body.find("inputs") ? body.find("parameters") : std::optional(body);
  AskRequest request{asked.at("question").string(), asked.at("context").string(),
                     model.setup().answer, 1};
  squad::AnswerOptions& answer = request.options;
  int top_k = 1;
  read_int(options, "top_k", top_k, kMostAnswers);
  request.top_k = static_cast<std::size_t>(top_k);
  answer.predictions.n_best_size = std::max(answer.predictions.n_best_size, top_k);
  read_int(options, "max_answer_len", answer.predictions.max_answer_length);
  read_int(options, "max_question_len", answer.features.max_query_length);
  read_int(options, "doc_stride", answer.features.doc_stride);
  int length = answer.features.max_seq_length;
  read_int(options, "max_seq_len", length);
  answer.features.max_seq_length = std::min(length, static_cast<int>(model.setup().max_length));
  // More windows do not fit into the queue, and each takes memory before that is known.
  answer.features.max_windows =
      std::max<std::size_t>(model.batcher().options().max_queue_tokens /
                                static_cast<std::size_t>(answer.features.max_seq_length),
                            1);
  const auto absent = options ? options->find("handle_impossible_answer") : std::nullopt;
  if (absent) answer.predictions.version_2 = absent->boolean();
  return request;
}

/// The windows of a context; 413 for one that is too large, as for other texts.
squad::AskedQuestion ask(const AskRequest& request, const text::Tokenizer& tokenizer) {
  try {
    return squad::ask_question(request.question, request.context, tokenizer, request.options);
  } catch (const squad::TooManyWindows& error) {
    throw HttpError(413, "Validation", error.what());
  } catch (const squad::NoRoomForContext&) {
    throw HttpError(422, "Validation",
                    fmt::format("max_seq_len {} leaves no room for the context beside the "
                                "question; raise it or lower max_question_len",
                                request.options.features.max_seq_length));
  }
}

Sequence window_of(const squad::Feature& feature) {
  Sequence window{{feature.input_ids.begin(), feature.input_ids.end()}, {}};
  window.types.assign(window.ids.size(), 0);
  std::fill(window.types.begin() +
                static_cast<std::ptrdiff_t>(std::min(feature.second, window.ids.size())),
            window.types.end(), 1);
  return window;
}

/// Start and end logits of each window: two outputs, or one whose values alternate.
std::vector<squad::Logits> logits_of(const std::vector<Values>& values, bool alternate) {
  std::vector<squad::Logits> logits;
  for (const Values& both : values) {
    const std::size_t length = both.size() / 2;
    squad::Logits& own = logits.emplace_back();
    for (std::size_t i = 0; i < length; ++i) {
      own.start.push_back(both[alternate ? 2 * i : i]);
      own.end.push_back(both[alternate ? 2 * i + 1 : length + i]);
    }
  }
  return logits;
}

Json answer_json(const std::string& text, double probability, std::size_t start, std::size_t end) {
  return {{"score", probability}, {"start", start}, {"end", end}, {"answer", text}};
}

/// The best answers that are in the text, each once.
Json best_answers(const squad::FoundAnswer& found, std::string_view context, std::size_t top_k) {
  Json answers = Json::array();
  for (const squad::NBestEntry& entry : found.nbest) {
    if (answers.size() == top_k) break;
    if (!entry.span) continue;
    const auto [begin, end] = *entry.span;
    const std::string text(context.substr(begin, end - begin));
    const std::size_t start = text::count_code_points(context.substr(0, begin));
    answers.push_back(
        answer_json(text, entry.probability, start, start + text::count_code_points(text)));
  }
  return answers;
}

}  // namespace

Reply answer_route(Context& context) {
  const text::JsonNode body = context.body();
  const auto name = body.find("model");
  Model& model =
      context.service.model_for(context, {Kind::question_answering}, name ? name->string() : "");
  const AskRequest request = read_ask_request(model, body);
  const text::Tokenizer& tokenizer = *model.setup().tokenizer;
  const squad::AskedQuestion asked = ask(request, tokenizer);
  context.record.texts = asked.features.size();
  std::vector<Sequence> windows;
  for (const squad::Feature& feature : asked.features) windows.push_back(window_of(feature));
  const std::vector<Values> values = context.run(model, model.batcher(), std::move(windows));
  if (!request.options.predictions.allow_nonfinite) check_finite(values);
  const std::vector<squad::Logits> logits =
      logits_of(values, model.setup().head.outputs.size() == 1);
  std::vector<squad::WindowLogits> seen;
  for (std::size_t i = 0; i < logits.size(); ++i)
    seen.push_back({&asked.features[i], logits[i].start, logits[i].end});
  const squad::FoundAnswer found = squad::find_answer(asked, seen, tokenizer, request.options);
  if (request.top_k > 1) return {200, dump(best_answers(found, request.context, request.top_k))};
  const squad::Span place = found.characters.value_or(squad::Span{});
  Json answer = answer_json(found.text, found.probability, place.begin, place.end);
  answer["logit_score"] = found.score;
  if (found.null_odds) answer["null_odds"] = *found.null_odds;
  return {200, dump(answer)};
}

std::vector<Route> answer_routes() { return {{"POST", "/answer", answer_route}}; }

}  // namespace bertcl::serve
